-- title: Fragmentation of the temporary arenas
-- question: How far is each temporary arena from the bytes that are live in it?
-- needs: ranges
-- note: Fragmentation is a bracket, not one number. The lower bound counts an operand together with the result that reads
--   it (closed ranges, shared bytes once); the upper bound lets a value go at the slot of its last use (half-open ranges).
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = NULL: only arenas of this memory space
-- column run_id BIGINT: number of the run
-- column allocation_index BIGINT: number of the arena
-- column color BIGINT: memory space
-- column arena_bytes BIGINT [bytes]: size of the arena
-- column unused_least_bytes BIGINT [bytes]: arena minus peak, lower bound of the fragmentation
-- column unused_most_bytes BIGINT [bytes]: arena minus released peak, upper bound of the fragmentation
-- column least_percent DOUBLE [percent]: lower bound as a share of the arena
-- column most_percent DOUBLE [percent]: upper bound as a share of the arena
-- column peak_bytes BIGINT [bytes]: most bytes live in the arena, closed ranges
-- column released_peak_bytes BIGINT [bytes]: most bytes live in the arena, half-open ranges
-- column reuse DOUBLE [ratio]: sum of the sizes of all values placed in it, over its size
-- column packed_values BIGINT [count]: values placed in it
-- column module VARCHAR: module of the run
PREPARE fragmentation AS
WITH bounds AS MATERIALIZED (
    -- At its fullest an arena holds no less than its largest value, and no less than at the slot of the run's peak.
    -- What is free then is free at most.
    SELECT
        a.run_id,
        a.allocation_index,
        any_value(a.size_bytes) - greatest(
            max(v.size_bytes) FILTER (g.start_time IS NOT NULL),
            coalesce(sum(g.peak_bytes), 0)
        )::BIGINT AS free_bytes
    FROM selected_runs($run, $label, $module) AS r
    JOIN allocations AS a ON a.run_id = r.run_id AND a.kind = 'temp' AND a.size_bytes > 0
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    -- LEFT keeps the optimizer from joining ranges with allocations by run_id alone.
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
    WHERE $color IS NULL OR a.color = $color
    GROUP BY a.run_id, a.allocation_index
),
promising AS (
    SELECT b.run_id, b.allocation_index
    FROM bounds AS b
    ORDER BY b.free_bytes DESC, b.run_id, b.allocation_index
    LIMIT coalesce(50 * $top, 0)
),
cut AS MATERIALIZED (
    -- The $top-th greatest of these: arenas with a lower bound than that have no row to show.
    SELECT min(u.bytes) AS bytes
    FROM (
        SELECT o.size_bytes - o.peak_bytes AS bytes
        FROM occupancy_of((
            SELECT list({'run_id': p.run_id, 'allocation_index': p.allocation_index}) FROM promising AS p
        )) AS o
        WHERE o.peak_bytes IS NOT NULL
        ORDER BY bytes DESC
        LIMIT $top
    ) AS u
    HAVING count(*) >= $top
)
SELECT
    o.run_id,
    o.allocation_index,
    o.color,
    o.size_bytes AS arena_bytes,
    o.size_bytes - o.peak_bytes AS unused_least_bytes,
    o.size_bytes - o.released_peak_bytes AS unused_most_bytes,
    100.0 * (o.size_bytes - o.peak_bytes) / o.size_bytes AS least_percent,
    100.0 * (o.size_bytes - o.released_peak_bytes) / o.size_bytes AS most_percent,
    o.peak_bytes,
    o.released_peak_bytes,
    o.packed_bytes / o.size_bytes AS reuse,
    o.packed_values,
    r.module
FROM occupancy_of((
    SELECT list({'run_id': b.run_id, 'allocation_index': b.allocation_index})
    FROM bounds AS b
    LEFT JOIN cut AS c ON true
    WHERE c.bytes IS NULL OR b.free_bytes >= c.bytes
)) AS o
JOIN selected_runs() AS r ON r.run_id = o.run_id
WHERE o.peak_bytes IS NOT NULL
ORDER BY unused_least_bytes DESC, unused_most_bytes DESC, o.run_id, o.allocation_index
LIMIT $top;

EXECUTE fragmentation(top := 20, color := NULL, run := NULL, label := NULL, module := NULL);
