-- title: Memory by source line or operation
-- topic: peak
-- question: Which source line, operation name or named scope owns the memory at the peak?
-- needs: ranges
-- reads: selected runs
-- note: Bytes live at the peak, each byte once. What the dump does not say is NULL: jaxlib 0.8 and later name the source
--   only in the HLO text of the dump. An instruction without a line of its own inherits that of a near one; the
--   columns at the end say how many of the bytes came in which way, and --inherited false gives those no owner. A scope
--   is the operation name without its last part, parts being split at '/' outside of brackets and quotes.
-- example: --by op_name --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter by VARCHAR = 'line' in (line, file, op_name, scope): what to add up by
-- parameter inherited BOOLEAN = true: inherited source lines own memory too; op_names are never inherited
-- key: run_id, bytes, percent, owner, values, largest, module
-- column run_id BIGINT: number of the run
-- column bytes BIGINT [bytes]: bytes live at the peak
-- column percent DOUBLE [share]: share of the run's peak
-- column owner VARCHAR: source line, file, operation name or scope; NULL where the dump names none
-- column values BIGINT [count]: values
-- column largest VARCHAR: the largest of them
-- column module VARCHAR: module of the run
-- column largest_bytes BIGINT [bytes] as its_size: bytes of the largest of them
-- column own_bytes BIGINT [bytes]: bytes whose instruction names its source line itself
-- column fused_bytes BIGINT [bytes]: bytes with the line of the computation that the instruction calls
-- column operand_bytes BIGINT [bytes]: bytes with the line of what the value is made from
-- column user_bytes BIGINT [bytes]: bytes with the line of what uses the value
-- column caller_bytes BIGINT [bytes]: bytes with the line of the instruction that calls the computation
PREPARE memory_by_source AS
WITH chosen AS (
    -- Every run gives at least one row, so no more than the $top highest peaks can be shown.
    SELECT r.*
    FROM selected_runs($run, $label, $module) AS r
    WHERE r.peak_bytes > 0
    ORDER BY r.peak_bytes DESC, r.run_id
    LIMIT $top
),
live AS MATERIALIZED (
    SELECT
        p.*,
        r.peak_bytes,
        r.module,
        CASE
            WHEN $by IN ('op_name', 'scope') THEN p.op_name
            WHEN NOT $inherited AND p.source_via <> 'own' THEN NULL
            WHEN $by = 'file' THEN p.source_file
            ELSE source_text(p.source_file, p.source_line, 'own')
        END AS owner
    FROM chosen AS r
    JOIN buffers_at_peak AS p USING (run_id)
    WHERE p.bytes_at_peak > 0
),
owners AS (
    -- Each name is parsed once.
    SELECT d.owner AS name, CASE WHEN $by = 'scope' THEN scope_of(d.owner) ELSE d.owner END AS owner
    FROM (SELECT DISTINCT l.owner FROM live AS l) AS d
)
SELECT
    l.run_id,
    sum(l.bytes_at_peak)::BIGINT AS bytes,
    100.0 * sum(l.bytes_at_peak) / any_value(l.peak_bytes) AS percent,
    o.owner,
    count(*) AS "values",
    arg_min(l."value", (-l.bytes_at_peak, l.value_id)) AS largest,
    any_value(l.module) AS module,
    max(l.bytes_at_peak) AS largest_bytes,
    coalesce(sum(l.bytes_at_peak) FILTER (l.source_via = 'own'), 0)::BIGINT AS own_bytes,
    coalesce(sum(l.bytes_at_peak) FILTER (l.source_via = 'fused'), 0)::BIGINT AS fused_bytes,
    coalesce(sum(l.bytes_at_peak) FILTER (l.source_via = 'operand'), 0)::BIGINT AS operand_bytes,
    coalesce(sum(l.bytes_at_peak) FILTER (l.source_via = 'user'), 0)::BIGINT AS user_bytes,
    coalesce(sum(l.bytes_at_peak) FILTER (l.source_via = 'caller'), 0)::BIGINT AS caller_bytes
FROM live AS l
JOIN owners AS o ON o.name IS NOT DISTINCT FROM l.owner
GROUP BY l.run_id, o.owner
ORDER BY any_value(l.peak_bytes) DESC, l.run_id, bytes DESC, o.owner
LIMIT $top;

EXECUTE memory_by_source(top := 20, by := 'line', inherited := true, run := NULL, label := NULL, module := NULL);
