-- Values with a source line: the one of that number, else those at the peak, the largest first.
SELECT
    value_name(v.instruction, v.shape_index) AS "value",
    coalesce(nullif(g.peak_bytes, 0), v.size_bytes) AS bytes,
    v.source_frame_id,
    v.source_file,
    v.source_line,
    v.source_via
FROM "values" AS v
LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
WHERE v.run_id = $run
  AND v.source_file IS NOT NULL
  AND CASE WHEN $value_id IS NULL THEN g.peak_bytes > 0 ELSE v.value_id = $value_id END
ORDER BY bytes DESC, v.value_id
LIMIT $top;
