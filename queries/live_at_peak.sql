-- title: Live at the peak
-- topic: peak
-- question: What is live at the peak of a module, biggest first, and which operation and source line made it?
-- needs: ranges
-- reads: selected runs
-- note: The peak is recomputed from live ranges and allocated sizes; the dump's own "(peak)" slot can be wrong. Bytes
--   shared by several values count once, so the column adds up to the peak. The module with the highest peak comes first.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = NULL: only this memory space
-- key: run_id, bytes, percent, value, source, shape, op_name, module
-- column run_id BIGINT: number of the run
-- column bytes BIGINT [bytes]: bytes at the peak, padding included
-- column percent DOUBLE [share]: share of the run's peak
-- column value VARCHAR: what is live
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column op_name VARCHAR: name that the framework gave the operation
-- column opcode VARCHAR: opcode of its instruction
-- column shape VARCHAR: its shape with layout
-- column cumulative_bytes BIGINT [bytes]: sum down to this row, within the run
-- column kind VARCHAR: kind of its allocation
-- column color BIGINT: memory space
-- column peak_time BIGINT [slots]: slot of the peak
-- column module VARCHAR: module of the run
PREPARE live_at_peak AS
WITH chosen AS (
    -- Without a color every run gives at least one row, so no more than the $top highest peaks can be shown.
    SELECT r.*
    FROM selected_runs($run, $label, $module) AS r
    WHERE r.peak_bytes > 0
    ORDER BY r.peak_bytes DESC, r.run_id
    LIMIT CASE WHEN $color IS NULL THEN $top END
)
SELECT
    p.run_id,
    p.bytes_at_peak AS bytes,
    100.0 * p.bytes_at_peak / nullif(r.peak_bytes, 0) AS percent,
    p."value",
    source_text(p.source_file, p.source_line, p.source_via) AS source,
    p.op_name,
    p.opcode,
    p.shape,
    (sum(p.bytes_at_peak) OVER (
        PARTITION BY p.run_id ORDER BY p.bytes_at_peak DESC, p.value_id ROWS UNBOUNDED PRECEDING
    ))::BIGINT AS cumulative_bytes,
    a.kind,
    a.color,
    p.peak_time,
    r.module
FROM chosen AS r
JOIN buffers_at_peak AS p USING (run_id)
LEFT JOIN (SELECT x.* FROM chosen AS c JOIN allocations AS x USING (run_id)) AS a
    ON a.run_id = p.run_id AND a.allocation_index = p.allocation_index
WHERE p.bytes_at_peak > 0
  AND ($color IS NULL OR a.color = $color)
ORDER BY r.peak_bytes DESC, p.run_id, p.bytes_at_peak DESC, p.value_id
LIMIT $top;

EXECUTE live_at_peak(top := 20, color := NULL, run := NULL, label := NULL, module := NULL);
