-- The figures of each run, in the order in which runs of one module are numbered. Parameter: $runs, run_ids.
WITH allocated AS (
    SELECT
        a.run_id,
        sum(a.size_bytes)::BIGINT AS total_bytes,
        string_agg(concat(a.parameter_number, ' ', a.parameter_shape_index, ' ', v.dtype, ' ', v.dimensions::VARCHAR), ', '
            ORDER BY a.parameter_number, a.parameter_shape_index) FILTER (a.parameter_number IS NOT NULL) AS parameters
    FROM allocations AS a
    LEFT JOIN "values" AS v ON v.run_id = a.run_id AND v.value_id = a.parameter_value_id
    GROUP BY a.run_id
),
padded AS (
    SELECT
        p.run_id,
        sum((p.padding_bytes - dynamic_size_bytes(p.shape, p.tiling))::HUGEINT * p.bytes_at_peak // p.size_bytes)::BIGINT AS bytes
    FROM buffers_at_peak AS p
    WHERE p.padding_bytes > 0
    GROUP BY p.run_id
)
SELECT
    r.run_id,
    coalesce(r.module_name, r.stem) AS module,
    r.backend,
    substr(sha256(coalesce(a.parameters, '')), 1, 12) AS signature,
    r.peak_bytes,
    r.resident_peak_bytes,
    coalesce(a.total_bytes, 0) AS total_bytes,
    CASE WHEN r.peak_bytes IS NOT NULL THEN coalesce(p.bytes, 0) END AS padding_bytes
FROM runs AS r
LEFT JOIN allocated AS a ON a.run_id = r.run_id
LEFT JOIN padded AS p ON p.run_id = r.run_id
WHERE list_contains($runs, r.run_id)
ORDER BY module, r.backend, r.dump_dir, r.module_id, r.dump_time, r.stem, r.run_id;
