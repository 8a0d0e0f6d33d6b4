-- title: Buffers of collectives
-- question: Which buffers come from all-gather, all-reduce and other collectives, and which of them are live at the peak?
-- note: Told by opcode, and by instruction name where the dump does not tell the opcode or the collective is fused. A row is
--   a value; values can share memory, so do not add up sizes. Bytes at the peak count each byte once.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- column run_id BIGINT: number of the run
-- column collective VARCHAR: kind of collective
-- column size_bytes BIGINT [bytes]: size of the buffer
-- column bytes_at_peak BIGINT [bytes]: its bytes at the peak; NULL without live ranges
-- column value VARCHAR: the buffer
-- column source VARCHAR: source file and line
-- column shape VARCHAR: its shape with layout
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction, NULL where the dump does not tell
-- column module VARCHAR: module of the run
PREPARE collectives AS
WITH found AS MATERIALIZED (
    -- Texts are looked up for the rows shown only.
    SELECT n.run_id, n.value_id, n.name
    FROM (
        SELECT v.run_id, v.value_id, v.size_bytes, coalesce(nullif(v.opcode, 'fusion'), v.instruction) AS name
        FROM selected_runs($run, $label, $module) AS r
        JOIN "values" AS v USING (run_id)
        WHERE v.dimensions IS NOT NULL
    ) AS n
    -- Quicker than a regular expression on every row.
    WHERE starts_with(n.name, 'all-gather') OR starts_with(n.name, 'all-reduce') OR starts_with(n.name, 'all-to-all')
       OR starts_with(n.name, 'reduce-scatter') OR starts_with(n.name, 'ragged-all-to-all')
       OR starts_with(n.name, 'collective-permute') OR starts_with(n.name, 'collective-broadcast')
    ORDER BY n.size_bytes DESC, n.run_id, n.value_id
    LIMIT $top
)
SELECT
    v.run_id,
    regexp_extract(
        f.name,
        '^(ragged-all-to-all|all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute|collective-broadcast)'
    ) AS collective,
    v.size_bytes,
    CASE WHEN r.peak_time IS NOT NULL THEN
        coalesce(CASE WHEN r.peak_time BETWEEN g.start_time AND g.end_time THEN
            v.size_bytes - CASE WHEN g.end_time = r.peak_time THEN g.handover_bytes ELSE 0 END
        END, 0)
    END AS bytes_at_peak,
    CASE WHEN v.shape_index = '{}' THEN v.instruction ELSE v.instruction || v.shape_index END AS "value",
    v.source_file || coalesce(':' || v.source_line, '') AS source,
    v.shape,
    v.op_name,
    v.opcode,
    r.module
FROM found AS f
JOIN selected_runs() AS r ON r.run_id = f.run_id
JOIN "values" AS v ON v.run_id = f.run_id AND v.value_id = f.value_id
LEFT JOIN ranges AS g ON g.run_id = f.run_id AND g.value_id = f.value_id
ORDER BY v.size_bytes DESC, v.run_id, v.value_id;

EXECUTE collectives(top := 20, run := NULL, label := NULL, module := NULL);
