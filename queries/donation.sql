-- title: Donation honoured, unused or missed
-- question: Which parameters share their memory with a result, and which could have?
-- note: honoured: the parameter's allocation also leaves the program. unused: it does not, though the module declares it.
--   missed: it is not declared, though a result of the same type, dimensions, size and memory space has an allocation of
--   its own. no fit: there is no such result. Each result is matched with one parameter only, declared ones first. Only the
--   HLO text or protobuf beside a dump says what is declared; without them unused ones count as missed or no fit.
-- example: --status missed
-- parameter top BIGINT = 50: rows to show
-- parameter status VARCHAR = 'all' in (all, honoured, unused, missed, no fit): only these
-- column run_id BIGINT: number of the run
-- column status VARCHAR: honoured, unused, missed or no fit
-- column size_bytes BIGINT [bytes]: size of the parameter's allocation
-- column parameter_number BIGINT: number of the parameter, from 0
-- column name VARCHAR: name that the program gave it, else its instruction
-- column result VARCHAR: value that shares its memory, or that could have
-- column declared VARCHAR: may or must, as the module's input_output_alias declares; donor, for any result (buffer_donor);
--   none; NULL without HLO
-- column shape VARCHAR: shape of the parameter
-- column parameter_index VARCHAR: which part of the parameter; {} is the whole
-- column allocation_index BIGINT: number of the parameter's allocation
-- column module VARCHAR: module of the run
PREPARE donation AS
WITH alone AS (
    SELECT DISTINCT a.run_id, a.size_bytes
    FROM allocations AS a
    WHERE a.maybe_live_out AND a.parameter_number IS NULL
),
large AS MATERIALIZED (
    -- Of the parameters that by size could be what is asked for.
    SELECT min(l.size_bytes) AS bytes
    FROM (
        SELECT a.size_bytes
        FROM selected_runs($run, $label, $module) AS r
        JOIN allocations AS a ON a.run_id = r.run_id AND a.parameter_number IS NOT NULL
        LEFT JOIN alone AS x ON x.run_id = a.run_id AND x.size_bytes = a.size_bytes
        WHERE $status IN ('honoured', 'unused', 'no fit') OR (NOT a.maybe_live_out AND x.run_id IS NOT NULL)
        ORDER BY a.size_bytes DESC
        LIMIT 50 * $top
    ) AS l
    HAVING $top IS NOT NULL
),
cut AS MATERIALIZED (
    -- Whether a donation was missed is decided by allocations of one size, and the largest come first: where those of the
    -- largest sizes fill the result, the others need no look. Those that are declared are always looked at.
    SELECT CASE WHEN count(*) >= $top THEN any_value(l.bytes) ELSE 0 END AS least_bytes
    FROM large AS l
    LEFT JOIN donations((SELECT x.bytes FROM large AS x), $run, $label, $module) AS d
        ON d.status = CASE $status WHEN 'all' THEN 'missed' ELSE $status END
    WHERE d.run_id IS NOT NULL
),
shown AS MATERIALIZED (
    SELECT j.*
    FROM donations((SELECT least_bytes FROM cut), $run, $label, $module) AS j
    WHERE $status = 'all' OR j.status = $status
    ORDER BY
        list_position(['unused', 'missed', 'honoured', 'no fit'], j.status),
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
JOIN selected_runs() AS c ON c.run_id = s.run_id
JOIN allocations AS a ON a.run_id = s.run_id AND a.allocation_index = s.allocation_index
JOIN "values" AS v ON v.run_id = s.run_id AND v.value_id = s.value_id
LEFT JOIN "values" AS f ON f.run_id = s.run_id AND f.value_id = s.fitting_id
LEFT JOIN donated AS d ON d.run_id = s.run_id AND d.allocation_index = s.allocation_index
LEFT JOIN hlo_modules AS h ON h.run_id = s.run_id
ORDER BY
    list_position(['unused', 'missed', 'honoured', 'no fit'], s.status),
    s.size_bytes DESC, s.run_id, s.parameter_number, s.allocation_index;

EXECUTE donation(top := 50, status := 'all', run := NULL, label := NULL, module := NULL);
