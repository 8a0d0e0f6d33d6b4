-- title: In place or copied
-- topic: sharing
-- question: Which updates of a part of an array, and which copies, work in place and which need a second buffer?
-- needs: uses
-- reads: selected runs
-- note: Looked at are dynamic-update-slice, scatter, fusions named after them, and copy. In place means that the result lies
--   at the address of the operand that it changes or copies; of a fusion, of an operand of the same type and dimensions. NULL means that the
--   dump does not name the operand.
-- example: --verdict copied
-- parameter top BIGINT = 20: rows to show
-- parameter verdict VARCHAR = 'all' in (all, in place, copied): only these
-- parameter min_bytes BIGINT [bytes] = 0: smallest result to show
-- key: run_id, verdict, size_bytes, value, operand, shape, source, op_name
-- column run_id BIGINT: number of the run
-- column verdict VARCHAR: in place or copied; NULL if unknown
-- column size_bytes BIGINT [bytes]: size of the result
-- column value VARCHAR: the result
-- column operand VARCHAR: operand that it shares its memory with, or that was copied
-- column shape VARCHAR: shape of the result
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction
-- column module VARCHAR: module of the run
PREPARE in_place AS
WITH updates AS MATERIALIZED (
    -- Texts are looked up for the rows shown.
    SELECT
        v.run_id, v.value_id, v.instruction, v.shape_index, v.allocation_index, v.offset_bytes, v.size_bytes,
        v.opcode, v.dtype, v.dimensions, r.module
    FROM selected_runs($run, $label, $module) AS r
    JOIN "values" AS v USING (run_id)
    WHERE r.has_values
      AND v.dimensions IS NOT NULL
      AND v.size_bytes >= $min_bytes
      AND v.is_phi IS NOT TRUE
      AND (v.opcode IN ('dynamic-update-slice', 'scatter', 'copy')
           OR (v.opcode = 'fusion' AND regexp_matches(
               regexp_replace(v.instruction, '(reduce|select.and).scatter', ''), 'dynamic.update.slice|scatter')))
    ORDER BY v.size_bytes DESC, v.run_id, v.value_id
    LIMIT CASE $verdict WHEN 'all' THEN $top END
),
read_by AS MATERIALIZED (
    -- Kept apart so that no join pairs all values of one shape with each other.
    SELECT u.*, x.operand_number, x.value_id AS operand_id
    FROM updates AS u JOIN uses AS x ON x.run_id = u.run_id AND x.instruction = u.instruction
    -- A scatter of several arrays has the result of the first operand first, and so on.
    WHERE u.opcode = 'fusion' OR x.operand_number = coalesce(try_cast(trim(u.shape_index, '{}') AS BIGINT), 0)
),
operands AS (
    SELECT
        u.run_id,
        u.value_id,
        bool_or(o.allocation_index = u.allocation_index AND o.offset_bytes = u.offset_bytes) AS shared,
        arg_min(
            value_name(o.instruction, o.shape_index),
            (o.allocation_index <> u.allocation_index OR o.offset_bytes <> u.offset_bytes, u.operand_number, o.value_id)
        ) AS operand
    FROM read_by AS u
    JOIN "values" AS o ON o.run_id = u.run_id AND o.value_id = u.operand_id
    WHERE u.opcode <> 'fusion' OR (o.dtype = u.dtype AND o.dimensions = u.dimensions)
    GROUP BY u.run_id, u.value_id
),
shown AS MATERIALIZED (
    SELECT u.run_id, u.value_id, u.module, o.operand, CASE o.shared WHEN true THEN 'in place' WHEN false THEN 'copied' END AS judged
    FROM updates AS u
    LEFT JOIN operands AS o ON o.run_id = u.run_id AND o.value_id = u.value_id
    WHERE $verdict = 'all' OR judged = $verdict
    ORDER BY u.size_bytes DESC, u.run_id, u.value_id
    LIMIT $top
)
SELECT
    s.run_id,
    s.judged AS verdict,
    v.size_bytes,
    value_name(v.instruction, v.shape_index) AS "value",
    s.operand,
    v.shape,
    source_text(v.source_file, v.source_line, v.source_via) AS source,
    v.op_name,
    v.opcode,
    s.module
FROM shown AS s
JOIN "values" AS v ON v.run_id = s.run_id AND v.value_id = s.value_id
ORDER BY v.size_bytes DESC, s.run_id, s.value_id;

EXECUTE in_place(top := 20, verdict := 'all', min_bytes := 0, run := NULL, label := NULL, module := NULL);
