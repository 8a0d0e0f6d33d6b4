-- title: XLA's own breakdown of the peak
-- topic: peak
-- question: How does the dump itself part its peak by call stack?
-- reads: selected runs
-- note: As printed by jaxlib 0.7.2 and later: unpadded bytes at the slot that the dump calls the peak, which can be wrong.
--   memory_by_source computes the same from live ranges and allocated sizes. The module with the highest peak comes first.
-- example: --depth 2
-- parameter depth BIGINT = NULL: deepest level to show; 0 shows the roots
-- parameter top BIGINT = 50: rows to show
-- key: run_id, node, total_bytes, own_bytes, percent
-- column run_id BIGINT: number of the run
-- column node VARCHAR: label, indented by depth
-- column total_bytes BIGINT [bytes]: bytes of the node and below, unpadded
-- column own_bytes BIGINT [bytes]: bytes of the node itself, unpadded
-- column percent DOUBLE [share]: share of the printed peak
-- column depth BIGINT: 0 for a root
-- column module VARCHAR: module of the run
PREPARE printed_peak_tree AS
SELECT
    b.run_id,
    repeat('  ', b.depth::BIGINT) || b.label AS node,
    b.total_bytes,
    b.current_bytes AS own_bytes,
    b."percent",
    b.depth,
    r.module
FROM selected_runs($run, $label, $module) AS r
JOIN peak_breakdown AS b USING (run_id)
WHERE $depth IS NULL OR b.depth <= $depth
ORDER BY r.printed_peak_bytes DESC NULLS LAST, b.run_id, b.position
LIMIT $top;

EXECUTE printed_peak_tree(depth := NULL, top := 50, run := NULL, label := NULL, module := NULL);
