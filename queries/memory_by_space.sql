-- title: Memory by memory space
-- topic: peak
-- question: How much memory is on the device and how much on the host, by memory space (color)?
-- reads: selected runs
-- note: Sums of allocations. Thread-local scratch is counted in the dump's total though a device never allocates it, so it
--   has a column of its own. The names of memory spaces depend on the backend; unknown ones are NULL.
-- example: --top 5
-- parameter top BIGINT = 50: rows to show
-- key: run_id, color, space, bytes, percent, memory, module
-- column run_id BIGINT: number of the run
-- column color BIGINT: memory space
-- column space VARCHAR: its name
-- column place VARCHAR: host or device
-- column memory VARCHAR: physical memory that it lies in; colors of one memory share its bytes
-- column bytes BIGINT [bytes]: allocations without thread-local ones
-- column percent DOUBLE [share]: share of the run's allocations without thread-local ones
-- column module VARCHAR: module of the run
-- column temp_bytes BIGINT [bytes]: temporary arenas, part of bytes
-- column thread_local_bytes BIGINT [bytes] as scratch: thread-local allocations
-- column allocations BIGINT [count]: allocations
PREPARE memory_by_space AS
SELECT
    a.run_id,
    a.color,
    any_value(s.space) AS space,
    any_value(s.place) AS place,
    any_value(s.memory) AS memory,
    (coalesce(sum(a.size_bytes) FILTER (a.kind <> 'thread-local'), 0))::BIGINT AS bytes,
    100.0 * bytes / nullif(sum(bytes) OVER (PARTITION BY a.run_id), 0) AS percent,
    any_value(r.module) AS module,
    (coalesce(sum(a.size_bytes) FILTER (a.kind = 'temp'), 0))::BIGINT AS temp_bytes,
    (coalesce(sum(a.size_bytes) FILTER (a.kind = 'thread-local'), 0))::BIGINT AS thread_local_bytes,
    count(*) AS allocations
FROM selected_runs($run, $label, $module) AS r
JOIN allocations AS a USING (run_id)
LEFT JOIN memory_spaces AS s ON s.backend = r.backend AND s.color = a.color
GROUP BY a.run_id, a.color
ORDER BY sum(bytes) OVER (PARTITION BY a.run_id) DESC, a.run_id, bytes DESC, a.color
LIMIT $top;

EXECUTE memory_by_space(top := 50, run := NULL, label := NULL, module := NULL);
