-- title: How full allocations get: their size against the bytes live in them.
-- note: arenas is a list such as [{'run_id': 1, 'allocation_index': 4}]. What is not asked for costs next to nothing.
-- column run_id BIGINT: Number of the run.
-- column allocation_index BIGINT: Number of the allocation.
-- column color BIGINT: Memory space.
-- column size_bytes BIGINT: Size of the arena, bytes.
-- column fullest_time BIGINT: First slot with the most bytes live in the arena.
-- column peak_bytes BIGINT: Bytes live at that slot (closed ranges), each byte once.
-- column released_peak_bytes BIGINT: Most bytes live at one slot when values go at their last use (half-open ranges).
-- column packed_bytes BIGINT: Sum of the sizes of all values placed in it: shows reuse, is not memory.
-- column packed_values BIGINT: Values placed in it, count.
CREATE OR REPLACE MACRO occupancy_of(arenas) AS TABLE
WITH arenas AS MATERIALIZED (
    SELECT a.run_id, a.allocation_index, a.color, a.size_bytes
    FROM (SELECT unnest(arenas) AS one) AS u
    JOIN allocations AS a ON a.run_id = u.one.run_id AND a.allocation_index = u.one.allocation_index
),
placed AS (
    SELECT
        v.run_id,
        v.allocation_index,
        v.size_bytes,
        g.start_time,
        g.end_time,
        g.gained_bytes,
        g.handover_bytes
    FROM arenas AS a
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
),
changes AS (
    SELECT e.run_id, e.allocation_index, e.time, sum(e.closed)::BIGINT AS closed, sum(e.released)::BIGINT AS released
    FROM (
        SELECT
            p.run_id,
            p.allocation_index,
            unnest([p.start_time, p.end_time, p.end_time + 1]) AS time,
            unnest([p.gained_bytes, 0, p.handover_bytes - p.size_bytes]) AS closed,
            unnest([p.gained_bytes, p.handover_bytes - p.size_bytes, 0]) AS released
        FROM placed AS p
        WHERE p.start_time IS NOT NULL
    ) AS e
    GROUP BY e.run_id, e.allocation_index, e.time
),
curve AS (
    SELECT
        c.run_id,
        c.allocation_index,
        c.time,
        sum(c.closed) OVER slots::BIGINT AS closed,
        sum(c.released) OVER slots::BIGINT AS released
    FROM changes AS c
    WINDOW slots AS (PARTITION BY c.run_id, c.allocation_index ORDER BY c.time)
),
fullest AS (
    SELECT
        c.run_id,
        c.allocation_index,
        max(c.closed) AS peak_bytes,
        arg_min(c.time, (-c.closed, c.time)) AS fullest_time,
        max(c.released) AS released_peak_bytes
    FROM curve AS c
    GROUP BY c.run_id, c.allocation_index
),
packed AS (
    SELECT p.run_id, p.allocation_index, sum(p.size_bytes)::BIGINT AS bytes, count(*) AS number
    FROM placed AS p
    GROUP BY p.run_id, p.allocation_index
)
SELECT
    a.run_id,
    a.allocation_index,
    a.color,
    a.size_bytes,
    f.fullest_time,
    f.peak_bytes,
    f.released_peak_bytes,
    coalesce(k.bytes, 0) AS packed_bytes,
    coalesce(k.number, 0) AS packed_values
FROM arenas AS a
LEFT JOIN fullest AS f ON f.run_id = a.run_id AND f.allocation_index = a.allocation_index
LEFT JOIN packed AS k ON k.run_id = a.run_id AND k.allocation_index = a.allocation_index;
