-- title: Values that are live at the peak of their run, without their allocation's kind and color.
-- note: As values_at_peak; a join with all allocations is saved, which takes longer than the rest.
-- column run_id BIGINT: Number of the run.
-- column value_id BIGINT: Id of the value within the run.
-- column value VARCHAR: Defining instruction, with the shape index where the result is a tuple.
-- column bytes_at_peak BIGINT: Bytes of the value at the peak slot, padding included.
-- column peak_time BIGINT: Slot of the peak.
-- column allocation_index BIGINT: Allocation that holds it.
-- column offset_bytes BIGINT: Start within the allocation, bytes.
-- column size_bytes BIGINT: Allocated size of the value, bytes.
-- column logical_bytes BIGINT: Size without padding, bytes; NULL for tuples.
-- column padding_bytes BIGINT: Padding, bytes; NULL for tuples and tokens.
-- column start_time BIGINT: First slot at which it is live.
-- column end_time BIGINT: Last slot at which it is live.
-- column shape VARCHAR: Shape with layout.
-- column dtype VARCHAR: Element type.
-- column tiling VARCHAR: Tiles of the layout; NULL if not tiled.
-- column opcode VARCHAR: Opcode of the defining instruction.
-- column op_name VARCHAR: Name that the framework gave the operation.
-- column source_file VARCHAR: Source file.
-- column source_line BIGINT: Source line.
-- column source_via VARCHAR: own, or whose line it inherits: fused, operand, user or caller.
CREATE OR REPLACE VIEW buffers_at_peak AS
SELECT
    v.run_id,
    v.value_id,
    value_name(v.instruction, v.shape_index) AS "value",
    g.peak_bytes AS bytes_at_peak,
    r.peak_time,
    v.allocation_index,
    v.offset_bytes,
    v.size_bytes,
    v.logical_bytes,
    v.padding_bytes,
    g.start_time,
    g.end_time,
    v.shape,
    v.dtype,
    v.tiling,
    v.opcode,
    v.op_name,
    v.source_file,
    v.source_line,
    v.source_via
FROM runs AS r
JOIN ranges AS g ON g.run_id = r.run_id AND g.peak_bytes IS NOT NULL
JOIN "values" AS v ON v.run_id = g.run_id AND v.value_id = g.value_id;
