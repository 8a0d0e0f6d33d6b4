-- title: Memory by source line or operation
-- question: Which source line, operation name or named scope owns the memory at the peak?
-- needs: ranges
-- note: Bytes live at the peak, each byte once. What the dump does not tell is NULL: jaxlib 0.8 and later name the source
--   only in the HLO text beside the dump. A scope is the operation name without its last part.
-- example: --by op_name --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter by VARCHAR = 'line' in (line, file, op_name, scope): what to add up by
-- column run_id BIGINT: number of the run
-- column bytes BIGINT [bytes]: bytes live at the peak
-- column percent DOUBLE [percent]: share of the run's peak
-- column owner VARCHAR: source line, file, operation name or scope; NULL where the dump does not tell
-- column values BIGINT [count]: values
-- column largest VARCHAR: the largest of them
-- column module VARCHAR: module of the run
-- column largest_bytes BIGINT [bytes]: bytes of the largest of them
PREPARE memory_by_source AS
WITH chosen AS (
    -- Every run gives at least one row, so no more than the $top highest peaks can be shown.
    SELECT r.*
    FROM selected_runs($run, $label, $module) AS r
    WHERE r.peak_bytes > 0
    ORDER BY r.peak_bytes DESC, r.run_id
    LIMIT $top
)
SELECT
    p.run_id,
    sum(p.bytes_at_peak)::BIGINT AS bytes,
    100.0 * sum(p.bytes_at_peak) / nullif(any_value(r.peak_bytes), 0) AS percent,
    CASE $by
        WHEN 'file' THEN p.source_file
        WHEN 'op_name' THEN p.op_name
        WHEN 'scope' THEN nullif(regexp_replace(p.op_name, '/?[^/]*$', ''), '')
        ELSE p.source_file || coalesce(':' || p.source_line, '')
    END AS owner,
    count(*) AS "values",
    arg_min(p."value", (-p.bytes_at_peak, p.value_id)) AS largest,
    any_value(r.module) AS module,
    max(p.bytes_at_peak) AS largest_bytes
FROM chosen AS r
JOIN buffers_at_peak AS p USING (run_id)
WHERE p.bytes_at_peak > 0
GROUP BY p.run_id, 4
ORDER BY any_value(r.peak_bytes) DESC, p.run_id, bytes DESC, owner
LIMIT $top;

EXECUTE memory_by_source(top := 20, by := 'line', run := NULL, label := NULL, module := NULL);
