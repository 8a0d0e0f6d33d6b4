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
        r.peak_bytes - spare_bytes AS least_bytes,
        count(DISTINCT f.value_id) AS buffers,
        arg_max({'value_id': f.value_id, 'reason': f.reason}, (f.bytes, -f.value_id)) AS largest
    FROM freed AS f
    JOIN runs AS r ON r.run_id = f.run_id
    GROUP BY f.run_id, f.advice, f.owner, r.peak_bytes
    HAVING spare_bytes >= least
),
changes AS (
    -- Of the curve what is above the least that a step could leave, and what the step frees.
    SELECT
        s.run_id, s.advice, s.owner, l.time,
        greatest(l.live_bytes, s.least_bytes) - greatest(l.live_before, s.least_bytes) AS above, 0 AS freed
    FROM steps AS s
    JOIN (
        SELECT l.*, lag(l.live_bytes, 1, 0) OVER (PARTITION BY l.run_id ORDER BY l.time) AS live_before
        FROM live_bytes AS l
        WHERE l.run_id IN (SELECT s.run_id FROM steps AS s)
    ) AS l ON l.run_id = s.run_id AND greatest(l.live_bytes, l.live_before) > s.least_bytes
    UNION ALL
    SELECT f.run_id, f.advice, f.owner, unnest([f.from_time, f.to_time + 1]), 0, unnest([f.bytes, -f.bytes])
    FROM freed AS f
),
still_live AS (
    SELECT c.run_id, c.advice, c.owner, max(c.above - c.freed) FILTER (c.above > 0) AS bytes
    FROM (
        SELECT e.run_id, e.advice, e.owner, sum(sum(e.above)) OVER until AS above, sum(sum(e.freed)) OVER until AS freed
        FROM changes AS e
        GROUP BY e.run_id, e.advice, e.owner, e.time
        WINDOW until AS (PARTITION BY e.run_id, e.advice, e.owner ORDER BY e.time)
    ) AS c
    GROUP BY c.run_id, c.advice, c.owner
)
SELECT
    s.run_id, 'peak' AS lowers, s.advice, s.owner, s.buffers, s.spare_bytes, s.peak_bytes AS before_bytes,
    (s.least_bytes + greatest(l.bytes, 0))::BIGINT AS after_bytes,
    s.largest.value_id AS value_id, s.largest.reason AS reason
FROM steps AS s
JOIN still_live AS l ON l.run_id = s.run_id AND l.advice = s.advice AND l.owner = s.owner
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
