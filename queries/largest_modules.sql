-- title: Largest modules
-- topic: peak
-- question: Which module is the big one?
-- reads: selected runs
-- note: Sums of allocations, each byte once: a donated parameter is in donated_bytes only. The peak is NULL without live
--   ranges. total_bytes mixes all memory spaces; memory_by_space parts them.
-- example: --top 5 --by temp
-- parameter top BIGINT = 20: rows to show
-- parameter by VARCHAR = 'total' in (total, peak, temp, argument, result): what to rank by
-- key: module, run_id, total_bytes, peak_bytes, temp_bytes, argument_bytes, result_bytes
-- column module VARCHAR: module
-- column run_id BIGINT: number of the run
-- column total_bytes BIGINT [bytes]: sum of all allocations
-- column peak_bytes BIGINT [bytes]: most bytes live at one slot
-- column temp_bytes BIGINT [bytes]: temporary arenas
-- column argument_bytes BIGINT [bytes]: parameters that are not donated
-- column donated_bytes BIGINT [bytes]: parameters that are also results
-- column result_bytes BIGINT [bytes]: results in memory of their own
-- column constant_bytes BIGINT [bytes]: constants
-- column allocations BIGINT [count]: allocations
-- column backend VARCHAR: cpu, gpu or tpu
PREPARE largest_modules AS
SELECT
    m.module,
    m.run_id,
    m.total_bytes,
    m.peak_bytes,
    m.temp_bytes,
    m.argument_bytes,
    m.donated_bytes,
    m.result_bytes,
    m.constant_bytes,
    m.allocations,
    m.backend
FROM selected_runs($run, $label, $module) AS r
JOIN run_summary AS m USING (run_id)
ORDER BY
    CASE $by
        WHEN 'peak' THEN m.peak_bytes
        WHEN 'temp' THEN m.temp_bytes
        WHEN 'argument' THEN m.argument_bytes
        WHEN 'result' THEN m.result_bytes
        ELSE m.total_bytes
    END DESC NULLS LAST,
    m.run_id
LIMIT $top;

EXECUTE largest_modules(top := 20, by := 'total', run := NULL, label := NULL, module := NULL);
