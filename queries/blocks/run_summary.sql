-- title: One row for each run: what it needs, by role, each byte once.
-- note: Sums of allocations, never of values. A donated parameter is in donated_bytes only.
-- column run_id BIGINT: Number of the run.
-- column module VARCHAR: Module name of the file name; the file's stem where it names none.
-- column backend VARCHAR: cpu, gpu or tpu.
-- column peak_bytes BIGINT: Most bytes live at one slot; NULL without ranges.
-- column total_bytes BIGINT: Sum of all allocations, bytes.
-- column argument_bytes BIGINT: Parameters that are not donated, bytes.
-- column donated_bytes BIGINT: Parameters that are also results, bytes.
-- column result_bytes BIGINT: Results that are not donated parameters, bytes.
-- column temp_bytes BIGINT: Temporary arenas, bytes.
-- column constant_bytes BIGINT: Constants, bytes.
-- column thread_local_bytes BIGINT: Scratch of scalar computations, bytes.
-- column device_bytes BIGINT: Allocations outside of host memory without thread-local ones, bytes; NULL without a known backend.
-- column host_bytes BIGINT: Allocations in host memory without thread-local ones, bytes; NULL without a known backend.
-- column allocations BIGINT: Allocations, count.
-- column labels MAP(VARCHAR, VARCHAR): Labels of the run, by key: labels['jax']; empty without labels.
CREATE OR REPLACE VIEW run_summary AS
SELECT
    r.run_id,
    coalesce(r.module_name, r.stem) AS module,
    r.backend,
    r.peak_bytes,
    a.total_bytes,
    a.argument_bytes,
    a.donated_bytes,
    a.result_bytes,
    a.temp_bytes,
    a.constant_bytes,
    a.thread_local_bytes,
    a.device_bytes,
    a.host_bytes,
    a.allocations,
    coalesce(l.labels, MAP {}) AS labels
FROM runs AS r
JOIN (
    SELECT
        x.run_id,
        sum(x.size_bytes)::BIGINT AS total_bytes,
        coalesce(sum(x.size_bytes) FILTER (x.kind = 'parameter'), 0)::BIGINT AS argument_bytes,
        coalesce(sum(x.size_bytes) FILTER (x.kind = 'parameter+output'), 0)::BIGINT AS donated_bytes,
        coalesce(sum(x.size_bytes) FILTER (x.kind = 'output'), 0)::BIGINT AS result_bytes,
        coalesce(sum(x.size_bytes) FILTER (x.kind = 'temp'), 0)::BIGINT AS temp_bytes,
        coalesce(sum(x.size_bytes) FILTER (x.kind = 'constant'), 0)::BIGINT AS constant_bytes,
        coalesce(sum(x.size_bytes) FILTER (x.kind = 'thread-local'), 0)::BIGINT AS thread_local_bytes,
        sum(CASE WHEN y.backend IS NULL THEN NULL
                 WHEN x.kind = 'thread-local' OR y.backend = 'cpu' OR s.place = 'host' THEN 0
                 ELSE x.size_bytes END)::BIGINT AS device_bytes,
        sum(CASE WHEN y.backend IS NULL THEN NULL
                 WHEN x.kind <> 'thread-local' AND (y.backend = 'cpu' OR s.place = 'host') THEN x.size_bytes
                 ELSE 0 END)::BIGINT AS host_bytes,
        count(*) AS allocations
    FROM allocations AS x
    JOIN runs AS y USING (run_id)
    LEFT JOIN memory_spaces AS s ON s.backend = y.backend AND s.color = x.color
    GROUP BY x.run_id
) AS a USING (run_id)
LEFT JOIN (
    SELECT k.run_id, map(list(k."key" ORDER BY k."key"), list(k."value" ORDER BY k."key")) AS labels
    FROM run_labels AS k
    GROUP BY k.run_id
) AS l USING (run_id);
