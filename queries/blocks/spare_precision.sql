-- title: Bytes at the peak of floats that were converted from a narrower type.
-- note: From HLO text or protobuf: a convert, or a fusion whose result is one. Twice converted counts too (f32 from bf16
--   from f32): more digits than the narrower type has are not in it.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column kept_bytes BIGINT: Its bytes that would stay.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_precision() AS TABLE
WITH made AS (
    SELECT v.run_id, v.value_id, v.shape_index, v.size_bytes, v.dtype, v.element_bits, v.start_time, v.end_time,
        i.opcode, i.operands, i.called_computations
    FROM advised_values AS v
    JOIN instructions AS i ON i.run_id = v.run_id AND i.instruction = v.instruction
    WHERE v.dtype IN ('f32', 'f64') AND i.opcode IN ('convert', 'fusion')
),
converted AS (
    SELECT m.*, m.operands[1] AS source FROM made AS m WHERE m.opcode = 'convert'
    UNION ALL
    SELECT m.*, c.operands[1]
    FROM made AS m
    JOIN instructions AS o ON o.run_id = m.run_id AND o.computation = m.called_computations[1] AND o.is_root
    JOIN instructions AS c ON c.run_id = o.run_id AND c.opcode = 'convert' AND c.instruction =
        CASE o.opcode WHEN 'tuple' THEN o.operands[1 + try_cast(trim(m.shape_index, '{}') AS BIGINT)] ELSE o.instruction END
    WHERE m.opcode = 'fusion'
),
narrow AS (
    SELECT c.*, split_part(s.shape, '[', 1) AS source_dtype
    FROM converted AS c
    JOIN instructions AS s ON s.run_id = c.run_id AND s.instruction = c.source
)
SELECT
    n.run_id,
    'narrower type' AS advice,
    n.value_id,
    n.size_bytes * (CASE n.source_dtype WHEN 'f32' THEN 32 ELSE 16 END) // n.element_bits AS kept_bytes,
    n.start_time AS from_time,
    n.end_time AS to_time,
    n.dtype || ' made from ' || n.source_dtype AS reason
FROM narrow AS n
WHERE n.source_dtype IN ('bf16', 'f16') OR (n.dtype = 'f64' AND n.source_dtype = 'f32');
