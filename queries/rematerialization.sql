-- title: Rematerialization
-- topic: lifetime
-- question: Did rematerialization do anything, and how much of the recomputed data is live at the peak?
-- reads: selected runs
-- note: XLA's own pass leaves '.remat' in instruction names, jax.checkpoint leaves 'rematted_computation' in operation names.
--   Whether it helped is shown by peak_growth between a run with and a run without it.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, xla_values, xla_at_peak_bytes, checkpoint_values, checkpoint_at_peak_bytes, largest_bytes, largest, module
-- column run_id BIGINT: number of the run
-- column xla_values BIGINT [count] as by_xla: values whose instruction XLA rematerialized
-- column xla_at_peak_bytes BIGINT [bytes] as xla_peak: bytes of those at the peak; NULL without live ranges
-- column checkpoint_values BIGINT [count] as by_jax: values recomputed for jax.checkpoint; NULL where no operation name is known
-- column checkpoint_at_peak_bytes BIGINT [bytes] as jax_peak: bytes of those at the peak; NULL without live ranges
-- column largest_bytes BIGINT [bytes] as its_size: size of the largest recomputed value
-- column largest VARCHAR: the largest recomputed value
-- column peak_bytes BIGINT [bytes]: peak of the run
-- column module VARCHAR: module of the run
PREPARE rematerialization AS
WITH named AS (
    SELECT v.run_id, count(v.op_name) > 0 AS has_names
    FROM "values" AS v
    GROUP BY v.run_id
),
recomputed AS (
    SELECT
        v.run_id, v.value_id, v.size_bytes, v.instruction,
        v.instruction LIKE '%.remat%' AS by_xla,
        coalesce(v.op_name LIKE '%rematted_computation%', false) AS by_checkpoint
    FROM "values" AS v
    WHERE v.instruction LIKE '%.remat%' OR v.op_name LIKE '%rematted_computation%'
),
counted AS (
    SELECT
        v.run_id,
        count(*) FILTER (v.by_xla) AS xla_values,
        sum(p.bytes) FILTER (v.by_xla) AS xla_bytes,
        count(*) FILTER (v.by_checkpoint) AS checkpoint_values,
        sum(p.bytes) FILTER (v.by_checkpoint) AS checkpoint_bytes,
        max(v.size_bytes) AS largest_bytes,
        arg_min(v.instruction, (-v.size_bytes, v.value_id)) AS largest
    FROM recomputed AS v
    LEFT JOIN (
        SELECT g.run_id, g.value_id, g.peak_bytes AS bytes
        FROM recomputed AS x
        JOIN ranges AS g ON g.run_id = x.run_id AND g.value_id = x.value_id
    ) AS p ON p.run_id = v.run_id AND p.value_id = v.value_id
    GROUP BY v.run_id
)
SELECT
    r.run_id,
    coalesce(c.xla_values, 0) AS xla_values,
    CASE WHEN r.peak_bytes IS NOT NULL THEN coalesce(c.xla_bytes, 0) END::BIGINT AS xla_at_peak_bytes,
    CASE WHEN t.has_names THEN coalesce(c.checkpoint_values, 0) END AS checkpoint_values,
    CASE WHEN r.peak_bytes IS NOT NULL AND t.has_names THEN
        coalesce(c.checkpoint_bytes, 0)
    END::BIGINT AS checkpoint_at_peak_bytes,
    c.largest_bytes,
    c.largest,
    r.peak_bytes,
    r.module
FROM selected_runs($run, $label, $module) AS r
JOIN named AS t USING (run_id)
LEFT JOIN counted AS c USING (run_id)
ORDER BY greatest(xla_values, coalesce(checkpoint_values, 0)) DESC, peak_bytes DESC NULLS LAST, r.run_id
LIMIT $top;

EXECUTE rematerialization(top := 20, run := NULL, label := NULL, module := NULL);
