-- title: Values that are live at the peak of their run, each byte once.
-- note: bytes_at_peak adds up to runs.peak_bytes: bytes that a value hands over to another one at that very slot are
--   counted with the other one. Runs without live ranges have no rows.
-- column run_id BIGINT: Number of the run.
-- column value_id BIGINT: Id of the value within the run.
-- column value VARCHAR: Defining instruction, with the shape index where the result is a tuple.
-- column bytes_at_peak BIGINT: Bytes of the value at the peak slot, padding included.
-- column peak_time BIGINT: Slot of the peak.
-- column allocation_index BIGINT: Allocation that holds it.
-- column kind VARCHAR: Kind of that allocation.
-- column color BIGINT: Memory space of that allocation.
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
CREATE OR REPLACE VIEW values_at_peak AS
SELECT
    p.run_id,
    p.value_id,
    p."value",
    p.bytes_at_peak,
    p.peak_time,
    p.allocation_index,
    a.kind,
    a.color,
    p.offset_bytes,
    p.size_bytes,
    p.logical_bytes,
    p.padding_bytes,
    p.start_time,
    p.end_time,
    p.shape,
    p.dtype,
    p.tiling,
    p.opcode,
    p.op_name,
    p.source_file,
    p.source_line,
    p.source_via
FROM buffers_at_peak AS p
-- LEFT, though every value has an allocation: it keeps the optimizer from joining ranges with allocations by run_id alone.
LEFT JOIN allocations AS a ON a.run_id = p.run_id AND a.allocation_index = p.allocation_index;
