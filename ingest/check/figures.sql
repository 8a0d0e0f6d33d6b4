-- The figures of each run, in the order in which runs of one module are numbered. Parameter: $runs, run_ids.
WITH parameters AS (
    SELECT
        a.run_id,
        string_agg(concat(a.parameter_number, ' ', a.parameter_shape_index, ' ', v.dtype, ' ', v.dimensions::VARCHAR), ', '
            ORDER BY a.parameter_number, a.parameter_shape_index) FILTER (a.parameter_number IS NOT NULL) AS parameters
    FROM allocations AS a
    LEFT JOIN "values" AS v ON v.run_id = a.run_id AND v.value_id = a.parameter_value_id
    GROUP BY a.run_id
),
figures AS (
    SELECT f.run_id, map_from_entries(list((f.figure, f.bytes))) AS bytes
    FROM run_figures(array_to_string($runs, ',')) AS f
    WHERE f.part = 'memory'
    GROUP BY f.run_id
)
SELECT
    r.run_id,
    coalesce(r.module_name, r.stem) AS module,
    r.backend,
    substr(sha256(coalesce(a.parameters, '')), 1, 12) AS signature,
    f.bytes['live peak'],
    f.bytes['resident peak'],
    coalesce(f.bytes['total'], 0),
    f.bytes['padding at the peak']
FROM figures AS f
JOIN runs AS r ON r.run_id = f.run_id
LEFT JOIN parameters AS a ON a.run_id = f.run_id
ORDER BY module, r.backend, r.dump_dir, r.module_id, r.dump_time, r.stem, r.run_id;
