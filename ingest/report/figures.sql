-- What heads a report: the run, its figures, and how much of its arenas is free at their own peaks.
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
    a.arena_bytes,
    a.unused_bytes,
    r.dump_dir,
    r.stem,
    l.labels
FROM runs AS r
LEFT JOIN schedule AS s ON s.run_id = r.run_id AND s."time" = r.peak_time
LEFT JOIN (
    SELECT
        x.run_id,
        sum(x.size_bytes)::BIGINT AS arena_bytes,
        sum(x.size_bytes - x.live_peak_bytes)::BIGINT AS unused_bytes
    FROM allocations AS x
    WHERE x.kind = 'temp' AND x.live_peak_bytes IS NOT NULL
    GROUP BY x.run_id
) AS a ON a.run_id = r.run_id
LEFT JOIN (
    SELECT k.run_id, list(k."key" || '=' || k."value" ORDER BY k."key") AS labels FROM run_labels AS k GROUP BY k.run_id
) AS l ON l.run_id = r.run_id
WHERE r.run_id = $run;
