-- title: What fills the temporary arena
-- topic: arenas
-- question: What lies in a temporary arena at the slot where it is fullest, and where?
-- needs: ranges
-- reads: selected runs
-- note: Only values that are live at that slot are shown; the values placed in an arena over time add up to several times
--   its size. Bytes shared at that slot count once. The largest arena comes first.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = NULL: only arenas of this memory space
-- key: run_id, bytes, percent, offset_bytes, value, source, shape, op_name
-- column run_id BIGINT: number of the run
-- column allocation_index BIGINT as alloc: number of the arena
-- column bytes BIGINT [bytes]: bytes of the value at that slot
-- column percent DOUBLE [share]: share of the arena
-- column offset_bytes BIGINT [bytes]: where it starts in the arena
-- column value VARCHAR: what lies there
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction
-- column shape VARCHAR: its shape with layout
-- column start_time BIGINT [slots] as start: first slot at which it is live
-- column end_time BIGINT [slots] as end: last slot at which it is live
-- column fullest_time BIGINT [slots] as fullest: slot at which the arena is fullest
-- column arena_bytes BIGINT [bytes]: size of the arena
-- column color BIGINT: memory space
-- column module VARCHAR: module of the run
PREPARE temp_arena AS
WITH arenas AS (
    SELECT a.run_id, a.allocation_index, a.size_bytes, a.color, a.live_peak_time, r.module
    FROM selected_runs($run, $label, $module) AS r
    JOIN allocations AS a USING (run_id)
    WHERE a.kind = 'temp'
      AND a.size_bytes > 0
      AND a.live_peak_time IS NOT NULL
      AND ($color IS NULL OR a.color = $color)
    -- Something lies in each of them when it is fullest, so that no more than $top can be shown.
    ORDER BY a.size_bytes DESC, a.run_id, a.allocation_index
    LIMIT $top
),
live AS (
    SELECT
        a.size_bytes AS arena_bytes, a.color AS arena_color, a.live_peak_time, a.module,
        v.*, g.start_time, g.end_time,
        CASE
            -- What a value hands over at its last slot counts for the one that takes it over.
            WHEN g.end_time = a.live_peak_time THEN v.size_bytes - g.handover_bytes
            -- Of values that share addresses for longer, as those of two branches do, the one below has them.
            ELSE greatest(0, v.offset_bytes + v.size_bytes - greatest(v.offset_bytes, coalesce(
                max(v.offset_bytes + v.size_bytes) FILTER (g.end_time > a.live_peak_time) OVER below, 0)))
        END AS bytes
    FROM arenas AS a
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
        AND g.start_time <= a.live_peak_time AND g.end_time >= a.live_peak_time
    WINDOW below AS (
        PARTITION BY a.run_id, a.allocation_index ORDER BY v.offset_bytes, v.value_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
SELECT
    l.run_id,
    l.allocation_index,
    l.bytes,
    100.0 * l.bytes / l.arena_bytes AS percent,
    l.offset_bytes,
    value_name(l.instruction, l.shape_index) AS "value",
    source_text(l.source_file, l.source_line, l.source_via) AS source,
    l.op_name,
    l.opcode,
    l.shape,
    l.start_time,
    l.end_time,
    l.live_peak_time AS fullest_time,
    l.arena_bytes,
    l.arena_color AS color,
    l.module
FROM live AS l
ORDER BY l.arena_bytes DESC, l.run_id, l.allocation_index, l.bytes DESC, l.offset_bytes, l.value_id
LIMIT $top;

EXECUTE temp_arena(top := 20, color := NULL, run := NULL, label := NULL, module := NULL);
