-- title: Bytes at the peak of constants, which each program that embeds them keeps for itself.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column kept_bytes BIGINT: Its bytes that would stay.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_constants() AS TABLE
SELECT
    v.run_id, 'constant' AS advice, v.value_id, 0 AS kept_bytes, v.start_time AS from_time, v.end_time AS to_time,
    'embedded in the program' AS reason
FROM advised_values AS v
WHERE v.is_constant;
