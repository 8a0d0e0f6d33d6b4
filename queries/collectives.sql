-- title: Buffers of collectives
-- topic: peak
-- question: Which buffers come from all-gather, all-reduce and other collectives, and which of them are live at the peak?
-- reads: selected runs
-- note: An instruction is a collective by its opcode, or because this result of the fusion or asynchronous call is made
--   from a collective in what it calls, which only HLO text or protobuf show; without them a fusion is taken by its name.
--   A row is a value; values can share memory, so do not add up sizes. Bytes at the peak count each byte once.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, collective, size_bytes, bytes_at_peak, value, source, shape, op_name
-- column run_id BIGINT: number of the run
-- column collective VARCHAR: kind of collective, several joined by +; NULL where the name gives none
-- column size_bytes BIGINT [bytes]: size of the buffer
-- column bytes_at_peak BIGINT [bytes] as at_peak: its bytes at the peak; NULL without live ranges
-- column value VARCHAR: the buffer
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column shape VARCHAR: its shape with layout
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction, NULL where the dump does not say
-- column module VARCHAR: module of the run
-- column decided_by VARCHAR: opcode, called (what the instruction calls) or name
PREPARE collectives AS
WITH found AS MATERIALIZED (
    -- Texts are looked up for the rows shown only.
    SELECT v.run_id, v.value_id, v.collective, v.decided_by
    FROM (
        SELECT n.run_id, n.value_id, n.size_bytes, collective_kind(n.opcode) AS collective, 'opcode' AS decided_by
        FROM selected_runs($run, $label, $module) AS r
        JOIN "values" AS n USING (run_id)
        WHERE n.dimensions IS NOT NULL AND is_collective(n.opcode)
        UNION ALL
        SELECT n.run_id, n.value_id, n.size_bytes, string_agg(DISTINCT c.collective, '+' ORDER BY c.collective), 'called'
        FROM called_collectives($run, $label, $module) AS c
        JOIN "values" AS n ON n.run_id = c.run_id AND n.instruction = c.instruction
            AND (c.element IS NULL OR starts_with(translate(n.shape_index, '}', ','), '{' || c.element || ','))
        WHERE n.dimensions IS NOT NULL AND NOT is_collective(coalesce(n.opcode, ''))
        GROUP BY n.run_id, n.value_id, n.size_bytes
        UNION ALL
        SELECT n.run_id, n.value_id, n.size_bytes, nullif(collective_kind(n.instruction), ''), 'name'
        FROM selected_runs($run, $label, $module) AS r
        JOIN "values" AS n USING (run_id)
        ANTI JOIN instructions AS i ON i.run_id = n.run_id AND i.instruction = n.instruction
        WHERE n.dimensions IS NOT NULL
          AND coalesce(n.opcode, 'fusion') IN ('fusion', 'async-start', 'async-update', 'async-done')
          AND (is_collective(n.instruction) OR starts_with(n.instruction, 'async-collective'))
    ) AS v
    ORDER BY v.size_bytes DESC, v.run_id, v.value_id
    LIMIT $top
)
SELECT
    v.run_id,
    f.collective,
    v.size_bytes,
    CASE WHEN r.peak_time IS NOT NULL THEN coalesce(p.bytes_at_peak, 0) END AS bytes_at_peak,
    value_name(v.instruction, v.shape_index) AS "value",
    source_text(v.source_file, v.source_line, v.source_via) AS source,
    v.shape,
    v.op_name,
    v.opcode,
    r.module,
    f.decided_by
FROM found AS f
JOIN selected_runs() AS r ON r.run_id = f.run_id
JOIN "values" AS v ON v.run_id = f.run_id AND v.value_id = f.value_id
LEFT JOIN buffers_at_peak AS p ON p.run_id = f.run_id AND p.value_id = f.value_id
ORDER BY v.size_bytes DESC, v.run_id, v.value_id;

EXECUTE collectives(top := 20, run := NULL, label := NULL, module := NULL);
