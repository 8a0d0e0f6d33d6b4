-- title: Buffers that cross a memory space
-- topic: layout
-- question: Which buffers lie in an allocation of another color than their own?
-- reads: selected runs
-- note: Since jaxlib 0.11 a dump lists such reuse; a separate color for temporaries on a GPU shows here as well.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, size_bytes, value_color, allocation_color, value, shape, op_name, printed, module
-- column run_id BIGINT: number of the run
-- column size_bytes BIGINT [bytes]: size of the buffer
-- column value_color BIGINT as color: color of the buffer
-- column allocation_color BIGINT as lies_in: color of the allocation
-- column printed BOOLEAN: the dump lists it as reuse by a different color
-- column value VARCHAR: the buffer
-- column shape VARCHAR: its shape with layout
-- column allocation_index BIGINT as alloc: number of the allocation
-- column kind VARCHAR: kind of the allocation
-- column op_name VARCHAR: name that the framework gave the operation
-- column module VARCHAR: module of the run
PREPARE color_crossings AS
WITH crossing AS (
    SELECT v.run_id, v.value_id, v.size_bytes, v.color
    FROM allocations AS a
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    WHERE a.other_color_values > 0 AND v.color <> a.color
    UNION
    SELECT v.run_id, v.value_id, v.size_bytes, v.color
    FROM color_reuse AS c
    JOIN "values" AS v ON v.run_id = c.run_id AND v.value_id = c.value_id
),
shown AS MATERIALIZED (
    -- Texts are looked up for the rows shown only.
    SELECT x.run_id, x.value_id, r.module, coalesce(c.color, x.color) AS value_color, c.value_id IS NOT NULL AS printed
    FROM selected_runs($run, $label, $module) AS r
    JOIN crossing AS x ON x.run_id = r.run_id
    LEFT JOIN color_reuse AS c ON c.run_id = x.run_id AND c.value_id = x.value_id
    ORDER BY x.size_bytes DESC, x.run_id, x.value_id
    LIMIT $top
)
SELECT
    v.run_id,
    v.size_bytes,
    x.value_color,
    a.color AS allocation_color,
    x.printed,
    value_name(v.instruction, v.shape_index) AS "value",
    v.shape,
    v.allocation_index,
    a.kind,
    v.op_name,
    x.module
FROM shown AS x
JOIN "values" AS v ON v.run_id = x.run_id AND v.value_id = x.value_id
JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index
ORDER BY v.size_bytes DESC, v.run_id, v.value_id;

EXECUTE color_crossings(top := 20, run := NULL, label := NULL, module := NULL);
