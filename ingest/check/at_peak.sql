-- What is live at the peak, layer by layer in one row; bytes add up to runs.peak_bytes. Parameter: $runs, run_ids.
-- The largest buffer of a row stands for it.
WITH live AS (
    SELECT
        p.*,
        (p.padding_bytes - dynamic_size_bytes(p.shape, p.tiling))::HUGEINT * p.bytes_at_peak // p.size_bytes AS padding_at_peak,
        folded_name(coalesce(plain_op_name(p.op_name), p."value")) AS name
    FROM values_at_peak AS p
    WHERE list_contains($runs, p.run_id) AND p.bytes_at_peak > 0
)
SELECT
    l.run_id,
    l.kind,
    l.name,
    sum(l.bytes_at_peak)::BIGINT AS bytes,
    coalesce(sum(l.padding_at_peak), 0)::BIGINT AS padding_bytes,
    count(*) AS buffers,
    arg_max({
        'value': l."value", 'shape': l.shape, 'op_name': plain_op_name(l.op_name), 'file': l.source_file, 'line': l.source_line
    }, (l.bytes_at_peak, -l.value_id)) AS largest
FROM live AS l
GROUP BY l.run_id, l.kind, l.name
ORDER BY l.run_id, bytes DESC, l.kind, l.name;
