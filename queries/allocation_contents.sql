-- title: Contents of one allocation
-- topic: arenas
-- question: What is in allocation N, for example the one that an out-of-memory message names?
-- reads: selected runs
-- note: Shows one allocation: of the selected runs, the largest one with that number, or the largest of all without a number.
--   Values at one offset share memory or take turns; do not add up their sizes.
-- example: --allocation 4
-- parameter allocation BIGINT = NULL: number of the allocation
-- parameter top BIGINT = 50: rows to show, largest values first
-- key: run_id, allocation_index, size_bytes, offset_bytes, value, source, shape, op_name
-- column run_id BIGINT: number of the run
-- column allocation_index BIGINT as alloc: number of the allocation
-- column size_bytes BIGINT [bytes]: size of the value
-- column offset_bytes BIGINT [bytes]: where the value starts
-- column value VARCHAR: the value; NULL for an allocation without values
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column opcode VARCHAR: opcode of its instruction
-- column shape VARCHAR: its shape with layout
-- column op_name VARCHAR: name that the framework gave the operation
-- column start_time BIGINT [slots] as start: first slot at which it is live; NULL without a live range
-- column end_time BIGINT [slots] as end: last slot at which it is live
-- column allocation_bytes BIGINT [bytes]: its size
-- column kind VARCHAR: its kind
-- column color BIGINT: its memory space
-- column module VARCHAR: module of the run
PREPARE allocation_contents AS
WITH chosen AS (
    SELECT a.*, r.module
    FROM selected_runs($run, $label, $module) AS r
    JOIN allocations AS a USING (run_id)
    WHERE $allocation IS NULL OR a.allocation_index = $allocation
    ORDER BY a.size_bytes DESC, a.run_id, a.allocation_index
    LIMIT 1
)
SELECT
    c.run_id,
    c.allocation_index,
    v.size_bytes,
    v.offset_bytes,
    value_name(v.instruction, v.shape_index) AS "value",
    source_text(v.source_file, v.source_line, v.source_via) AS source,
    v.opcode,
    v.shape,
    v.op_name,
    g.start_time,
    g.end_time,
    c.size_bytes AS allocation_bytes,
    c.kind,
    c.color,
    c.module
FROM chosen AS c
LEFT JOIN "values" AS v ON v.run_id = c.run_id AND v.allocation_index = c.allocation_index
LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
ORDER BY v.size_bytes DESC, v.offset_bytes, v.value_id
LIMIT $top;

EXECUTE allocation_contents(allocation := NULL, top := 50, run := NULL, label := NULL, module := NULL);
