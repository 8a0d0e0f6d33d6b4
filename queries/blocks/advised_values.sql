-- title: Values that are live at the peak of their run, with what the blocks spare_... look at.
-- column run_id BIGINT: Number of the run.
-- column value_id BIGINT: Id of the value within the run.
-- column instruction VARCHAR: Defining instruction.
-- column shape_index VARCHAR: Which part of its result.
-- column instruction_text VARCHAR: Its HLO text; NULL if unknown.
-- column opcode VARCHAR: Its opcode.
-- column shape VARCHAR: Shape with layout.
-- column dtype VARCHAR: Element type.
-- column element_bits BIGINT: Bits of an element.
-- column dimensions BIGINT[]: Dimensions.
-- column tiling VARCHAR: Tiles of the layout; NULL if not tiled.
-- column size_bytes BIGINT: Allocated size of the value, bytes.
-- column logical_bytes BIGINT: Size without padding, bytes; NULL for tuples.
-- column padding_bytes BIGINT: Padding, bytes; NULL for tuples and tokens.
-- column start_time BIGINT: First slot at which it is live.
-- column end_time BIGINT: Last slot at which it is live.
-- column handover_bytes BIGINT: Bytes that other values own at its end.
-- column peak_time BIGINT: Slot of the peak.
-- column schedule_length BIGINT: Slots of the schedule.
-- column has_values BOOLEAN: Uses of the run's values are known.
-- column color BIGINT: Memory space of the allocation.
-- column is_constant BOOLEAN: The allocation is a constant.
-- column is_parameter BOOLEAN: The allocation is a parameter's.
-- column maybe_live_out BOOLEAN: The allocation leaves the program.
CREATE OR REPLACE VIEW advised_values AS
SELECT
    v.run_id,
    v.value_id,
    v.instruction,
    v.shape_index,
    v.instruction_text,
    v.opcode,
    v.shape,
    v.dtype,
    v.element_bits,
    v.dimensions,
    v.tiling,
    v.size_bytes,
    v.logical_bytes,
    v.padding_bytes,
    g.start_time,
    g.end_time,
    g.handover_bytes,
    r.peak_time,
    r.schedule_length,
    r.has_values,
    a.color,
    a.is_constant,
    a.parameter_number IS NOT NULL AS is_parameter,
    a.maybe_live_out
FROM runs AS r
JOIN ranges AS g ON g.run_id = r.run_id AND g.peak_bytes > 0
JOIN "values" AS v ON v.run_id = g.run_id AND v.value_id = g.value_id
-- LEFT, though every value has an allocation: an inner join would be made with ranges, by run_id alone.
LEFT JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index;
