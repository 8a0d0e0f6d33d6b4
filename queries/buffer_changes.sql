-- title: New, vanished and grown buffers between two versions
-- topic: comparing
-- question: Which buffers at the peak are new, gone, grown or shrunk between two sets of runs, by shape and producer?
-- needs: ranges
-- note: Modules are paired as in peak_growth. Buffers are matched by shape, opcode and operation name, never by value id or
--   instruction name: those are numbered anew in every compilation.
-- example: --before batch=8 --after batch=32
-- parameter before VARCHAR = NULL: runs to compare from: run_ids, a label or a glob on the dump directory
-- parameter after VARCHAR = NULL: runs to compare to
-- parameter top BIGINT = 20: rows to show
-- column module VARCHAR: module
-- column change VARCHAR: new, gone, grown or shrunk
-- column change_bytes BIGINT [bytes]: bytes at the peak after minus before
-- column before_bytes BIGINT [bytes]: bytes at the peak before
-- column after_bytes BIGINT [bytes]: bytes at the peak after
-- column before_values BIGINT [count]: values before
-- column after_values BIGINT [count]: values after
-- column opcode VARCHAR: opcode of the defining instruction
-- column shape VARCHAR: shape with layout
-- column op_name VARCHAR: name that the framework gave the operation
-- column before_run_id BIGINT: run compared from
-- column after_run_id BIGINT: run compared to
PREPARE buffer_changes AS
WITH sides AS (
    SELECT p.module, p.backend, p.before_run_id, p.after_run_id, unnest([false, true]) AS is_after,
        unnest([p.before_run_id, p.after_run_id]) AS run_id
    FROM run_pairs($before, $after, $run, $label, $module) AS p
    JOIN runs AS b ON b.run_id = p.before_run_id AND b.peak_bytes IS NOT NULL
    JOIN runs AS a ON a.run_id = p.after_run_id AND a.peak_bytes IS NOT NULL
),
compared AS (
    SELECT
        s.module,
        p.opcode,
        p.shape,
        p.op_name,
        coalesce(sum(p.bytes_at_peak) FILTER (NOT s.is_after), 0)::BIGINT AS before_bytes,
        coalesce(sum(p.bytes_at_peak) FILTER (s.is_after), 0)::BIGINT AS after_bytes,
        count(*) FILTER (NOT s.is_after) AS before_values,
        count(*) FILTER (s.is_after) AS after_values,
        any_value(s.before_run_id) AS before_run_id,
        any_value(s.after_run_id) AS after_run_id
    FROM sides AS s
    JOIN buffers_at_peak AS p USING (run_id)
    WHERE p.bytes_at_peak > 0
    GROUP BY s.module, s.backend, p.opcode, p.shape, p.op_name
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
ORDER BY abs(c.after_bytes - c.before_bytes) DESC, c.module, c.shape, c.opcode, c.op_name
LIMIT $top;

EXECUTE buffer_changes(before := NULL, after := NULL, top := 20, run := NULL, label := NULL, module := NULL);
