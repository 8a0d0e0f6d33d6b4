-- title: Memory against batch or sequence size
-- topic: comparing
-- question: How does the memory of a module grow with a number given as a label, such as the batch size?
-- reads: selected runs
-- note: Fits a line through one point for each value of the label (runs loaded with --label batch=8 and so on); two values
--   are enough. The exponent is the slope on double logarithmic paper: 1 is linear, 2 quadratic. Measured is the peak, or
--   the sum of allocations where a run has no ranges.
-- example: --key batch
-- parameter key VARCHAR = NULL: label key with numbers as values; NULL takes the one with the most distinct numbers
-- parameter top BIGINT = 20: rows to show
-- key: module, key, from_value, to_value, from_bytes, to_bytes, exponent, bytes_per_unit
-- column module VARCHAR: module
-- column key VARCHAR: label key
-- column points BIGINT [count]: distinct values of the label
-- column from_value DOUBLE as from: smallest value
-- column to_value DOUBLE as to: largest value
-- column from_bytes BIGINT [bytes] as needs: memory at the smallest value
-- column to_bytes BIGINT [bytes] as then: memory at the largest value
-- column fixed_bytes BIGINT [bytes]: part that does not grow, by the line
-- column bytes_per_unit BIGINT [bytes] as per_unit: growth for each unit of the label, by the line
-- column r2 DOUBLE: how well the line fits, 1 is exact; NULL if the memory is constant
-- column exponent DOUBLE: power of the label that the memory grows with
PREPARE scaling AS
WITH numbers AS (
    SELECT l.run_id, l."key", try_cast(l."value" AS DOUBLE) AS x
    FROM run_labels AS l
    WHERE try_cast(l."value" AS DOUBLE) IS NOT NULL
),
keyed AS (
    SELECT n.run_id, n."key", n.x
    FROM numbers AS n
    WHERE n."key" = coalesce($key, (
        SELECT m."key" FROM numbers AS m GROUP BY m."key" ORDER BY count(DISTINCT m.x) DESC, m."key" LIMIT 1))
),
points AS (
    SELECT r.module, k."key", k.x, max(coalesce(r.peak_bytes, r.total_bytes)) AS bytes
    FROM selected_runs($run, $label, $module) AS r
    JOIN keyed AS k USING (run_id)
    WHERE coalesce(r.peak_bytes, r.total_bytes) IS NOT NULL
    GROUP BY r.module, k."key", k.x
)
SELECT
    p.module,
    p."key",
    count(*) AS points,
    min(p.x) AS from_value,
    max(p.x) AS to_value,
    arg_min(p.bytes, p.x) AS from_bytes,
    arg_max(p.bytes, p.x) AS to_bytes,
    round(regr_intercept(p.bytes, p.x))::BIGINT AS fixed_bytes,
    round(regr_slope(p.bytes, p.x))::BIGINT AS bytes_per_unit,
    CASE WHEN min(p.bytes) < max(p.bytes) THEN round(regr_r2(p.bytes, p.x), 6) END AS r2,
    CASE WHEN min(p.x) > 0 AND min(p.bytes) > 0 THEN round(regr_slope(ln(p.bytes), ln(p.x)), 6) END AS exponent
FROM points AS p
GROUP BY p.module, p."key"
HAVING count(*) >= 2
ORDER BY to_bytes DESC, p.module
LIMIT $top;

EXECUTE scaling(key := NULL, top := 20, run := NULL, label := NULL, module := NULL);
