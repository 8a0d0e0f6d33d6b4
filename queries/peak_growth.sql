-- title: Growth of the peak between two versions
-- topic: comparing
-- question: Which modules' peaks grew or shrank between two sets of runs, for example two versions of jaxlib?
-- reads: selected runs
-- note: Modules are paired by name, backend and entry signature, then by name; several of one signature in order of directory and
--   file. Of each the newest import counts; two single runs given as sides are a pair whatever their names. A side is run_ids ('3,7'), a label ('jax=0.7.0') or a glob on the dump directory ('*/old*'). Without
--   sides the last import is compared with the earlier ones. diff says which buffers did it.
-- example: --before jax=0.4.13 --after jax=0.6.2
-- parameter before VARCHAR = NULL: runs to compare from
-- parameter after VARCHAR = NULL: runs to compare to
-- parameter top BIGINT = 20: rows to show
-- key: module, change_bytes, change_percent, before_peak_bytes, after_peak_bytes
-- column module VARCHAR: module
-- column change_bytes BIGINT [bytes] as by: growth of the peak; NULL where a side has no ranges
-- column change_percent DOUBLE [percent] as percent: growth of the peak
-- column before_peak_bytes BIGINT [bytes] as peak_was: peak before
-- column after_peak_bytes BIGINT [bytes] as peak_is: peak after
-- column change_total_bytes BIGINT [bytes] as total_by: growth of the sum of allocations
-- column before_total_bytes BIGINT [bytes] as total_was: sum of allocations before
-- column after_total_bytes BIGINT [bytes] as total_is: sum of allocations after
-- column before_run_id BIGINT as run_was: run compared from
-- column after_run_id BIGINT as run_is: run compared to
PREPARE peak_growth AS
WITH pairs AS MATERIALIZED (
    SELECT p.*
    FROM run_pairs($before, $after, $run, $label, $module) AS p
    WHERE p.before_run_id IS NOT NULL AND p.after_run_id IS NOT NULL
),
needs AS (
    SELECT r.run_id, r.peak_bytes, sum(a.size_bytes)::BIGINT AS total_bytes
    FROM runs AS r
    JOIN allocations AS a ON a.run_id = r.run_id
    WHERE r.run_id IN (SELECT unnest([p.before_run_id, p.after_run_id]) FROM pairs AS p)
    GROUP BY r.run_id, r.peak_bytes
)
SELECT
    p.module,
    a.peak_bytes - b.peak_bytes AS change_bytes,
    100.0 * (a.peak_bytes - b.peak_bytes) / nullif(b.peak_bytes, 0) AS change_percent,
    b.peak_bytes AS before_peak_bytes,
    a.peak_bytes AS after_peak_bytes,
    a.total_bytes - b.total_bytes AS change_total_bytes,
    b.total_bytes AS before_total_bytes,
    a.total_bytes AS after_total_bytes,
    p.before_run_id,
    p.after_run_id
FROM pairs AS p
JOIN needs AS b ON b.run_id = p.before_run_id
JOIN needs AS a ON a.run_id = p.after_run_id
ORDER BY abs(coalesce(a.peak_bytes - b.peak_bytes, a.total_bytes - b.total_bytes)) DESC, p.module, p.before_run_id, p.after_run_id
LIMIT $top;

EXECUTE peak_growth(before := NULL, after := NULL, top := 20, run := NULL, label := NULL, module := NULL);
