-- title: Will it fit
-- topic: peak
-- question: Which modules fit in a memory of so many GiB?
-- reads: selected runs
-- note: Needed is the sum of the allocations in one physical memory, whatever their colors: GPU temporaries of a color of
--   their own lie in device memory like all else, TPU buffers pinned on the host do not (block memory_spaces). Of an unknown
--   backend or color only that color counts. Thread-local scratch is never allocated up front and is left out. Memory of
--   other programs and of the runtime comes on top.
-- example: --gib 16
-- parameter gib DOUBLE = 16: size of the memory, GiB (2^30 bytes)
-- parameter color BIGINT = 0: memory space that lies in it; 0 is the main one
-- parameter top BIGINT = 20: rows to show
-- key: module, run_id, fits, needed_bytes, headroom_bytes, percent
-- column module VARCHAR: module
-- column run_id BIGINT: number of the run
-- column fits BOOLEAN: needed is at most the limit
-- column needed_bytes BIGINT [bytes]: sum of the allocations of all colors in that memory
-- column headroom_bytes BIGINT [bytes]: limit minus needed; negative if it does not fit
-- column percent DOUBLE [share]: needed as a share of the limit
-- column space VARCHAR: name of the memory space asked for, NULL if unknown
-- column color BIGINT: memory space asked for
-- column memory VARCHAR: physical memory that it lies in, NULL if unknown
-- column colors VARCHAR: colors with allocations there
-- column limit_bytes BIGINT [bytes]: size of the memory
PREPARE fits_in_memory AS
SELECT
    any_value(r.module) AS module,
    a.run_id,
    sum(a.size_bytes) <= ($gib * 1073741824)::BIGINT AS fits,
    sum(a.size_bytes)::BIGINT AS needed_bytes,
    (($gib * 1073741824)::BIGINT - sum(a.size_bytes))::BIGINT AS headroom_bytes,
    100.0 * sum(a.size_bytes) / nullif(($gib * 1073741824)::BIGINT, 0) AS percent,
    any_value(m.space) AS space,
    $color::BIGINT AS color,
    any_value(m.memory) AS memory,
    array_to_string(list_sort(list_distinct(list(a.color))), ',') AS colors,
    ($gib * 1073741824)::BIGINT AS limit_bytes
FROM selected_runs($run, $label, $module) AS r
JOIN allocations AS a ON a.run_id = r.run_id AND a.kind <> 'thread-local'
LEFT JOIN memory_spaces AS m ON m.backend = r.backend AND m.color = $color
LEFT JOIN memory_spaces AS s ON s.backend = r.backend AND s.color = a.color
WHERE a.color = $color OR s.memory = m.memory
GROUP BY a.run_id
ORDER BY needed_bytes DESC, a.run_id
LIMIT $top;

EXECUTE fits_in_memory(gib := 16.0, color := 0, top := 20, run := NULL, label := NULL, module := NULL);
