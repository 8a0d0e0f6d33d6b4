-- title: What live bytes would lose at which slots if an advice were followed for all buffers of an owner.
-- note: Rows with negative bytes take back what other values hold of the same addresses at that time, so that no byte is
--   spared twice, nor one that stays. Where three values share bytes at one slot it takes back too much: never too little.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column owner VARCHAR: Source line, operation or instruction.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column from_time BIGINT: First slot.
-- column to_time BIGINT: Last slot.
-- column bytes BIGINT: Bytes that would not be live; negative for those that stay.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO freed_bytes(run := NULL, label := NULL, module := NULL) AS TABLE
WITH runs AS MATERIALIZED (FROM selected_runs(run, label, module)),
placed AS MATERIALIZED (
    -- Of two values that share bytes, the one that comes later gains fewer than its size: most values share none.
    SELECT v.run_id, v.value_id, v.allocation_index, v.offset_bytes, v.size_bytes, g.start_time, g.end_time,
        g.gained_bytes < v.size_bytes AS is_late
    FROM runs AS r
    JOIN ranges AS g ON g.run_id = r.run_id
    JOIN "values" AS v ON v.run_id = g.run_id AND v.value_id = g.value_id
    WHERE v.size_bytes > 0
),
spare AS MATERIALIZED (
    SELECT s.*, p.is_late
    FROM spare_bytes() AS s
    JOIN placed AS p ON p.run_id = s.run_id AND p.value_id = s.value_id
),
pairs AS (
    SELECT s.*, o.value_id AS other_id, o.offset_bytes, o.size_bytes, o.start_time, o.end_time
    FROM spare AS s
    JOIN placed AS o ON o.run_id = s.run_id AND o.allocation_index = s.allocation_index AND o.is_late
        AND o.value_id <> s.value_id AND o.offset_bytes < s.end_byte AND o.offset_bytes + o.size_bytes > s.first_byte
        AND o.start_time <= s.to_time AND o.end_time >= s.from_time
    UNION ALL
    SELECT s.*, o.value_id, o.offset_bytes, o.size_bytes, o.start_time, o.end_time
    FROM spare AS s
    JOIN placed AS o ON o.run_id = s.run_id AND o.allocation_index = s.allocation_index AND NOT o.is_late
        AND o.value_id <> s.value_id AND o.offset_bytes < s.end_byte AND o.offset_bytes + o.size_bytes > s.first_byte
        AND o.start_time <= s.to_time AND o.end_time >= s.from_time
    WHERE s.is_late
)
SELECT s.run_id, s.advice, s.owner, s.value_id, s.from_time, s.to_time, s.end_byte - s.first_byte AS bytes, s.reason
FROM spare AS s
UNION ALL
SELECT p.run_id, p.advice, p.owner, p.value_id, p.since, p.until, p.low - p.high, NULL
FROM (
    SELECT
        q.*,
        greatest(q.from_time, q.start_time) AS since,
        least(q.to_time, q.end_time) AS until,
        greatest(q.first_byte, q.offset_bytes) AS low,
        least(q.end_byte, q.offset_bytes + q.size_bytes) AS high
    FROM pairs AS q
) AS p
-- What both would spare is taken back once.
LEFT JOIN spare AS t ON t.run_id = p.run_id AND t.advice = p.advice AND t.owner = p.owner AND t.value_id = p.other_id
    AND t.value_id > p.value_id AND t.from_time <= p.since AND t.to_time >= p.until AND t.first_byte <= p.low AND t.end_byte >= p.high
WHERE t.value_id IS NULL;
