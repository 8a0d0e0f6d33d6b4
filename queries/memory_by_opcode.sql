-- title: Memory by opcode
-- topic: peak
-- question: Which kinds of operation made what is live at the peak?
-- needs: ranges
-- reads: selected runs
-- note: Bytes live at the peak, each byte once, padding included. The module with the highest peak comes first.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, bytes, percent, opcode, values, largest, shape, module
-- column run_id BIGINT: number of the run
-- column bytes BIGINT [bytes]: bytes live at the peak
-- column percent DOUBLE [share]: share of the run's peak
-- column opcode VARCHAR: opcode of the defining instruction, NULL where the dump does not say
-- column values BIGINT [count]: values
-- column largest VARCHAR: the largest of them
-- column shape VARCHAR: shape of the largest
-- column module VARCHAR: module of the run
-- column largest_bytes BIGINT [bytes] as its_size: bytes of the largest of them
PREPARE memory_by_opcode AS
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
    p.opcode,
    count(*) AS "values",
    arg_min(p."value", (-p.bytes_at_peak, p.value_id)) AS largest,
    arg_min(p.shape, (-p.bytes_at_peak, p.value_id)) AS shape,
    any_value(r.module) AS module,
    max(p.bytes_at_peak) AS largest_bytes
FROM chosen AS r
JOIN buffers_at_peak AS p USING (run_id)
WHERE p.bytes_at_peak > 0
GROUP BY p.run_id, p.opcode
ORDER BY any_value(r.peak_bytes) DESC, p.run_id, bytes DESC, p.opcode
LIMIT $top;

EXECUTE memory_by_opcode(top := 20, run := NULL, label := NULL, module := NULL);
