-- title: Donation honoured, unused or missed
-- topic: sharing
-- question: Which parameters share their memory with a result, and which could have?
-- reads: selected runs
-- note: honoured: the parameter's allocation also leaves the program. unused: it does not, though the module declares it.
--   missed: it is not declared, though a result of the same type, dimensions, size and memory space has an allocation of
--   its own. no fit: there is no such result. Each result is matched with one parameter only, declared ones first. Only the
--   HLO text or protobuf of a dump says what is declared; without them unused ones count as missed or no fit.
-- example: --status missed
-- parameter top BIGINT = 50: rows to show
-- parameter status VARCHAR = 'all' in (all, honoured, unused, missed, no fit): only these
-- key: run_id, status, size_bytes, parameter_number, name, result, declared, shape
-- column run_id BIGINT: number of the run
-- column status VARCHAR: honoured, unused, missed or no fit
-- column size_bytes BIGINT [bytes]: size of the parameter's allocation
-- column parameter_number BIGINT as param: number of the parameter, from 0
-- column name VARCHAR: name that the program gave it, else its instruction
-- column result VARCHAR: value that shares its memory, or that could have
-- column declared VARCHAR: may or must, as the module's input_output_alias declares; donor, for any result (buffer_donor);
--   none; NULL without HLO
-- column shape VARCHAR: shape of the parameter
-- column parameter_index VARCHAR as part: which part of the parameter; {} is the whole
-- column allocation_index BIGINT as alloc: number of the parameter's allocation
-- column module VARCHAR: module of the run
PREPARE donation AS
WITH shown AS (
    SELECT
        j.*,
        list_position(['unused', 'missed', 'honoured', 'no fit'], j.status) AS place
    FROM donations($run, $label, $module) AS j
    WHERE $status = 'all' OR j.status = $status
    ORDER BY place, j.size_bytes DESC, j.run_id, j.parameter_number, j.allocation_index
    LIMIT $top
)
SELECT
    s.run_id,
    s.status,
    s.size_bytes,
    s.parameter_number,
    coalesce(v.op_name, v.instruction) AS name,
    value_name(f.instruction, f.shape_index) AS result,
    CASE WHEN h.run_id IS NOT NULL THEN coalesce(s.kind, 'none') END AS declared,
    v.shape,
    a.parameter_shape_index AS parameter_index,
    s.allocation_index,
    c.module
FROM shown AS s
JOIN selected_runs() AS c ON c.run_id = s.run_id
JOIN "values" AS v ON v.run_id = s.run_id AND v.value_id = s.value_id
JOIN allocations AS a ON a.run_id = s.run_id AND a.allocation_index = s.allocation_index
LEFT JOIN "values" AS f ON f.run_id = s.run_id AND f.value_id = coalesce(a.live_out_value_id, s.fitting_id)
LEFT JOIN hlo_modules AS h ON h.run_id = s.run_id
ORDER BY s.place, s.size_bytes DESC, s.run_id, s.parameter_number, s.allocation_index;

EXECUTE donation(top := 50, status := 'all', run := NULL, label := NULL, module := NULL);
