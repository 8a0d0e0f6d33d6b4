-- title: Names of the memory spaces (colors) by backend.
-- note: What a color means depends on the backend; a color that is not listed has no known name.
-- column backend VARCHAR: cpu, gpu or tpu.
-- column color BIGINT: Number of the memory space.
-- column space VARCHAR: Its name.
-- column place VARCHAR: host or device.
CREATE OR REPLACE VIEW memory_spaces AS
SELECT s.backend, s.color, s.space, s.place
FROM (VALUES
    ('cpu', 0::BIGINT, 'host', 'host'),
    ('gpu', 0, 'HBM', 'device'),
    ('gpu', 1, 'collective', 'device'),
    ('gpu', 2, 'separate temp', 'device'),
    ('gpu', 5, 'pinned host', 'host'),
    ('gpu', 7, 'symmetric', 'device'),
    ('tpu', 0, 'HBM', 'device'),
    ('tpu', 1, 'VMEM', 'device'),
    ('tpu', 2, 'sync flags', 'device'),
    ('tpu', 3, 'CMEM', 'device'),
    ('tpu', 4, 'SMEM', 'device'),
    ('tpu', 5, 'pinned host', 'host'),
    ('tpu', 6, 'workspace register', 'device'),
    ('tpu', 7, 'SparseCore stack HBM', 'device'),
    ('tpu', 8, 'SparseCore sequencer flags', 'device'),
    ('tpu', 9, 'pinned HBM', 'device'),
    ('tpu', 10, 'SparseCore tile flags', 'device')
) AS s(backend, color, space, place);
