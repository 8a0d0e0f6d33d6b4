-- title: Thread-local scratch
-- topic: arenas
-- question: How much of a module's total is thread-local scratch of scalar computations?
-- reads: selected runs
-- note: The dump's total counts it (4 KiB for each scalar on older TPU versions), though a device never allocates it.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: module, run_id, thread_local_bytes, percent, total_bytes, allocations
-- column module VARCHAR: module
-- column run_id BIGINT: number of the run
-- column thread_local_bytes BIGINT [bytes] as scratch: sum of the thread-local allocations
-- column percent DOUBLE [share]: share of the run's total
-- column allocations BIGINT [count]: thread-local allocations
-- column largest_bytes BIGINT [bytes]: largest of them
-- column total_bytes BIGINT [bytes]: sum of all allocations of the run
PREPARE thread_local AS
SELECT
    any_value(r.module) AS module,
    a.run_id,
    sum(a.size_bytes)::BIGINT AS thread_local_bytes,
    100.0 * sum(a.size_bytes) / nullif(any_value(m.total_bytes), 0) AS percent,
    count(*) AS allocations,
    max(a.size_bytes) AS largest_bytes,
    any_value(m.total_bytes) AS total_bytes
FROM selected_runs($run, $label, $module) AS r
JOIN run_summary AS m USING (run_id)
JOIN allocations AS a ON a.run_id = r.run_id AND a.is_thread_local
GROUP BY a.run_id
ORDER BY thread_local_bytes DESC, a.run_id
LIMIT $top;

EXECUTE thread_local(top := 20, run := NULL, label := NULL, module := NULL);
