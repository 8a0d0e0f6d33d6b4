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
-- column name VARCHAR: name that the program gave it, else its instruction
-- column result VARCHAR: value that shares its memory, or that could have
-- column declared VARCHAR: may or must, as the module's input_output_alias declares; none; NULL if not told
-- column shape VARCHAR: shape of the parameter
-- column parameter_index VARCHAR: which part of the parameter; {} is the whole
-- column allocation_index BIGINT: number of the parameter's allocation
-- column module VARCHAR: module of the run
PREPARE donation AS
-- Parameters are judged by numbers alone, element type and dimensions by 64 bits of a hash, as comparing lists takes
-- longer; names and shapes are looked up for the rows shown.
WITH chosen AS (
    SELECT r.run_id, r.module FROM selected_runs($run, $label, $module) AS r
),
held AS MATERIALIZED (
    -- The value that the parameter itself is: the first one in its allocation.
    SELECT
        a.run_id,
        a.allocation_index,
        any_value(a.parameter_number) AS parameter_number,
        any_value(a.size_bytes) AS size_bytes,
        any_value(a.maybe_live_out) AS maybe_live_out,
        arg_min(
            {'value_id': v.value_id, 'type': CASE WHEN v.dimensions IS NOT NULL THEN hash(v.dtype, v.dimensions) END},
            CASE WHEN v.opcode = 'parameter' THEN 0::HUGEINT ELSE 9223372036854775808 END + v.value_id
        ) AS first
    FROM chosen AS c
    JOIN allocations AS a ON a.run_id = c.run_id AND a.parameter_number IS NOT NULL
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    GROUP BY a.run_id, a.allocation_index
),
parameters AS (
    SELECT
        h.*,
        row_number() OVER (
            PARTITION BY h.run_id, h.maybe_live_out, h.size_bytes, h.first.type
            ORDER BY h.parameter_number, h.allocation_index
        ) AS number
    FROM held AS h
    WHERE h.first.type IS NOT NULL
),
candidates AS MATERIALIZED (
    -- What leaves in an allocation of its own, where a parameter of that size does not leave.
    SELECT a.run_id, a.allocation_index, a.size_bytes
    FROM allocations AS a
    SEMI JOIN (SELECT h.run_id, h.size_bytes FROM held AS h WHERE NOT h.maybe_live_out) AS h
        ON h.run_id = a.run_id AND h.size_bytes = a.size_bytes
    WHERE a.maybe_live_out AND a.parameter_number IS NULL
),
leaving AS (
    SELECT
        a.run_id,
        a.allocation_index,
        any_value(a.size_bytes) AS size_bytes,
        arg_max(
            {'value_id': v.value_id, 'type': hash(v.dtype, v.dimensions)},
            (coalesce(g.end_time, -1), v.size_bytes, v.value_id)
        ) AS last
    FROM candidates AS a
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
    GROUP BY a.run_id, a.allocation_index
),
results AS (
    SELECT
        l.run_id, l.size_bytes, l.last.type AS type, l.last.value_id AS value_id,
        false AS donated,
        row_number() OVER (
            PARTITION BY l.run_id, l.size_bytes, l.last.type ORDER BY l.allocation_index
        ) AS number
    FROM leaving AS l
),
declared AS (
    SELECT a.run_id, a.allocation_index, min(x.kind) AS kind
    FROM aliases AS x
    JOIN allocations AS a ON a.run_id = x.run_id AND a.parameter_number = x.parameter_number
        AND a.parameter_shape_index = x.parameter_index
    GROUP BY a.run_id, a.allocation_index
),
judged AS (
    SELECT
        p.run_id, p.allocation_index, p.parameter_number, p.size_bytes, p.maybe_live_out,
        p.first.value_id AS value_id,
        f.value_id AS fitting_id,
        x.kind,
        CASE
            WHEN p.maybe_live_out THEN 'honoured'
            WHEN f.value_id IS NOT NULL OR x.kind IS NOT NULL THEN 'missed'
            ELSE 'no fit'
        END AS status
    FROM parameters AS p
    LEFT JOIN results AS f
        ON f.donated = p.maybe_live_out AND f.run_id = p.run_id AND f.size_bytes = p.size_bytes
        AND f.type = p.first.type AND f.number = p.number
    LEFT JOIN declared AS x ON x.run_id = p.run_id AND x.allocation_index = p.allocation_index
),
shown AS MATERIALIZED (
    SELECT j.*
    FROM judged AS j
    WHERE $status = 'all' OR j.status = $status
    ORDER BY
        CASE j.status WHEN 'missed' THEN 0 WHEN 'honoured' THEN 1 ELSE 2 END,
        j.size_bytes DESC, j.run_id, j.parameter_number, j.allocation_index
    LIMIT $top
),
donated AS (
    SELECT
        s.run_id,
        s.allocation_index,
        arg_max(
            CASE WHEN v.shape_index = '{}' THEN v.instruction ELSE v.instruction || v.shape_index END,
            (coalesce(g.end_time, -1), v.size_bytes, v.value_id)
        ) AS "value"
    FROM shown AS s
    JOIN "values" AS v ON v.run_id = s.run_id AND v.allocation_index = s.allocation_index
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
    WHERE s.maybe_live_out
    GROUP BY s.run_id, s.allocation_index
)
SELECT
    s.run_id,
    s.status,
    s.size_bytes,
    s.parameter_number,
    coalesce(v.op_name, v.instruction) AS name,
    coalesce(d."value", CASE WHEN f.shape_index = '{}' THEN f.instruction ELSE f.instruction || f.shape_index END) AS result,
    CASE WHEN h.run_id IS NOT NULL THEN coalesce(s.kind, 'none') END AS declared,
    v.shape,
    a.parameter_shape_index AS parameter_index,
    s.allocation_index,
    c.module
FROM shown AS s
JOIN chosen AS c USING (run_id)
JOIN allocations AS a ON a.run_id = s.run_id AND a.allocation_index = s.allocation_index
JOIN "values" AS v ON v.run_id = s.run_id AND v.value_id = s.value_id
LEFT JOIN "values" AS f ON f.run_id = s.run_id AND f.value_id = s.fitting_id
LEFT JOIN donated AS d ON d.run_id = s.run_id AND d.allocation_index = s.allocation_index
LEFT JOIN hlo_modules AS h ON h.run_id = s.run_id
ORDER BY
    CASE s.status WHEN 'missed' THEN 0 WHEN 'honoured' THEN 1 ELSE 2 END,
    s.size_bytes DESC, s.run_id, s.parameter_number, s.allocation_index;

EXECUTE donation(top := 50, status := 'all', run := NULL, label := NULL, module := NULL);
