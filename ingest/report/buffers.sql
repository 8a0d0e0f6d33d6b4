-- The values of a run with their live ranges, in order of start; those without a range come last.
SELECT
    v.value_id,
    v.allocation_index,
    v.offset_bytes,
    v.size_bytes,
    v.padding_bytes,
    g.start_time,
    g.end_time,
    g.gained_bytes,
    g.handover_bytes,
    g.peak_bytes,
    value_name(v.instruction, v.shape_index) AS "value",
    v.shape,
    v.opcode,
    v.op_name,
    source_text(v.source_file, v.source_line, v.source_via) AS "source",
    coalesce(v.source_frame_id, v.stack_frame_id) AS frame_id
FROM "values" AS v
LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
WHERE v.run_id = $run
ORDER BY g.start_time NULLS LAST, v.value_id;
