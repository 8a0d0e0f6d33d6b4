-- title: Bytes at the peak that wait to be used: recompute or offload them until then, or drop what only leaves the program.
-- note: recompute: made by the program, next used after the peak. offload: a parameter, next used after the peak. drop
--   output: a result of its own memory that nothing reads after the peak. Each waits for a twentieth of the schedule or more.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column kept_bytes BIGINT: Its bytes that would stay.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_idle() AS TABLE
SELECT
    i.run_id,
    CASE
        WHEN v.opcode = 'parameter' THEN 'offload'
        WHEN i.used_after IS NULL THEN 'drop output'
        ELSE 'recompute'
    END AS advice,
    i.value_id,
    0 AS kept_bytes,
    -- What makes a value uses it; a parameter is there from the start.
    coalesce(i.used_before + 1, i.start_time + (v.opcode <> 'parameter')::BIGINT) AS from_time,
    coalesce(i.used_after - 1, i.end_time) AS to_time,
    CASE
        WHEN i.used_before IS NOT NULL THEN 'used at slot ' || i.used_before
        WHEN v.opcode = 'parameter' THEN 'not used'
        ELSE 'made at slot ' || i.start_time
    END || coalesce(', next at ' || i.used_after, ', not read again') AS reason
FROM idle_at_peak() AS i
JOIN advised_values AS v ON v.run_id = i.run_id AND v.value_id = i.value_id
WHERE NOT v.is_constant
  AND (i.used_after IS NOT NULL OR (v.maybe_live_out AND NOT v.is_parameter))
  AND 20 * (to_time - from_time + 1) >= v.schedule_length;
