-- title: Parameters and whether they share their memory with a result, or could have.
-- note: What saved query donation shows, without texts. Element type and dimensions are compared by 64 bits of a hash, as
--   comparing lists takes longer.
-- column run_id BIGINT: Number of the run.
-- column allocation_index BIGINT: Allocation that holds the parameter.
-- column parameter_number BIGINT: Number of the parameter, from 0.
-- column size_bytes BIGINT: Size of that allocation, bytes.
-- column maybe_live_out BOOLEAN: It leaves the program.
-- column value_id BIGINT: Value that the parameter is.
-- column fitting_id BIGINT: Value that leaves and could have shared its memory; NULL for none.
-- column kind VARCHAR: may or must, as the module's input_output_alias declares; donor for its buffer_donor; NULL for none.
-- column status VARCHAR: honoured, unused, missed or no fit.
CREATE OR REPLACE MACRO donations(least_bytes := 0, run := NULL, label := NULL, module := NULL) AS TABLE
WITH chosen AS (
    SELECT r.run_id FROM selected_runs(run, label, module) AS r
),
declared AS MATERIALIZED (
    SELECT
        a.run_id,
        a.allocation_index,
        any_value(a.size_bytes) AS size_bytes,
        coalesce(min(x.kind) FILTER (x.kind <> 'donor'), 'donor') AS kind
    FROM chosen AS c
    JOIN (
        SELECT i.run_id, i.parameter_number, i.parameter_index, i.kind FROM aliases AS i
        UNION ALL
        SELECT b.run_id, b.parameter_number, b.parameter_index, 'donor' FROM buffer_donors AS b
    ) AS x ON x.run_id = c.run_id
    JOIN allocations AS a ON a.run_id = x.run_id AND a.parameter_number = x.parameter_number
        AND a.parameter_shape_index = x.parameter_index
    GROUP BY a.run_id, a.allocation_index
),
wanted AS (
    SELECT a.run_id, a.allocation_index
    FROM chosen AS c
    JOIN allocations AS a ON a.run_id = c.run_id AND a.parameter_number IS NOT NULL AND a.size_bytes >= least_bytes
    UNION ALL
    SELECT d.run_id, d.allocation_index FROM declared AS d WHERE d.size_bytes < least_bytes
),
held AS MATERIALIZED (
    -- The value that the parameter itself is: the first one in its allocation.
    SELECT
        a.run_id,
        a.allocation_index,
        any_value(a.parameter_number) AS parameter_number,
        any_value(a.size_bytes) AS size_bytes,
        any_value(a.color) AS color,
        any_value(a.maybe_live_out) AS maybe_live_out,
        any_value(d.kind) AS kind,
        arg_min(
            {'value_id': v.value_id, 'type': CASE WHEN v.dimensions IS NOT NULL THEN hash(v.dtype, v.dimensions) END},
            CASE WHEN v.opcode = 'parameter' THEN 0::HUGEINT ELSE 9223372036854775808 END + v.value_id
        ) AS first
    FROM wanted AS w
    JOIN allocations AS a ON a.run_id = w.run_id AND a.allocation_index = w.allocation_index
    LEFT JOIN declared AS d ON d.run_id = a.run_id AND d.allocation_index = a.allocation_index
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    GROUP BY a.run_id, a.allocation_index
),
parameters AS (
    SELECT
        h.*,
        row_number() OVER (
            -- What is declared comes first: a result that fits two parameters was meant for that one.
            PARTITION BY h.run_id, h.maybe_live_out, h.color, h.size_bytes, h.first.type
            ORDER BY h.kind IS NULL, h.parameter_number, h.allocation_index
        ) AS number
    FROM held AS h
    WHERE h.first.type IS NOT NULL
),
candidates AS MATERIALIZED (
    -- What leaves in an allocation of its own, where a parameter of that size and memory space does not leave.
    SELECT a.run_id, a.allocation_index, a.size_bytes, a.color
    FROM allocations AS a
    SEMI JOIN (SELECT h.run_id, h.size_bytes, h.color FROM held AS h WHERE NOT h.maybe_live_out) AS h
        ON h.run_id = a.run_id AND h.size_bytes = a.size_bytes AND h.color = a.color
    WHERE a.maybe_live_out AND a.parameter_number IS NULL
),
leaving AS (
    SELECT
        a.run_id,
        a.allocation_index,
        any_value(a.size_bytes) AS size_bytes,
        any_value(a.color) AS color,
        arg_max(
            {'value_id': v.value_id, 'type': hash(v.dtype, v.dimensions)},
            (coalesce(g.end_time, -1), v.size_bytes, v.value_id)
        ) AS last
    FROM candidates AS a
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    LEFT JOIN (SELECT x.* FROM ranges AS x WHERE x.run_id IN (SELECT b.run_id FROM candidates AS b)) AS g
        ON g.run_id = v.run_id AND g.value_id = v.value_id
    GROUP BY a.run_id, a.allocation_index
),
results AS (
    SELECT
        l.run_id, l.color, l.size_bytes, l.last.type AS type, l.last.value_id AS value_id,
        -- Equal to the parameter's, which NOT in the join's condition would turn into a comparison of all with all.
        false AS maybe_live_out,
        row_number() OVER (
            PARTITION BY l.run_id, l.color, l.size_bytes, l.last.type ORDER BY l.allocation_index
        ) AS number
    FROM leaving AS l
)
SELECT
    p.run_id, p.allocation_index, p.parameter_number, p.size_bytes, p.maybe_live_out,
    p.first.value_id AS value_id,
    f.value_id AS fitting_id,
    p.kind,
    CASE
        WHEN p.maybe_live_out THEN 'honoured'
        WHEN p.kind IS NOT NULL THEN 'unused'
        WHEN f.value_id IS NOT NULL THEN 'missed'
        ELSE 'no fit'
    END AS status
FROM parameters AS p
LEFT JOIN results AS f
    ON f.maybe_live_out = p.maybe_live_out AND f.run_id = p.run_id AND f.color = p.color AND f.size_bytes = p.size_bytes
    AND f.type = p.first.type AND f.number = p.number;
