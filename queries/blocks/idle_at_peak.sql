-- title: Values that are live at the peak of their run though nothing uses them then, and when they are used before and after.
-- note: A loop or call uses its operand from the first slot of what it runs to its own slot; what is started (copy-start)
--   uses it until its result is gone. Where it is not known when a use happens, the value counts as used all the time.
-- column run_id BIGINT: Number of the run.
-- column value_id BIGINT: Id of the value within the run.
-- column start_time BIGINT: First slot at which it is live.
-- column end_time BIGINT: Last slot at which it is live.
-- column used_before BIGINT: Last slot before the peak at which it is used; NULL for none.
-- column used_after BIGINT: First slot after the peak at which it is used; NULL for none.
CREATE OR REPLACE MACRO idle_at_peak() AS TABLE
WITH live AS MATERIALIZED (
    SELECT g.run_id, g.value_id, g.start_time, g.end_time, r.peak_time
    FROM runs AS r
    JOIN ranges AS g ON g.run_id = r.run_id AND g.peak_bytes > 0
    WHERE r.has_values
),
steps AS (
    SELECT i.run_id, i.instruction, i.opcode,
        lag(s.time, 1, -1) OVER (PARTITION BY i.run_id, i.computation ORDER BY s.time) AS step_before
    FROM instructions AS i
    JOIN schedule AS s ON s.run_id = i.run_id AND s.instruction = i.instruction
    WHERE i.run_id IN (SELECT l.run_id FROM live AS l)
),
calls AS MATERIALIZED (
    -- The flattened schedule has what a loop or call runs right before it, after the step before of its own computation.
    SELECT p.run_id, p.instruction, p.step_before + 1 AS first_time
    FROM steps AS p
    WHERE p.opcode IN ('while', 'conditional', 'call')
),
used AS (
    SELECT
        l.run_id, l.value_id,
        CASE
            WHEN s.time IS NULL THEN l.start_time
            WHEN d.opcode IN ('while', 'conditional', 'call') THEN coalesce(c.first_time, l.start_time)
            ELSE s.time
        END AS first_time,
        CASE
            WHEN s.time IS NULL THEN l.end_time
            WHEN ends_with(d.opcode, '-start') THEN coalesce(g.end_time, l.end_time)
            ELSE s.time
        END AS last_time
    FROM live AS l
    JOIN uses AS u ON u.run_id = l.run_id AND u.value_id = l.value_id
    LEFT JOIN schedule AS s ON s.run_id = u.run_id AND s.instruction = u.instruction
    LEFT JOIN "values" AS d ON d.run_id = u.run_id AND d.instruction = u.instruction AND d.shape_index = '{}'
    LEFT JOIN ranges AS g ON g.run_id = d.run_id AND g.value_id = d.value_id
    LEFT JOIN calls AS c ON c.run_id = u.run_id AND c.instruction = u.instruction
)
SELECT
    l.run_id, l.value_id, l.start_time, l.end_time,
    max(u.last_time) FILTER (u.last_time < l.peak_time) AS used_before,
    min(u.first_time) FILTER (u.first_time > l.peak_time) AS used_after
FROM live AS l
LEFT JOIN used AS u ON u.run_id = l.run_id AND u.value_id = l.value_id
GROUP BY l.run_id, l.value_id, l.start_time, l.end_time, l.peak_time
HAVING count(*) FILTER (u.first_time <= l.peak_time AND u.last_time >= l.peak_time) = 0;
