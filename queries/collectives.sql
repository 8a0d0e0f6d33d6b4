-- title: Buffers of collectives
-- question: Which buffers come from all-gather, all-reduce and other collectives, and which of them are live at the peak?
-- note: Told by opcode, and by instruction name where the dump does not tell the opcode or the collective is fused. A row is
--   a value; values can share memory, so do not add up sizes. Bytes at the peak count each byte once.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- column run_id BIGINT: number of the run
-- column size_bytes BIGINT [bytes]: size of the buffer
-- column bytes_at_peak BIGINT [bytes]: its bytes at the peak; NULL without live ranges
-- column collective VARCHAR: kind of collective
-- column value VARCHAR: the buffer
-- column opcode VARCHAR: opcode of its instruction, NULL where the dump does not tell
-- column shape VARCHAR: its shape with layout
-- column op_name VARCHAR: name that the framework gave the operation
-- column source VARCHAR: source file and line
-- column module VARCHAR: module of the run
PREPARE collectives AS
WITH found AS (
    SELECT
        v.*,
        regexp_extract(
            coalesce(nullif(v.opcode, 'fusion'), v.instruction),
            '^(ragged-all-to-all|all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute|collective-broadcast)', 1
        ) AS collective,
        r.module,
        r.peak_time
    FROM selected_runs($run, $label, $module) AS r
    JOIN "values" AS v USING (run_id)
    WHERE v.dimensions IS NOT NULL
)
SELECT
    f.run_id,
    f.size_bytes,
    CASE WHEN f.peak_time IS NOT NULL THEN
        coalesce(CASE WHEN f.peak_time BETWEEN g.start_time AND g.end_time THEN
            f.size_bytes - CASE WHEN g.end_time = f.peak_time THEN g.handover_bytes ELSE 0 END
        END, 0)
    END AS bytes_at_peak,
    f.collective,
    CASE WHEN f.shape_index = '{}' THEN f.instruction ELSE f.instruction || f.shape_index END AS "value",
    f.opcode,
    f.shape,
    f.op_name,
    f.source_file || coalesce(':' || f.source_line, '') AS source,
    f.module
FROM found AS f
LEFT JOIN ranges AS g ON g.run_id = f.run_id AND g.value_id = f.value_id
WHERE f.collective <> ''
ORDER BY f.size_bytes DESC, f.run_id, f.value_id
LIMIT $top;

EXECUTE collectives(top := 20, run := NULL, label := NULL, module := NULL);
