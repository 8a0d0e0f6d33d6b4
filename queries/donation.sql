-- title: Donation honoured or missed
-- question: Which parameters share their memory with a result, and which could have?
-- note: honoured: the parameter's allocation also leaves the program. missed: it does not, though a result of the same
--   type, dimensions and size has an allocation of its own, or though the module declares it as an alias. no fit: neither.
--   Each result is matched with one parameter only. Only the HLO text or protobuf beside a dump tells what is declared.
-- example: --status missed
-- parameter top BIGINT = 50: rows to show
-- parameter status VARCHAR = 'all' in (all, honoured, missed, no fit): only these
-- column run_id BIGINT: number of the run
-- column status VARCHAR: honoured, missed or no fit
-- column size_bytes BIGINT [bytes]: size of the parameter's allocation
-- column parameter_number BIGINT: number of the parameter, from 0
-- column parameter_index VARCHAR: which part of the parameter; {} is the whole
-- column name VARCHAR: name that the program gave it, else its instruction
-- column result VARCHAR: value that shares its memory, or that could have
-- column declared VARCHAR: may or must, as the module's input_output_alias declares; none; NULL if not told
-- column shape VARCHAR: shape of the parameter
-- column allocation_index BIGINT: number of the parameter's allocation
-- column module VARCHAR: module of the run
PREPARE donation AS
WITH chosen AS (
    SELECT r.run_id, r.module FROM selected_runs($run, $label, $module) AS r
),
held AS (
    -- The value that the parameter itself is: the first one in its allocation.
    SELECT
        a.run_id,
        a.allocation_index,
        arg_min(v.value_id, (v.opcode IS DISTINCT FROM 'parameter', v.value_id)) AS value_id
    FROM chosen AS c
    JOIN allocations AS a ON a.run_id = c.run_id AND a.parameter_number IS NOT NULL
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    GROUP BY a.run_id, a.allocation_index
),
parameters AS MATERIALIZED (
    -- LEFT joins, though every row has a match: they keep the optimizer from joining by run_id alone.
    SELECT
        h.run_id, h.allocation_index, a.parameter_number, a.parameter_shape_index, a.size_bytes, a.maybe_live_out,
        v.shape, v.dtype, v.dimensions,
        coalesce(v.op_name, v.instruction) AS name,
        row_number() OVER (
            PARTITION BY h.run_id, a.maybe_live_out, a.size_bytes, v.dtype, v.dimensions
            ORDER BY a.parameter_number, h.allocation_index
        ) AS number
    FROM held AS h
    LEFT JOIN allocations AS a ON a.run_id = h.run_id AND a.allocation_index = h.allocation_index
    LEFT JOIN "values" AS v ON v.run_id = h.run_id AND v.value_id = h.value_id
    WHERE v.dimensions IS NOT NULL
),
results AS MATERIALIZED (
    SELECT
        a.run_id, a.allocation_index, a.size_bytes, a.parameter_number IS NOT NULL AS donated,
        v.dtype, v.dimensions,
        CASE WHEN v.shape_index = '{}' THEN v.instruction ELSE v.instruction || v.shape_index END AS "value",
        row_number() OVER (
            PARTITION BY a.run_id, donated, a.size_bytes, v.dtype, v.dimensions ORDER BY a.allocation_index
        ) AS number
    FROM chosen AS c
    JOIN allocations AS a ON a.run_id = c.run_id AND a.maybe_live_out
    LEFT JOIN live_out_values AS l ON l.run_id = a.run_id AND l.allocation_index = a.allocation_index
    LEFT JOIN "values" AS v ON v.run_id = l.run_id AND v.value_id = l.value_id
),
declared AS (
    SELECT x.run_id, x.parameter_number, x.parameter_index, min(x.kind) AS kind
    FROM aliases AS x
    GROUP BY x.run_id, x.parameter_number, x.parameter_index
),
judged AS (
    SELECT
        p.run_id,
        CASE
            WHEN p.maybe_live_out THEN 'honoured'
            WHEN f."value" IS NOT NULL OR x.kind IS NOT NULL THEN 'missed'
            ELSE 'no fit'
        END AS status,
        p.size_bytes,
        p.parameter_number,
        p.parameter_shape_index AS parameter_index,
        p.name,
        coalesce(d."value", f."value") AS result,
        CASE WHEN h.run_id IS NOT NULL THEN coalesce(x.kind, 'none') END AS declared,
        p.shape,
        p.allocation_index,
        c.module
    FROM parameters AS p
    JOIN chosen AS c USING (run_id)
    LEFT JOIN (SELECT * FROM results WHERE donated) AS d
        ON d.run_id = p.run_id AND d.allocation_index = p.allocation_index
    LEFT JOIN (SELECT * FROM results WHERE NOT donated) AS f
        ON f.donated = p.maybe_live_out AND f.run_id = p.run_id AND f.size_bytes = p.size_bytes
        AND f.dtype = p.dtype AND f.dimensions = p.dimensions AND f.number = p.number
    LEFT JOIN hlo_modules AS h ON h.run_id = p.run_id
    LEFT JOIN declared AS x ON x.run_id = p.run_id AND x.parameter_number = p.parameter_number
        AND x.parameter_index = p.parameter_shape_index
)
SELECT j.*
FROM judged AS j
WHERE $status = 'all' OR j.status = $status
ORDER BY
    CASE j.status WHEN 'missed' THEN 0 WHEN 'honoured' THEN 1 ELSE 2 END,
    j.size_bytes DESC, j.run_id, j.parameter_number, j.allocation_index
LIMIT $top;

EXECUTE donation(top := 50, status := 'all', run := NULL, label := NULL, module := NULL);
