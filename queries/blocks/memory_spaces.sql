-- title: Names of the memory spaces (colors) by backend, and the physical memory that each one lies in.
-- note: What a color means depends on the backend; a color that is not listed has no known name. Colors with the same
--   memory take their bytes from one another: to see whether a program fits, add them up.
-- column backend VARCHAR: cpu, gpu or tpu.
-- column color BIGINT: Number of the memory space.
-- column space VARCHAR: Its name.
-- column place VARCHAR: host or device.
-- column memory VARCHAR: Physical memory that it lies in.
-- column source VARCHAR: Where the meaning of the color is known from.
CREATE OR REPLACE VIEW memory_spaces AS
SELECT s.backend, s.color, s.space, s.place, s.memory, s.source
FROM (VALUES
    ('cpu', 0::BIGINT, 'host', 'host', 'host memory', 'XLA:CPU colors nothing'),
    ('gpu', 0, 'HBM', 'device', 'device memory', 'XLA gpu_memory_space_assignment.h: kDefault'),
    ('gpu', 1, 'collective', 'device', 'device memory', 'XLA gpu_memory_space_assignment.h: kCollective (ncclMemAlloc)'),
    ('gpu', 2, 'separate temp', 'device', 'device memory',
        'XLA gpu_memory_space_assignment.h: kTempBuffer (xla_gpu_temp_buffer_use_separate_color)'),
    ('gpu', 5, 'pinned host', 'host', 'host memory', 'XLA layout.h: kHostMemorySpace'),
    ('gpu', 7, 'symmetric', 'device', 'device memory', 'dumps of jaxlib 0.12: operands of collectives, which NCCL shares'),
    ('tpu', 0, 'HBM', 'device', 'HBM', 'XProf memory viewer; dumps of TPU v2 to 7x'),
    ('tpu', 1, 'VMEM', 'device', 'VMEM', 'XProf memory viewer; dumps of TPU v5e to 7x'),
    ('tpu', 2, 'sync flags', 'device', 'sync flags', 'XProf memory viewer; dumps: u32[] of copy-start and the like'),
    ('tpu', 3, 'CMEM', 'device', 'CMEM', 'XProf memory viewer; dumps of TPU v4'),
    ('tpu', 4, 'SMEM', 'device', 'SMEM', 'XProf memory viewer'),
    ('tpu', 5, 'pinned host', 'host', 'host memory', 'XLA layout.h: kHostMemorySpace'),
    ('tpu', 6, 'workspace register', 'device', 'workspace register', 'dumps: scalars of conditions and comparators'),
    ('tpu', 7, 'SparseCore stack HBM', 'device', 'HBM', 'XProf memory viewer'),
    ('tpu', 8, 'SparseCore sequencer flags', 'device', 'SparseCore sequencer flags', 'XProf memory viewer'),
    ('tpu', 9, 'pinned HBM', 'device', 'HBM', 'its name'),
    ('tpu', 10, 'SparseCore tile flags', 'device', 'SparseCore tile flags', 'XProf memory viewer')
) AS s(backend, color, space, place, memory, source);
