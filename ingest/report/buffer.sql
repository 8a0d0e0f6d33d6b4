-- One buffer of a run: what it is, where it lies, when it is live and what defines it.
SELECT
    v.value_id,
    value_name(v.instruction, v.shape_index) AS "value",
    v.size_bytes,
    v.padding_bytes,
    g.peak_bytes AS bytes_at_peak,
    v.shape,
    v.allocation_index,
    v.offset_bytes,
    a.size_bytes AS allocation_bytes,
    a.kind,
    a.color,
    m.space,
    a.maybe_live_out,
    g.start_time,
    g.end_time,
    r.peak_time,
    r.schedule_length,
    v.opcode,
    v.op_name,
    source_text(v.source_file, v.source_line, v.source_via) AS "source",
    i.computation,
    i.operands,
    v.shape_index,
    v.source_frame_id
FROM "values" AS v
JOIN runs AS r ON r.run_id = v.run_id
JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index
LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
LEFT JOIN memory_spaces AS m ON m.backend = r.backend AND m.color = a.color
LEFT JOIN instructions AS i ON i.run_id = v.run_id AND i.instruction = v.instruction
WHERE v.run_id = $run AND (value_name(v.instruction, v.shape_index) = $value OR v.value_id::VARCHAR = $value)
ORDER BY v.value_id;
