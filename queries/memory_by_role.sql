-- title: Memory by role
-- topic: peak
-- question: How is the memory of a module parted into arguments, donated state, results, temporaries and constants?
-- reads: selected runs
-- note: Sums of allocations, so each byte counts once: a donated parameter is both argument and result and has a row of its
--   own. Thread-local scratch is in the dump's total though a device never allocates it.
-- example: --top 5
-- parameter top BIGINT = 50: rows to show
-- key: run_id, role, bytes, percent, allocations, module
-- column run_id BIGINT: number of the run
-- column role VARCHAR: argument, donated argument, result, temporary, constant or thread-local
-- column bytes BIGINT [bytes]: sum of the allocations
-- column percent DOUBLE [share]: share of the run's total
-- column allocations BIGINT [count]: allocations
-- column module VARCHAR: module of the run
-- column largest_bytes BIGINT [bytes]: largest allocation
PREPARE memory_by_role AS
SELECT
    a.run_id,
    CASE a.kind
        WHEN 'parameter' THEN 'argument'
        WHEN 'parameter+output' THEN 'donated argument'
        WHEN 'output' THEN 'result'
        WHEN 'temp' THEN 'temporary'
        ELSE a.kind
    END AS role,
    sum(a.size_bytes)::BIGINT AS bytes,
    100.0 * sum(a.size_bytes) / nullif(sum(sum(a.size_bytes)) OVER (PARTITION BY a.run_id), 0) AS percent,
    count(*) AS allocations,
    any_value(r.module) AS module,
    max(a.size_bytes) AS largest_bytes
FROM selected_runs($run, $label, $module) AS r
JOIN allocations AS a USING (run_id)
GROUP BY a.run_id, a.kind
ORDER BY sum(sum(a.size_bytes)) OVER (PARTITION BY a.run_id) DESC, a.run_id, bytes DESC, role
LIMIT $top;

EXECUTE memory_by_role(top := 50, run := NULL, label := NULL, module := NULL);
