-- title: Live bytes over the program
-- topic: peak
-- question: How many bytes are live at each point of the schedule, and where are the local peaks?
-- needs: ranges
-- reads: selected runs
-- note: Shows one run: the selected one with the highest peak. A row is a slot at which the figure changes; it stays the same
--   up to the next row. A local peak is higher than the rows before and after it.
-- example: --peaks true
-- parameter peaks BOOLEAN = false: only local peaks
-- parameter color BIGINT = NULL: only this memory space
-- parameter top BIGINT = NULL: rows to show, from the start of the program
-- key: run_id, time, live_bytes, local_peak, instruction
-- column run_id BIGINT: number of the run
-- column time BIGINT [slots]: slot of the schedule
-- column live_bytes BIGINT [bytes]: bytes live
-- column local_peak BOOLEAN: higher than before and after
-- column instruction VARCHAR: instruction in that slot; NULL behind the end
-- column module VARCHAR: module of the run
PREPARE live_curve AS
WITH chosen AS (
    SELECT r.run_id, r.module
    FROM selected_runs($run, $label, $module) AS r
    WHERE r.peak_bytes IS NOT NULL
    ORDER BY r.peak_bytes DESC, r.run_id
    LIMIT 1
),
changes AS (
    SELECT e.run_id, e.module, e.time, sum(e.bytes) AS bytes
    FROM (
        SELECT
            c.run_id,
            c.module,
            unnest([g.start_time, g.end_time + 1]) AS time,
            unnest([g.gained_bytes, g.handover_bytes - v.size_bytes]) AS bytes
        FROM chosen AS c
        JOIN ranges AS g ON g.run_id = c.run_id
        JOIN "values" AS v ON v.run_id = g.run_id AND v.value_id = g.value_id
        LEFT JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index
        WHERE $color IS NULL OR a.color = $color
    ) AS e
    WHERE e.bytes <> 0
    GROUP BY e.run_id, e.module, e.time
    HAVING sum(e.bytes) <> 0
),
curve AS (
    SELECT
        c.run_id,
        c.module,
        c.time,
        c.bytes > 0 AND coalesce(lead(c.bytes) OVER slots < 0, true) AS local_peak,
        (sum(c.bytes) OVER slots)::BIGINT AS live_bytes
    FROM changes AS c
    WINDOW slots AS (ORDER BY c.time)
)
SELECT c.run_id, c.time, c.live_bytes, c.local_peak, s.instruction, c.module
FROM curve AS c
LEFT JOIN schedule AS s ON s.run_id = c.run_id AND s.time = c.time
WHERE c.local_peak OR NOT $peaks
ORDER BY c.time
LIMIT $top;

EXECUTE live_curve(peaks := false, color := NULL, top := NULL, run := NULL, label := NULL, module := NULL);
