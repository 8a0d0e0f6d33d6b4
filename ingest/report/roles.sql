-- What is live at the peak of a run, by the role of its allocation.
SELECT
    CASE a.kind
        WHEN 'parameter' THEN 'argument'
        WHEN 'parameter+output' THEN 'donated argument'
        WHEN 'output' THEN 'result'
        WHEN 'temp' THEN 'temporary'
        ELSE a.kind
    END AS role,
    sum(p.bytes_at_peak)::BIGINT AS bytes,
    100.0 * sum(p.bytes_at_peak) / r.peak_bytes AS percent,
    count(*) FILTER (p.bytes_at_peak > 0) AS "values"
FROM runs AS r
JOIN buffers_at_peak AS p ON p.run_id = r.run_id
JOIN allocations AS a ON a.run_id = p.run_id AND a.allocation_index = p.allocation_index
WHERE r.run_id = $run AND r.peak_bytes > 0
GROUP BY a.kind, r.peak_bytes
ORDER BY bytes DESC, role;
