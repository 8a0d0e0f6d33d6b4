-- title: Peak by memory space
-- topic: peak
-- question: What is the peak of each module in each memory space (color)?
-- needs: ranges
-- reads: selected runs
-- note: Each memory space has a peak of its own, at a slot of its own; their sum can exceed the peak of the run.
--   One in which nothing has a size is left out. A value counts where its allocation lies, whatever its own color.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = NULL: only this memory space
-- key: module, run_id, color, peak_bytes, space, allocated_bytes, run_peak_bytes
-- column module VARCHAR: module
-- column run_id BIGINT: number of the run
-- column color BIGINT: memory space
-- column space VARCHAR: its name, NULL if unknown
-- column peak_bytes BIGINT [bytes]: most bytes live at one slot in this memory space
-- column peak_time BIGINT [slots]: first slot with that many
-- column allocated_bytes BIGINT [bytes]: allocations in this memory space, thread-local ones left out
-- column run_peak_bytes BIGINT [bytes]: peak of the run over all memory spaces
PREPARE peak_by_color AS
SELECT
    r.module,
    p.run_id,
    p.color,
    s.space,
    p.peak_bytes,
    p.peak_time,
    sum(a.size_bytes) FILTER (a.kind <> 'thread-local')::BIGINT AS allocated_bytes,
    r.peak_bytes AS run_peak_bytes
FROM selected_runs($run, $label, $module) AS r
JOIN color_peaks AS p USING (run_id)
JOIN allocations AS a ON a.run_id = p.run_id AND a.color = p.color
LEFT JOIN memory_spaces AS s ON s.backend = r.backend AND s.color = p.color
WHERE $color IS NULL OR p.color = $color
GROUP BY ALL
ORDER BY p.peak_bytes DESC, p.run_id, p.color
LIMIT $top;

EXECUTE peak_by_color(top := 20, color := NULL, run := NULL, label := NULL, module := NULL);
