-- title: What the last import brought
-- topic: housekeeping
-- question: What changed since an earlier import: which modules are new, and which changed their memory?
-- reads: selected runs
-- note: Modules are paired with those of earlier imports as in peak_growth; of a module that several imports since then brought,
--   the newest import counts. again: that content was loaded before.
-- example: --top 5
-- parameter since BIGINT = NULL: first import to report; NULL is the last one that loaded something
-- parameter top BIGINT = 50: rows to show
-- key: module, run_id, status, peak_bytes, change_bytes, change_percent, dump_dir
-- column module VARCHAR: module
-- column run_id BIGINT: number of the run
-- column status VARCHAR: new, changed or again
-- column peak_bytes BIGINT [bytes]: peak; the sum of allocations where the run has no ranges
-- column change_bytes BIGINT [bytes] as by: change against the earlier run
-- column change_percent DOUBLE [percent] as percent: change against the earlier run
-- column earlier_run_id BIGINT as against: run compared with
-- column import_id BIGINT: import that loaded the run
-- column dump_dir VARCHAR: directory of the dump
PREPARE whats_new AS
WITH since AS (
    SELECT coalesce($since, max(c.import_id)) AS import_id FROM selected_runs($run, $label, $module) AS c
),
known AS (
    SELECT DISTINCT t.content
    FROM selected_runs($run, $label, $module) AS c
    JOIN run_contents AS t USING (run_id)
    WHERE c.import_id < (FROM since)
),
chosen AS (
    SELECT r.run_id, p.before_run_id, r.import_id, p.module, t.content, r.dump_dir, coalesce(r.peak_bytes, r.total_bytes) AS bytes
    FROM run_pairs(NULL, NULL, $run, $label, $module, $since) AS p
    JOIN runs AS r ON r.run_id = p.after_run_id
    JOIN run_contents AS t ON t.run_id = r.run_id
)
SELECT
    c.module,
    c.run_id,
    CASE WHEN k.content IS NOT NULL THEN 'again' WHEN c.before_run_id IS NULL THEN 'new' ELSE 'changed' END AS status,
    c.bytes AS peak_bytes,
    c.bytes - e.bytes AS change_bytes,
    100.0 * (c.bytes - e.bytes) / nullif(e.bytes, 0) AS change_percent,
    c.before_run_id AS earlier_run_id,
    c.import_id,
    c.dump_dir
FROM chosen AS c
LEFT JOIN (SELECT r.run_id, coalesce(r.peak_bytes, r.total_bytes) AS bytes FROM runs AS r) AS e ON e.run_id = c.before_run_id
LEFT JOIN known AS k ON k.content = c.content
ORDER BY CASE status WHEN 'changed' THEN 0 WHEN 'new' THEN 1 ELSE 2 END, abs(change_bytes) DESC NULLS LAST,
    c.bytes DESC NULLS LAST, c.run_id
LIMIT $top;

EXECUTE whats_new(since := NULL, top := 50, run := NULL, label := NULL, module := NULL);
