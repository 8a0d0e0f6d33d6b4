-- title: Bytes at the peak of values that the same operation makes from the same operands as another one.
-- note: The instruction's text is compared, without name and metadata; so two fusions are alike only if they call the same
--   computation. Left out is what may give another result each time. Of those alike, the one that lives longest stays.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column kept_bytes BIGINT: Its bytes that would stay.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_duplicates() AS TABLE
WITH made AS (
    SELECT v.run_id, v.value_id, v.instruction, v.start_time, v.end_time,
        regexp_replace(
            v.instruction_text, '^[^=]* = |, (metadata|backend_config|frontend_attributes)=\{.*$', '', 'g'
        ) AS operation
    FROM advised_values AS v
    WHERE v.shape_index = '{}' AND v.dimensions IS NOT NULL AND v.instruction_text IS NOT NULL
      AND v.opcode NOT IN ('parameter', 'constant', 'custom-call', 'infeed', 'recv-done', 'while', 'conditional', 'call')
      AND NOT starts_with(v.opcode, 'rng')
),
numbered AS (
    SELECT m.*,
        first_value(m.instruction) OVER alike AS kept,
        first_value(m.start_time) OVER alike AS kept_start_time,
        row_number() OVER alike AS number
    FROM made AS m
    WINDOW alike AS (PARTITION BY m.run_id, m.operation ORDER BY m.end_time DESC, m.value_id)
)
SELECT
    n.run_id, 'duplicate' AS advice, n.value_id, 0 AS kept_bytes,
    greatest(n.start_time, n.kept_start_time) AS from_time, n.end_time AS to_time,
    'the same as ' || n.kept AS reason
FROM numbered AS n
WHERE n.number > 1;
