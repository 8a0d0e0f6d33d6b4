-- title: The figures of runs by which two are compared: total, peaks, memory spaces, kinds, padding and fragmentation.
-- note: Sums of allocations but for the peaks and the padding. run is a run_id or several as '3,7'.
-- column run_id BIGINT: Number of the run.
-- column part VARCHAR: memory, memory space or kind.
-- column figure VARCHAR: total, resident peak, live peak, padding at the peak, unused in arenas; the space; the kind.
-- column bytes BIGINT: Bytes; NULL where the dump does not tell.
CREATE OR REPLACE MACRO run_figures(run) AS TABLE
WITH chosen AS MATERIALIZED (
    FROM selected_runs(run)
),
held AS MATERIALIZED (
    SELECT a.run_id, a.kind, a.color, a.size_bytes, a.live_peak_bytes
    FROM allocations AS a
    WHERE a.run_id IN (SELECT c.run_id FROM chosen AS c)
),
padded AS (
    SELECT
        p.run_id,
        -- A value that hands part of its bytes over at the peak keeps its padding in proportion.
        sum((p.padding_bytes - dynamic_size_bytes(p.shape, p.tiling))::HUGEINT * p.bytes_at_peak // p.size_bytes)::BIGINT AS bytes
    FROM buffers_at_peak AS p
    WHERE p.padding_bytes > 0 AND p.run_id IN (SELECT c.run_id FROM chosen AS c)
    GROUP BY p.run_id
),
arenas AS (
    -- NULL if one of them is not known.
    SELECT h.run_id, CASE WHEN count(*) = count(h.live_peak_bytes) THEN sum(h.size_bytes - h.live_peak_bytes)::BIGINT END AS unused_bytes
    FROM held AS h
    WHERE h.kind = 'temp'
    GROUP BY h.run_id
)
SELECT c.run_id, 'memory' AS part, f.figure, f.bytes
FROM (
    SELECT
        c.run_id,
        unnest(['total', 'resident peak', 'live peak', 'padding at the peak', 'unused in arenas']) AS figure,
        unnest([
            t.bytes, c.resident_peak_bytes, c.peak_bytes,
            CASE WHEN c.peak_bytes IS NOT NULL THEN coalesce(p.bytes, 0) END,
            CASE WHEN r.run_id IS NULL THEN 0 ELSE r.unused_bytes END
        ]) AS bytes
    FROM chosen AS c
    LEFT JOIN (SELECT h.run_id, sum(h.size_bytes)::BIGINT AS bytes FROM held AS h GROUP BY h.run_id) AS t ON t.run_id = c.run_id
    LEFT JOIN padded AS p ON p.run_id = c.run_id
    LEFT JOIN arenas AS r ON r.run_id = c.run_id
) AS f
JOIN chosen AS c ON c.run_id = f.run_id
UNION ALL
SELECT h.run_id, 'memory space', coalesce(any_value(s.space), 'color ' || h.color), sum(h.size_bytes)::BIGINT
FROM held AS h
JOIN chosen AS c ON c.run_id = h.run_id
LEFT JOIN memory_spaces AS s ON s.backend = c.backend AND s.color = h.color
GROUP BY h.run_id, h.color
UNION ALL
SELECT h.run_id, 'kind', h.kind, sum(h.size_bytes)::BIGINT
FROM held AS h
GROUP BY h.run_id, h.kind;
