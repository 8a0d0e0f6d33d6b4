-- title: What fills VMEM
-- topic: arenas
-- question: What lies in VMEM, S(1), at the slot where it is fullest?
-- needs: ranges
-- reads: selected runs
-- note: VMEM is color 1 on a TPU (CMEM, color 3, on v4); on other backends a color means something else. The module with
--   the most memory of this color comes first. prefetches lists when data is copied there.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = 1: memory space
-- key: run_id, bytes, percent, value, shape, op_name
-- column run_id BIGINT: number of the run
-- column bytes BIGINT [bytes]: bytes of the value at that slot
-- column percent DOUBLE [share]: share of the bytes live in this memory space at that slot
-- column value VARCHAR: what lies there
-- column shape VARCHAR: its shape with layout
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction
-- column start_time BIGINT [slots] as start: first slot at which it is live
-- column end_time BIGINT [slots] as end: last slot at which it is live
-- column fullest_time BIGINT [slots] as fullest: slot at which this memory space is fullest
-- column allocated_bytes BIGINT [bytes]: allocations of this memory space
-- column space VARCHAR: name of the memory space, NULL if unknown
-- column module VARCHAR: module of the run
PREPARE vmem AS
WITH chosen AS (
    SELECT
        r.run_id, r.module, r.backend, p.peak_time, p.peak_bytes,
        sum(a.size_bytes)::BIGINT AS allocated_bytes
    FROM selected_runs($run, $label, $module) AS r
    JOIN color_peaks AS p ON p.run_id = r.run_id AND p.color = $color
    JOIN allocations AS a ON a.run_id = r.run_id AND a.color = $color AND a.kind <> 'thread-local'
    GROUP BY ALL
    -- Something lies in each of them when it is fullest, so that no more than $top can be shown.
    ORDER BY allocated_bytes DESC, r.run_id
    LIMIT $top
),
live AS (
    SELECT
        c.*, v.* EXCLUDE (run_id), g.start_time, g.end_time,
        CASE
            -- What a value hands over at its last slot counts for the one that takes it over.
            WHEN g.end_time = c.peak_time THEN v.size_bytes - g.handover_bytes
            -- Of values that share addresses for longer, as those of two branches do, the one below has them.
            ELSE greatest(0, v.offset_bytes + v.size_bytes - greatest(v.offset_bytes, coalesce(
                max(v.offset_bytes + v.size_bytes) FILTER (g.end_time > c.peak_time) OVER below, 0)))
        END AS bytes
    FROM chosen AS c
    JOIN allocations AS a ON a.run_id = c.run_id AND a.color = $color
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
        AND g.start_time <= c.peak_time AND g.end_time >= c.peak_time
    WINDOW below AS (
        PARTITION BY v.run_id, v.allocation_index ORDER BY v.offset_bytes, v.value_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
SELECT
    l.run_id,
    l.bytes,
    100.0 * l.bytes / l.peak_bytes AS percent,
    value_name(l.instruction, l.shape_index) AS "value",
    l.shape,
    l.op_name,
    l.opcode,
    l.start_time,
    l.end_time,
    l.peak_time AS fullest_time,
    l.allocated_bytes,
    s.space,
    l.module
FROM live AS l
LEFT JOIN memory_spaces AS s ON s.backend = l.backend AND s.color = $color
ORDER BY l.allocated_bytes DESC, l.run_id, l.bytes DESC, l.value_id
LIMIT $top;

EXECUTE vmem(top := 20, color := 1, run := NULL, label := NULL, module := NULL);
