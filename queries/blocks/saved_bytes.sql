-- title: Steps that spare bytes at the peak of a run, with the peak computed anew without these bytes.
-- note: A step is an advice followed for all buffers of an owner; looked at are those that spare `least` bytes at the peak.
-- column run_id BIGINT: Number of the run.
-- column lowers VARCHAR: peak or total.
-- column advice VARCHAR: What could be done.
-- column owner VARCHAR: Source line, operation or instruction; the allocation's kind for the total.
-- column buffers BIGINT: Buffers concerned, count.
-- column spare_bytes BIGINT: Bytes spared at the slot of the peak.
-- column before_bytes BIGINT: The peak, or the total.
-- column after_bytes BIGINT: The same after the step.
-- column value_id BIGINT: Largest of the values; NULL for the total.
-- column reason VARCHAR: What in the dump shows it, of that value.
CREATE OR REPLACE MACRO saved_bytes(run := NULL, label := NULL, module := NULL, least := 1) AS TABLE
WITH runs AS MATERIALIZED (FROM selected_runs(run, label, module)),
freed AS MATERIALIZED (FROM freed_bytes()),
steps AS MATERIALIZED (
    SELECT
        f.run_id, f.advice, f.owner, r.peak_bytes,
        (sum(f.bytes) FILTER (r.peak_time BETWEEN f.from_time AND f.to_time))::BIGINT AS spare_bytes,
        count(DISTINCT f.value_id) AS buffers,
        arg_max({'value_id': f.value_id, 'reason': f.reason}, (f.bytes, -f.value_id)) AS largest
    FROM freed AS f
    JOIN runs AS r ON r.run_id = f.run_id
    GROUP BY f.run_id, f.advice, f.owner, r.peak_bytes
    HAVING spare_bytes >= least
),
curve AS MATERIALIZED (SELECT l.* FROM live_bytes AS l WHERE l.run_id IN (SELECT s.run_id FROM steps AS s)),
high AS (
    -- The peak after a step is at a slot at which the curve changes, or from which spared bytes are needed again.
    SELECT s.run_id, s.advice, s.owner, l.time, l.live_bytes
    FROM steps AS s
    JOIN curve AS l ON l.run_id = s.run_id AND l.live_bytes > s.peak_bytes - s.spare_bytes
    UNION
    SELECT s.run_id, s.advice, s.owner, f.to_time + 1, l.live_bytes
    FROM steps AS s
    JOIN freed AS f ON f.run_id = s.run_id AND f.advice = s.advice AND f.owner = s.owner
    ASOF JOIN curve AS l ON l.run_id = f.run_id AND l.time <= f.to_time + 1
    WHERE l.live_bytes > s.peak_bytes - s.spare_bytes
),
relief AS (
    -- What a step frees over time: a sum of changes, as live_bytes is.
    SELECT c.run_id, c.advice, c.owner, c.time, sum(c.bytes) OVER (
        PARTITION BY c.run_id, c.advice, c.owner ORDER BY c.time
    )::BIGINT AS bytes
    FROM (
        SELECT e.run_id, e.advice, e.owner, e.time, sum(e.bytes) AS bytes
        FROM (
            SELECT f.run_id, f.advice, f.owner,
                unnest([f.from_time, f.to_time + 1]) AS time, unnest([f.bytes, -f.bytes]) AS bytes
            FROM steps AS s
            JOIN freed AS f ON f.run_id = s.run_id AND f.advice = s.advice AND f.owner = s.owner
        ) AS e
        GROUP BY e.run_id, e.advice, e.owner, e.time
    ) AS c
),
still_live AS (
    SELECT h.run_id, h.advice, h.owner, max(h.live_bytes - coalesce(l.bytes, 0)) AS bytes
    FROM high AS h
    ASOF LEFT JOIN relief AS l ON l.run_id = h.run_id AND l.advice = h.advice AND l.owner = h.owner AND l.time <= h.time
    GROUP BY h.run_id, h.advice, h.owner
)
SELECT
    s.run_id, 'peak' AS lowers, s.advice, s.owner, s.buffers, s.spare_bytes, s.peak_bytes AS before_bytes,
    greatest(s.peak_bytes - s.spare_bytes, coalesce(a.bytes, 0))::BIGINT AS after_bytes,
    s.largest.value_id AS value_id, s.largest.reason AS reason
FROM steps AS s
LEFT JOIN still_live AS a ON a.run_id = s.run_id AND a.advice = s.advice AND a.owner = s.owner
UNION ALL
SELECT
    t.run_id, 'total', t.advice, t.owner, t.buffers, t.spare_bytes, s.bytes, s.bytes - t.spare_bytes, t.value_id, t.reason
FROM spare_total() AS t
JOIN (
    SELECT a.run_id, sum(a.size_bytes)::BIGINT AS bytes
    FROM runs AS r
    JOIN allocations AS a ON a.run_id = r.run_id
    GROUP BY a.run_id
) AS s ON s.run_id = t.run_id
WHERE t.spare_bytes >= least;
