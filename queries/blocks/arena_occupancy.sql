-- title: How full each temporary arena gets: its size against the bytes live in it.
-- note: peak_bytes counts an operand and the result that reads it together (closed ranges); released_peak_bytes lets a
--   value go at the slot of its last use (half-open ranges). What the arena really needs lies between the two.
-- column run_id BIGINT: Number of the run.
-- column allocation_index BIGINT: Number of the allocation.
-- column color BIGINT: Memory space.
-- column size_bytes BIGINT: Size of the arena, bytes.
-- column fullest_time BIGINT: First slot with the most bytes live in the arena.
-- column peak_bytes BIGINT: Bytes live at that slot (closed ranges), each byte once.
-- column released_peak_bytes BIGINT: Most bytes live at one slot when values go at their last use (half-open ranges).
-- column packed_bytes BIGINT: Sum of the sizes of all values placed in it: shows reuse, is not memory.
-- column packed_values BIGINT: Values placed in it, count.
CREATE OR REPLACE VIEW arena_occupancy AS
SELECT
    a.run_id,
    a.allocation_index,
    a.color,
    a.size_bytes,
    a.live_peak_time AS fullest_time,
    a.live_peak_bytes AS peak_bytes,
    a.released_peak_bytes,
    a.placed_bytes AS packed_bytes,
    a.placed_values AS packed_values
FROM allocations AS a
WHERE a.kind = 'temp';
