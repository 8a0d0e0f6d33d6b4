-- What heads a report: the run, its figures, how much of its arenas is free at their own peaks, and the padding at the peak.
SELECT
    r.run_id,
    coalesce(r.module_name, r.stem) AS module,
    r.backend,
    r.target,
    r.total_bytes,
    r.resident_peak_bytes,
    r.peak_bytes,
    r.peak_time,
    r.schedule_length,
    s.instruction AS peak_instruction,
    f.arena_bytes,
    f.unused_bytes,
    f.padding_bytes,
    r.dump_dir,
    r.stem,
    l.labels
FROM runs AS r
LEFT JOIN schedule AS s ON s.run_id = r.run_id AND s."time" = r.peak_time
LEFT JOIN (
    SELECT
        x.run_id,
        max(x.bytes) FILTER (x.part = 'kind' AND x.figure = 'temp') AS arena_bytes,
        max(x.bytes) FILTER (x.figure = 'unused in arenas') AS unused_bytes,
        max(x.bytes) FILTER (x.figure = 'padding at the peak') AS padding_bytes
    FROM run_figures($run::VARCHAR) AS x
    GROUP BY x.run_id
) AS f ON f.run_id = r.run_id
LEFT JOIN (
    SELECT k.run_id, list(k."key" || '=' || k."value" ORDER BY k."key") AS labels FROM run_labels AS k GROUP BY k.run_id
) AS l ON l.run_id = r.run_id
WHERE r.run_id = $run;
