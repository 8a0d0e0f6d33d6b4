-- title: Rematerialization
-- question: Did rematerialization do anything, and how much of the recomputed data is live at the peak?
-- note: XLA's own pass leaves '.remat' in instruction names, jax.checkpoint leaves 'rematted_computation' in operation names.
--   Whether it helped is told by peak_growth between a run with and a run without it.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- column run_id BIGINT: number of the run
-- column xla_values BIGINT [count]: values whose instruction XLA rematerialized
-- column xla_at_peak_bytes BIGINT [bytes]: bytes of those at the peak; NULL without live ranges
-- column checkpoint_values BIGINT [count]: values recomputed for jax.checkpoint; NULL where no operation name is told
-- column checkpoint_at_peak_bytes BIGINT [bytes]: bytes of those at the peak; NULL without live ranges
-- column largest_bytes BIGINT [bytes]: size of the largest recomputed value
-- column largest VARCHAR: the largest recomputed value
-- column peak_bytes BIGINT [bytes]: peak of the run
-- column module VARCHAR: module of the run
PREPARE rematerialization AS
SELECT
    v.run_id,
    count(*) FILTER (v.instruction LIKE '%.remat%') AS xla_values,
    CASE WHEN any_value(r.peak_bytes) IS NOT NULL THEN
        coalesce(sum(v.size_bytes - CASE WHEN g.end_time = r.peak_time THEN g.handover_bytes ELSE 0 END)
            FILTER (v.instruction LIKE '%.remat%' AND r.peak_time BETWEEN g.start_time AND g.end_time), 0)
    END::BIGINT AS xla_at_peak_bytes,
    CASE WHEN count(v.op_name) > 0 THEN
        count(*) FILTER (v.op_name LIKE '%rematted_computation%')
    END AS checkpoint_values,
    CASE WHEN any_value(r.peak_bytes) IS NOT NULL AND count(v.op_name) > 0 THEN
        coalesce(sum(v.size_bytes - CASE WHEN g.end_time = r.peak_time THEN g.handover_bytes ELSE 0 END)
            FILTER (v.op_name LIKE '%rematted_computation%' AND r.peak_time BETWEEN g.start_time AND g.end_time), 0)
    END::BIGINT AS checkpoint_at_peak_bytes,
    max(v.size_bytes)
        FILTER (v.instruction LIKE '%.remat%' OR v.op_name LIKE '%rematted_computation%') AS largest_bytes,
    arg_min(v.instruction, (-v.size_bytes, v.value_id))
        FILTER (v.instruction LIKE '%.remat%' OR v.op_name LIKE '%rematted_computation%') AS largest,
    any_value(r.peak_bytes) AS peak_bytes,
    any_value(r.module) AS module
FROM selected_runs($run, $label, $module) AS r
JOIN "values" AS v USING (run_id)
LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
    AND r.peak_time BETWEEN g.start_time AND g.end_time
GROUP BY v.run_id
ORDER BY greatest(xla_values, coalesce(checkpoint_values, 0)) DESC, peak_bytes DESC NULLS LAST, v.run_id
LIMIT $top;

EXECUTE rematerialization(top := 20, run := NULL, label := NULL, module := NULL);
