-- title: Largest live-out buffers
-- topic: lifetime
-- question: Which buffers that outlive the program are the largest, by memory space (color) or by TPU tiling?
-- reads: selected runs
-- note: A row is an allocation, so a donated parameter and its result count once. An allocation can hold several values
--   in turn; the one shown is the one that leaves the program. --by gives the largest of each color or tiling.
-- example: --top 5 --by tiling
-- parameter top BIGINT = 20: rows to show; with --by, rows for each color or tiling
-- parameter by VARCHAR = 'all' in (all, color, tiling): rank all together, or within each color or tiling
-- parameter color BIGINT = NULL: only this memory space
-- parameter tiling VARCHAR = NULL: only this tiling, e.g. 'T(8,128)'; 'none' for untiled
-- key: run_id, size_bytes, tiling, color, shape, value, source, op_name, module
-- column run_id BIGINT: number of the run
-- column size_bytes BIGINT [bytes]: size of the allocation
-- column color BIGINT: memory space
-- column tiling VARCHAR: tiles of the layout, NULL if not tiled
-- column shape VARCHAR: shape of the value that leaves
-- column value VARCHAR: that value
-- column kind VARCHAR: output, or parameter+output (donated)
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction
-- column space VARCHAR: name of the memory space, NULL if unknown
-- column allocation_index BIGINT as alloc: number of the allocation
-- column module VARCHAR: module of the run
PREPARE largest_live_out AS
WITH leaving AS (
    SELECT
        a.run_id, a.allocation_index, a.size_bytes, a.color, a.kind, a.live_out_value_id, r.backend, r.module,
        CASE $by WHEN 'color' THEN a.color::VARCHAR WHEN 'tiling' THEN coalesce(v.tiling, 'none') END AS ranked_with
    FROM selected_runs($run, $label, $module) AS r
    JOIN allocations AS a ON a.run_id = r.run_id AND a.maybe_live_out
    LEFT JOIN "values" AS v ON ($by = 'tiling' OR $tiling IS NOT NULL)
        AND v.run_id = a.run_id AND v.value_id = a.live_out_value_id
    WHERE ($color IS NULL OR a.color = $color)
      AND ($tiling IS NULL OR coalesce(v.tiling, 'none') = $tiling)
    -- Ranked all together, no more than $top can be shown.
    ORDER BY a.size_bytes DESC, a.run_id, a.allocation_index
    LIMIT CASE WHEN $by = 'all' THEN $top END
),
shown AS (
    SELECT a.*
    FROM leaving AS a
    QUALIFY row_number() OVER (PARTITION BY a.ranked_with ORDER BY a.size_bytes DESC, a.run_id, a.allocation_index)
        <= coalesce($top, 9223372036854775807)
)
SELECT
    a.run_id,
    a.size_bytes,
    a.color,
    v.tiling,
    v.shape,
    value_name(v.instruction, v.shape_index) AS "value",
    a.kind,
    source_text(v.source_file, v.source_line, v.source_via) AS source,
    v.op_name,
    v.opcode,
    s.space,
    a.allocation_index,
    a.module
FROM shown AS a
LEFT JOIN "values" AS v ON v.run_id = a.run_id AND v.value_id = a.live_out_value_id
LEFT JOIN memory_spaces AS s ON s.backend = a.backend AND s.color = a.color
ORDER BY a.ranked_with, a.size_bytes DESC, a.run_id, a.allocation_index;

EXECUTE largest_live_out(
    top := 20, by := 'all', color := NULL, tiling := NULL, run := NULL, label := NULL, module := NULL);
