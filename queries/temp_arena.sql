-- title: What fills the temporary arena
-- question: What lies in a temporary arena at the slot where it is fullest, and where?
-- needs: ranges
-- note: Only values that are live at that slot are shown; the values placed in an arena over time add up to several times
--   its size. Bytes shared at that slot count once. The largest arena comes first.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = NULL: only arenas of this memory space
-- column run_id BIGINT: number of the run
-- column allocation_index BIGINT: number of the arena
-- column bytes BIGINT [bytes]: bytes of the value at that slot
-- column percent DOUBLE [percent]: share of the arena
-- column offset_bytes BIGINT [bytes]: where it starts in the arena
-- column value VARCHAR: what lies there
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction
-- column shape VARCHAR: its shape with layout
-- column start_time BIGINT [slots]: first slot at which it is live
-- column end_time BIGINT [slots]: last slot at which it is live
-- column fullest_time BIGINT [slots]: slot at which the arena is fullest
-- column arena_bytes BIGINT [bytes]: size of the arena
-- column color BIGINT: memory space
-- column module VARCHAR: module of the run
PREPARE temp_arena AS
WITH arenas AS (
    -- Every arena gives at least one row, so no more than the $top largest can be shown.
    SELECT a.run_id, a.allocation_index, a.size_bytes, a.color, r.module
    FROM selected_runs($run, $label, $module) AS r
    JOIN allocations AS a ON a.run_id = r.run_id AND a.kind = 'temp' AND a.size_bytes > 0
    WHERE r.has_ranges
      AND ($color IS NULL OR a.color = $color)
    ORDER BY a.size_bytes DESC, a.run_id, a.allocation_index
    LIMIT $top
),
placed AS (
    SELECT
        a.run_id, a.allocation_index, a.size_bytes AS arena_bytes, a.color, a.module,
        v.value_id, v.instruction, v.shape_index, v.size_bytes, v.offset_bytes, v.opcode, v.shape, v.op_name,
        v.source_file, v.source_line, v.source_via,
        g.start_time, g.end_time, g.gained_bytes, g.handover_bytes
    FROM arenas AS a
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
),
changes AS (
    SELECT e.run_id, e.allocation_index, e.time, sum(e.bytes) AS bytes
    FROM (
        SELECT
            p.run_id,
            p.allocation_index,
            unnest([p.start_time, p.end_time + 1]) AS time,
            unnest([p.gained_bytes, p.handover_bytes - p.size_bytes]) AS bytes
        FROM placed AS p
    ) AS e
    WHERE e.bytes <> 0
    GROUP BY e.run_id, e.allocation_index, e.time
),
curve AS (
    SELECT
        c.run_id,
        c.allocation_index,
        c.time,
        sum(c.bytes) OVER (PARTITION BY c.run_id, c.allocation_index ORDER BY c.time) AS bytes
    FROM changes AS c
),
fullest AS (
    SELECT c.run_id, c.allocation_index, arg_min(c.time, (-c.bytes, c.time)) AS time
    FROM curve AS c
    GROUP BY c.run_id, c.allocation_index
),
live AS (
    SELECT
        p.*,
        f.time AS fullest_time,
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
    JOIN fullest AS f ON f.run_id = p.run_id AND f.allocation_index = p.allocation_index
    WHERE p.start_time <= f.time AND p.end_time >= f.time
)
SELECT
    p.run_id,
    p.allocation_index,
    p.bytes,
    100.0 * p.bytes / p.arena_bytes AS percent,
    p.offset_bytes,
    CASE WHEN p.shape_index = '{}' THEN p.instruction ELSE p.instruction || p.shape_index END AS "value",
    source_text(p.source_file, p.source_line, p.source_via) AS source,
    p.op_name,
    p.opcode,
    p.shape,
    p.start_time,
    p.end_time,
    p.fullest_time,
    p.arena_bytes,
    p.color,
    p.module
FROM live AS p
ORDER BY p.arena_bytes DESC, p.run_id, p.allocation_index, p.bytes DESC, p.offset_bytes, p.value_id
LIMIT $top;

EXECUTE temp_arena(top := 20, color := NULL, run := NULL, label := NULL, module := NULL);
