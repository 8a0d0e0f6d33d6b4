-- title: Fragmentation of the temporary arenas
-- topic: arenas
-- question: How far is each temporary arena from the bytes that are live in it?
-- needs: ranges
-- reads: selected runs
-- note: Fragmentation is a bracket, not one number. The lower bound counts an operand together with the result that reads
--   it (closed ranges, shared bytes once); the upper bound lets a value go at the slot of its last use (half-open ranges).
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = NULL: only arenas of this memory space
-- key: run_id, allocation_index, arena_bytes, least_percent, most_percent, unused_least_bytes, module
-- column run_id BIGINT: number of the run
-- column allocation_index BIGINT as alloc: number of the arena
-- column color BIGINT: memory space
-- column arena_bytes BIGINT [bytes]: size of the arena
-- column unused_least_bytes BIGINT [bytes] as unused: arena minus peak, lower bound of the fragmentation
-- column unused_most_bytes BIGINT [bytes] as to: arena minus released peak, upper bound of the fragmentation
-- column least_percent DOUBLE [share] as share: lower bound as a share of the arena
-- column most_percent DOUBLE [share] as to_share: upper bound as a share of the arena
-- column peak_bytes BIGINT [bytes]: most bytes live in the arena, closed ranges
-- column released_peak_bytes BIGINT [bytes] as peak_half: most bytes live in the arena, half-open ranges
-- column reuse DOUBLE [ratio]: sum of the sizes of all values placed in it, over its size
-- column packed_values BIGINT [count] as values: values placed in it
-- column module VARCHAR: module of the run
PREPARE fragmentation AS
SELECT
    a.run_id,
    a.allocation_index,
    a.color,
    a.size_bytes AS arena_bytes,
    a.size_bytes - a.live_peak_bytes AS unused_least_bytes,
    a.size_bytes - a.released_peak_bytes AS unused_most_bytes,
    100.0 * (a.size_bytes - a.live_peak_bytes) / a.size_bytes AS least_percent,
    100.0 * (a.size_bytes - a.released_peak_bytes) / a.size_bytes AS most_percent,
    a.live_peak_bytes AS peak_bytes,
    a.released_peak_bytes,
    a.placed_bytes / a.size_bytes AS reuse,
    a.placed_values AS packed_values,
    r.module
FROM selected_runs($run, $label, $module) AS r
JOIN allocations AS a USING (run_id)
WHERE a.kind = 'temp'
  AND a.size_bytes > 0
  AND a.live_peak_bytes IS NOT NULL
  AND ($color IS NULL OR a.color = $color)
ORDER BY unused_least_bytes DESC, unused_most_bytes DESC, a.run_id, a.allocation_index
LIMIT $top;

EXECUTE fragmentation(top := 20, color := NULL, run := NULL, label := NULL, module := NULL);
