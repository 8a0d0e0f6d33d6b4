-- title: What fills VMEM
-- topic: arenas
-- question: What lies in VMEM, S(1), at the slot where it is fullest?
-- needs: ranges
-- note: VMEM is color 1 on a TPU (CMEM, color 3, on v4); on other backends a color means something else. The module with
--   the most memory of this color comes first. prefetches tells when data is copied there.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = 1: memory space
-- column run_id BIGINT: number of the run
-- column bytes BIGINT [bytes]: bytes of the value at that slot
-- column percent DOUBLE [percent]: share of the bytes live in this memory space at that slot
-- column value VARCHAR: what lies there
-- column shape VARCHAR: its shape with layout
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction
-- column start_time BIGINT [slots]: first slot at which it is live
-- column end_time BIGINT [slots]: last slot at which it is live
-- column fullest_time BIGINT [slots]: slot at which this memory space is fullest
-- column allocated_bytes BIGINT [bytes]: allocations of this memory space
-- column space VARCHAR: name of the memory space, NULL if unknown
-- column module VARCHAR: module of the run
PREPARE vmem AS
WITH chosen AS (
    -- Every run gives at least one row, so no more than $top runs can be shown.
    SELECT r.run_id, any_value(r.module) AS module, any_value(r.backend) AS backend,
        sum(a.size_bytes)::BIGINT AS allocated_bytes
    FROM selected_runs($run, $label, $module) AS r
    JOIN allocations AS a ON a.run_id = r.run_id AND a.color = $color AND a.kind <> 'thread-local' AND a.size_bytes > 0
    WHERE r.has_ranges
    GROUP BY r.run_id
    ORDER BY allocated_bytes DESC, r.run_id
    LIMIT $top
),
placed AS (
    SELECT
        c.module, c.backend, c.allocated_bytes,
        v.run_id, v.allocation_index, v.value_id, v.instruction, v.shape_index, v.offset_bytes, v.size_bytes, v.opcode,
        v.shape, v.op_name, g.start_time, g.end_time, g.gained_bytes, g.handover_bytes
    FROM chosen AS c
    JOIN allocations AS a ON a.run_id = c.run_id AND a.color = $color
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    -- LEFT keeps the optimizer from joining ranges with allocations by run_id alone.
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
),
changes AS (
    SELECT e.run_id, e.time, sum(e.bytes) AS bytes
    FROM (
        SELECT
            p.run_id,
            unnest([p.start_time, p.end_time + 1]) AS time,
            unnest([p.gained_bytes, p.handover_bytes - p.size_bytes]) AS bytes
        FROM placed AS p
    ) AS e
    WHERE e.bytes <> 0 AND e.time IS NOT NULL
    GROUP BY e.run_id, e.time
),
curve AS (
    SELECT c.run_id, c.time, (sum(c.bytes) OVER (PARTITION BY c.run_id ORDER BY c.time))::BIGINT AS bytes
    FROM changes AS c
),
fullest AS (
    SELECT c.run_id, arg_min(c.time, (-c.bytes, c.time)) AS time, max(c.bytes) AS bytes
    FROM curve AS c
    GROUP BY c.run_id
),
live AS (
    SELECT
        p.*,
        f.time AS fullest_time,
        f.bytes AS fullest_bytes,
        CASE
            WHEN p.end_time = f.time THEN p.size_bytes - p.handover_bytes
            -- What two values hold that both live on counts for the one at the lower address.
            ELSE greatest(0, p.offset_bytes + p.size_bytes - greatest(p.offset_bytes, coalesce(
                max(p.offset_bytes + p.size_bytes) OVER (
                    PARTITION BY p.run_id, p.allocation_index, p.end_time = f.time
                    ORDER BY p.offset_bytes, p.value_id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ), 0)))
        END AS bytes
    FROM placed AS p
    JOIN fullest AS f USING (run_id)
    WHERE p.start_time <= f.time AND p.end_time >= f.time
)
SELECT
    p.run_id,
    p.bytes,
    100.0 * p.bytes / nullif(p.fullest_bytes, 0) AS percent,
    value_name(p.instruction, p.shape_index) AS "value",
    p.shape,
    p.op_name,
    p.opcode,
    p.start_time,
    p.end_time,
    p.fullest_time,
    p.allocated_bytes,
    s.space,
    p.module
FROM live AS p
LEFT JOIN memory_spaces AS s ON s.backend = p.backend AND s.color = $color
ORDER BY p.allocated_bytes DESC, p.run_id, p.bytes DESC, p.value_id
LIMIT $top;

EXECUTE vmem(top := 20, color := 1, run := NULL, label := NULL, module := NULL);
