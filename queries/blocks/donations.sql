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
CREATE OR REPLACE MACRO donations(run := NULL, label := NULL, module := NULL) AS TABLE
WITH declared AS (
    SELECT a.run_id, a.allocation_index, coalesce(min(x.kind) FILTER (x.kind <> 'donor'), 'donor') AS kind
    FROM (
        SELECT i.run_id, i.parameter_number, i.parameter_index, i.kind FROM aliases AS i
        UNION ALL
        SELECT b.run_id, b.parameter_number, b.parameter_index, 'donor' FROM buffer_donors AS b
    ) AS x
    JOIN allocations AS a ON a.run_id = x.run_id AND a.parameter_number = x.parameter_number
        AND a.parameter_shape_index = x.parameter_index
    GROUP BY a.run_id, a.allocation_index
),
held AS MATERIALIZED (
    -- Parameters, and results in an allocation of their own, with the value that each of them is.
    SELECT
        a.run_id, a.allocation_index, a.parameter_number, a.size_bytes, a.color, a.maybe_live_out, d.kind, v.value_id,
        hash(v.dtype, v.dimensions) AS type
    FROM selected_runs(run, label, module) AS r
    JOIN allocations AS a ON a.run_id = r.run_id AND (a.parameter_number IS NOT NULL OR a.maybe_live_out)
    JOIN "values" AS v ON v.run_id = a.run_id AND v.value_id = coalesce(a.parameter_value_id, a.live_out_value_id)
    LEFT JOIN declared AS d ON d.run_id = a.run_id AND d.allocation_index = a.allocation_index
    WHERE v.dimensions IS NOT NULL
),
takers AS MATERIALIZED (
    SELECT
        p.run_id, p.allocation_index, p.color, p.size_bytes, p.type,
        row_number() OVER (
            -- What is declared comes first: a result that fits two parameters was meant for that one.
            PARTITION BY p.run_id, p.color, p.size_bytes, p.type
            ORDER BY p.kind IS NULL, p.parameter_number, p.allocation_index
        ) AS number
    FROM (SELECT h.* FROM held AS h WHERE h.parameter_number IS NOT NULL AND NOT h.maybe_live_out) AS p
    SEMI JOIN (SELECT h.* FROM held AS h WHERE h.parameter_number IS NULL) AS f
        ON f.run_id = p.run_id AND f.color = p.color AND f.size_bytes = p.size_bytes AND f.type = p.type
),
results AS (
    SELECT
        f.run_id, f.value_id, f.color, f.size_bytes, f.type,
        row_number() OVER (PARTITION BY f.run_id, f.color, f.size_bytes, f.type ORDER BY f.allocation_index) AS number
    FROM (SELECT h.* FROM held AS h WHERE h.parameter_number IS NULL) AS f
    SEMI JOIN takers AS t
        ON t.run_id = f.run_id AND t.color = f.color AND t.size_bytes = f.size_bytes AND t.type = f.type
),
fitting AS (
    SELECT t.run_id, t.allocation_index, f.value_id
    FROM takers AS t
    JOIN results AS f ON f.run_id = t.run_id AND f.color = t.color AND f.size_bytes = t.size_bytes
        AND f.type = t.type AND f.number = t.number
)
SELECT
    p.run_id, p.allocation_index, p.parameter_number, p.size_bytes, p.maybe_live_out, p.value_id,
    f.value_id AS fitting_id,
    p.kind,
    CASE
        WHEN p.maybe_live_out THEN 'honoured'
        WHEN p.kind IS NOT NULL THEN 'unused'
        WHEN f.value_id IS NOT NULL THEN 'missed'
        ELSE 'no fit'
    END AS status
FROM held AS p
LEFT JOIN fitting AS f ON f.run_id = p.run_id AND f.allocation_index = p.allocation_index
WHERE p.parameter_number IS NOT NULL;
