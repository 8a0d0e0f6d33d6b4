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
WITH spare AS MATERIALIZED (FROM spare_bytes(run, label, module)),
placed AS MATERIALIZED (
    SELECT v.run_id, v.value_id, v.allocation_index, v.offset_bytes, v.size_bytes, g.start_time, g.end_time
    FROM "values" AS v
    JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
    WHERE v.run_id IN (SELECT s.run_id FROM spare AS s) AND v.size_bytes > 0
)
SELECT s.run_id, s.advice, s.owner, s.value_id, s.from_time, s.to_time, s.end_byte - s.first_byte AS bytes, s.reason
FROM spare AS s
UNION ALL
SELECT
    s.run_id, s.advice, s.owner, s.value_id,
    greatest(s.from_time, o.start_time),
    least(s.to_time, o.end_time),
    greatest(s.first_byte, o.offset_bytes) - least(s.end_byte, o.offset_bytes + o.size_bytes),
    NULL
FROM spare AS s
JOIN placed AS o ON o.run_id = s.run_id AND o.allocation_index = s.allocation_index AND o.value_id <> s.value_id
    AND o.offset_bytes < s.end_byte AND o.offset_bytes + o.size_bytes > s.first_byte
    AND o.start_time <= s.to_time AND o.end_time >= s.from_time
-- What both would spare is taken back once.
LEFT JOIN spare AS t ON t.run_id = s.run_id AND t.advice = s.advice AND t.owner = s.owner AND t.value_id = o.value_id
    AND t.value_id > s.value_id
    AND t.from_time <= greatest(s.from_time, o.start_time) AND t.to_time >= least(s.to_time, o.end_time)
    AND t.first_byte <= greatest(s.first_byte, o.offset_bytes)
    AND t.end_byte >= least(s.end_byte, o.offset_bytes + o.size_bytes)
WHERE t.value_id IS NULL;
