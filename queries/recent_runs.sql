-- title: Recent runs
-- topic: housekeeping
-- question: Which runs does the database hold, newest first, and how big is each?
-- reads: selected runs
-- note: peak_bytes is the most that is live at one slot; total_bytes the sum of all allocations, which no device needs at once.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, module, backend, peak_bytes, total_bytes, labels, ingested_at
-- column run_id BIGINT: number of the run
-- column module VARCHAR: module name, or the file's stem where it names none
-- column backend VARCHAR: cpu, gpu or tpu
-- column peak_bytes BIGINT [bytes]: most bytes live at one slot, NULL without ranges
-- column total_bytes BIGINT [bytes]: sum of all allocations
-- column labels VARCHAR: labels, key=value
-- column target VARCHAR: target in the file name
-- column buffers BIGINT [count]: values
-- column module_id BIGINT: module number in the file name
-- column ingested_at TIMESTAMP as loaded: when it was loaded, UTC
-- column dump_dir VARCHAR: directory of the dump
PREPARE recent_runs AS
SELECT
    r.run_id,
    coalesce(r.module_name, r.stem) AS module,
    r.backend,
    r.peak_bytes,
    (SELECT sum(a.size_bytes)::BIGINT FROM allocations AS a WHERE a.run_id = r.run_id) AS total_bytes,
    (SELECT string_agg(l.key || '=' || l.value, ', ' ORDER BY l.key) FROM run_labels AS l WHERE l.run_id = r.run_id)
        AS labels,
    r.target,
    (SELECT count(*) FROM "values" AS v WHERE v.run_id = r.run_id) AS buffers,
    r.module_id,
    r.ingested_at,
    r.dump_dir
FROM (
    SELECT d.*
    FROM selected_runs($run, $label, $module) AS s
    JOIN runs AS d USING (run_id)
    ORDER BY d.run_id DESC
    LIMIT $top
) AS r
ORDER BY r.run_id DESC;

EXECUTE recent_runs(top := 20, run := NULL, label := NULL, module := NULL);
