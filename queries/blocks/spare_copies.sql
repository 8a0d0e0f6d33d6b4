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
CREATE OR REPLACE MACRO spare_copies(run := NULL, label := NULL, module := NULL) AS TABLE
SELECT
    c.run_id,
    'copy' AS advice,
    c.value_id,
    0 AS kept_bytes,
    gc.start_time AS from_time,
    least(gc.end_time, go.end_time) AS to_time,
    CASE WHEN o.shape = c.shape THEN 'copy of ' ELSE 'other layout of ' END || value_name(o.instruction, o.shape_index) AS reason
FROM selected_runs(run, label, module) AS r
JOIN ranges AS gc ON gc.run_id = r.run_id AND gc.peak_bytes > 0
JOIN "values" AS c ON c.run_id = gc.run_id AND c.value_id = gc.value_id
JOIN allocations AS ac ON ac.run_id = c.run_id AND ac.allocation_index = c.allocation_index
JOIN uses AS u ON u.run_id = c.run_id AND u.instruction = c.instruction AND u.operand_number = 0
JOIN "values" AS o ON o.run_id = u.run_id AND o.value_id = u.value_id
JOIN allocations AS ao ON ao.run_id = o.run_id AND ao.allocation_index = o.allocation_index
JOIN ranges AS go ON go.run_id = o.run_id AND go.value_id = o.value_id
WHERE c.opcode = 'copy'
  AND o.dtype = c.dtype AND o.dimensions = c.dimensions AND ao.color = ac.color
  AND NOT (ac.maybe_live_out AND ao.parameter_number IS NOT NULL)
  -- overwritten in place: its bytes go on as another value's
  AND NOT (go.handover_bytes > 0 AND go.end_time BETWEEN gc.start_time AND gc.end_time)
  AND NOT (gc.handover_bytes > 0 AND go.end_time > gc.end_time);
