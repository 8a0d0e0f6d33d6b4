-- title: New, vanished and grown buffers between two versions
-- topic: comparing
-- question: Which buffers at the peak are new, gone, grown or shrunk between two sets of runs, by shape and producer?
-- needs: ranges
-- reads: selected runs
-- note: Modules are paired as in peak_growth, buffers matched as in diff, whose rows say more. A row is the shape and producer
--   after; before, where nothing of it is left. grown and shrunk: more, fewer or resized buffers.
-- example: --before batch=8 --after batch=32
-- parameter before VARCHAR = NULL: runs to compare from: run_ids, a label or a glob on the dump directory
-- parameter after VARCHAR = NULL: runs to compare to
-- parameter top BIGINT = 20: rows to show
-- key: change, change_bytes, module, shape, op_name, opcode, before_bytes, after_bytes
-- column module VARCHAR: module
-- column change VARCHAR: new, gone, grown or shrunk
-- column change_bytes BIGINT [bytes] as by: bytes at the peak after minus before
-- column before_bytes BIGINT [bytes]: bytes at the peak before
-- column after_bytes BIGINT [bytes]: bytes at the peak after
-- column before_values BIGINT [count] as n_before: values before
-- column after_values BIGINT [count] as n_after: values after
-- column opcode VARCHAR: opcode of the defining instruction
-- column shape VARCHAR: shape with layout
-- column op_name VARCHAR: name that the framework gave the operation
-- column before_run_id BIGINT as run_before: run compared from
-- column after_run_id BIGINT as run_after: run compared to
PREPARE buffer_changes AS
WITH described AS (
    SELECT m.before_run_id, m.after_run_id, m.before_peak_bytes, m.after_peak_bytes, v.opcode, v.shape, v.op_name
    FROM matched_buffers($before, $after, $run, $label, $module) AS m
    JOIN "values" AS v
        ON v.run_id = CASE WHEN m.after_peak_bytes > 0 THEN m.after_run_id ELSE m.before_run_id END
        AND v.value_id = CASE WHEN m.after_peak_bytes > 0 THEN m.after_value_id ELSE m.before_value_id END
    WHERE m.before_peak_bytes > 0 OR m.after_peak_bytes > 0
),
compared AS (
    SELECT
        any_value(coalesce(r.module_name, r.stem)) AS module,
        d.opcode,
        d.shape,
        d.op_name,
        sum(d.before_peak_bytes)::BIGINT AS before_bytes,
        sum(d.after_peak_bytes)::BIGINT AS after_bytes,
        count(*) FILTER (d.before_peak_bytes > 0) AS before_values,
        count(*) FILTER (d.after_peak_bytes > 0) AS after_values,
        d.before_run_id,
        d.after_run_id
    FROM described AS d
    JOIN runs AS r ON r.run_id = d.after_run_id
    GROUP BY d.before_run_id, d.after_run_id, d.opcode, d.shape, d.op_name
)
SELECT
    c.module,
    CASE
        WHEN c.before_values = 0 THEN 'new'
        WHEN c.after_values = 0 THEN 'gone'
        WHEN c.after_bytes > c.before_bytes THEN 'grown'
        ELSE 'shrunk'
    END AS change,
    c.after_bytes - c.before_bytes AS change_bytes,
    c.before_bytes,
    c.after_bytes,
    c.before_values,
    c.after_values,
    c.opcode,
    c.shape,
    c.op_name,
    c.before_run_id,
    c.after_run_id
FROM compared AS c
WHERE c.after_bytes <> c.before_bytes
ORDER BY abs(c.after_bytes - c.before_bytes) DESC, c.module, c.before_run_id, c.after_run_id, c.shape, c.opcode, c.op_name
LIMIT $top;

EXECUTE buffer_changes(before := NULL, after := NULL, top := 20, run := NULL, label := NULL, module := NULL);
