-- title: Retraces
-- topic: comparing
-- question: Which jit names were compiled more than once, and how many bytes do their modules need?
-- reads: selected runs
-- note: Counts dumps of one module name; distinct contents, of all texts of a dump, separate recompilations of something new
--   from repeated dumps. The sum is over all modules of the name, which need not be in memory at the same time.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter min_modules BIGINT = 2: fewest dumps of a name
-- key: module, modules, contents, largest_run_id, largest_total_bytes, sum_total_bytes
-- column module VARCHAR: module name
-- column modules BIGINT [count]: dumps of that name
-- column contents BIGINT [count]: of these, distinct contents
-- column largest_run_id BIGINT as largest: run with the greatest sum of allocations
-- column largest_peak_bytes BIGINT [bytes] as peak: highest peak among them
-- column largest_total_bytes BIGINT [bytes] as total: greatest sum of allocations among them
-- column sum_total_bytes BIGINT [bytes] as sum: sum over all of them of their allocations
-- column smallest_total_bytes BIGINT [bytes] as smallest: least sum of allocations among them
-- column directories BIGINT [count]: dump directories that they are in
PREPARE retraces AS
SELECT
    r.module,
    count(*) AS modules,
    count(DISTINCT c.content) AS contents,
    arg_min(r.run_id, (-m.total_bytes, r.run_id)) AS largest_run_id,
    max(m.peak_bytes) AS largest_peak_bytes,
    max(m.total_bytes) AS largest_total_bytes,
    sum(m.total_bytes)::BIGINT AS sum_total_bytes,
    min(m.total_bytes) AS smallest_total_bytes,
    count(DISTINCT r.dump_dir) AS directories
FROM selected_runs($run, $label, $module) AS r
JOIN run_summary AS m USING (run_id)
JOIN run_contents AS c USING (run_id)
GROUP BY r.module
HAVING count(*) >= $min_modules
ORDER BY modules DESC, sum_total_bytes DESC, r.module
LIMIT $top;

EXECUTE retraces(top := 20, min_modules := 2, run := NULL, label := NULL, module := NULL);
