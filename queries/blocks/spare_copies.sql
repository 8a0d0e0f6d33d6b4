-- title: Bytes at the peak that are copies in the same memory, of values that stay as they are while the copy is needed.
-- note: Left out are copies that must be: one of the two is overwritten while the other is still read, or a parameter is
--   copied into a result. Where the layout differs, whatever reads the copy would have to take the other layout.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column kept_bytes BIGINT: Its bytes that would stay.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_copies() AS TABLE
WITH copies AS MATERIALIZED (FROM advised_values AS v WHERE v.opcode = 'copy'),
operands AS MATERIALIZED (
    SELECT c.value_id AS copy_id, o.run_id, o.value_id, o.allocation_index, o.instruction, o.shape_index, o.shape
    FROM copies AS c
    JOIN uses AS u ON u.run_id = c.run_id AND u.instruction = c.instruction AND u.operand_number = 0
    JOIN "values" AS o ON o.run_id = u.run_id AND o.value_id = u.value_id
    WHERE o.dtype = c.dtype AND o.dimensions = c.dimensions
)
SELECT
    c.run_id,
    'copy' AS advice,
    c.value_id,
    0 AS kept_bytes,
    c.start_time AS from_time,
    least(c.end_time, g.end_time) AS to_time,
    CASE WHEN o.shape = c.shape THEN 'copy of ' ELSE 'other layout of ' END || value_name(o.instruction, o.shape_index) AS reason
FROM operands AS o
JOIN copies AS c ON c.run_id = o.run_id AND c.value_id = o.copy_id
JOIN ranges AS g ON g.run_id = o.run_id AND g.value_id = o.value_id
JOIN allocations AS a ON a.run_id = o.run_id AND a.allocation_index = o.allocation_index
WHERE a.color = c.color
  AND NOT (c.maybe_live_out AND a.parameter_number IS NOT NULL)
  -- overwritten in place: its bytes go on as another value's
  AND NOT (g.handover_bytes > 0 AND g.end_time BETWEEN c.start_time AND c.end_time)
  AND NOT (c.handover_bytes > 0 AND g.end_time > c.end_time);
