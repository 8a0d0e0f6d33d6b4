-- title: Constants
-- topic: arenas
-- question: Which constants are embedded in the program, and how big are they?
-- reads: selected runs
-- note: A row is an allocation, with the largest constant in it. Not every backend puts constants in allocations of their own.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, size_bytes, percent, value, shape, source, op_name
-- column run_id BIGINT: number of the run
-- column size_bytes BIGINT [bytes]: size of the allocation
-- column percent DOUBLE [share]: share of all allocations of the run
-- column value VARCHAR: the constant
-- column shape VARCHAR: its shape with layout
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column op_name VARCHAR: name that the framework gave the operation
-- column allocation_index BIGINT as alloc: number of the allocation
-- column color BIGINT: memory space
-- column module VARCHAR: module of the run
PREPARE constants AS
WITH shown AS (
    SELECT a.run_id, a.allocation_index, a.size_bytes, a.color, m.total_bytes, r.module
    FROM selected_runs($run, $label, $module) AS r
    JOIN run_summary AS m USING (run_id)
    JOIN allocations AS a ON a.run_id = r.run_id AND a.is_constant
    ORDER BY a.size_bytes DESC, a.run_id, a.allocation_index
    LIMIT $top
)
SELECT
    a.run_id,
    any_value(a.size_bytes) AS size_bytes,
    100.0 * any_value(a.size_bytes) / nullif(any_value(a.total_bytes), 0) AS percent,
    arg_min(v.instruction, (-v.size_bytes, v.value_id)) AS "value",
    arg_min(v.shape, (-v.size_bytes, v.value_id)) AS shape,
    arg_min(source_text(v.source_file, v.source_line, v.source_via), (-v.size_bytes, v.value_id)) AS source,
    arg_min(v.op_name, (-v.size_bytes, v.value_id)) AS op_name,
    a.allocation_index,
    any_value(a.color) AS color,
    any_value(a.module) AS module
FROM shown AS a
LEFT JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
GROUP BY a.run_id, a.allocation_index
ORDER BY size_bytes DESC, a.run_id, a.allocation_index;

EXECUTE constants(top := 20, run := NULL, label := NULL, module := NULL);
