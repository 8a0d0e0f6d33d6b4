-- title: Agreement with XLA's own figures
-- topic: housekeeping
-- question: Do the figures of this database agree with those that XLA printed?
-- reads: selected runs
-- note: The sum of allocations must equal the printed total. The slot that a dump calls the peak need not be the true one,
--   and its printed bytes are unpadded; both are shown next to ours, with the bytes really live at the printed slot.
--   Disagreements come first.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, total_agrees, peak_agrees, understated_percent, module, peak_bytes, live_at_printed_bytes
-- column run_id BIGINT: number of the run
-- column total_agrees BOOLEAN as total_ok: sum of allocations equals the printed total; NULL where none is printed
-- column peak_agrees BOOLEAN as peak_ok: the printed slot is a peak; NULL where none is printed
-- column understated_percent DOUBLE [percent] as low_by: how far the printed slot is below the peak
-- column live_at_printed_bytes BIGINT [bytes] as at_printed: bytes live at the printed slot
-- column peak_bytes BIGINT [bytes]: bytes live at the peak
-- column module VARCHAR: module of the run
-- column printed_total_bytes BIGINT [bytes] as total_said: total as printed; NULL where none is
-- column total_bytes BIGINT [bytes]: sum of allocations
-- column printed_peak_time BIGINT [slots] as time_said: slot of the peak as printed
-- column peak_time BIGINT [slots]: slot of the peak
-- column printed_peak_bytes BIGINT [bytes] as peak_said: sum of the printed peak list, unpadded
PREPARE agreement AS
WITH at_printed AS (
    SELECT
        r.run_id,
        sum(
            g.gained_bytes
            - CASE WHEN g.end_time < r.printed_peak_time THEN v.size_bytes - g.handover_bytes ELSE 0 END
        )::BIGINT AS bytes
    FROM runs AS r
    JOIN ranges AS g ON g.run_id = r.run_id AND g.start_time <= r.printed_peak_time
    JOIN "values" AS v ON v.run_id = g.run_id AND v.value_id = g.value_id
    GROUP BY r.run_id
),
judged AS (
    SELECT
        r.run_id,
        CASE WHEN list_contains(r.format, 'total') THEN m.total_bytes = r.total_bytes END AS total_agrees,
        p.bytes = r.peak_bytes AS peak_agrees,
        100.0 * (r.peak_bytes - p.bytes) / nullif(r.peak_bytes, 0) AS understated_percent,
        p.bytes AS live_at_printed_bytes,
        r.peak_bytes,
        r.module,
        CASE WHEN list_contains(r.format, 'total') THEN r.total_bytes END AS printed_total_bytes,
        m.total_bytes,
        r.printed_peak_time,
        r.peak_time,
        r.printed_peak_bytes
    FROM selected_runs($run, $label, $module) AS r
    JOIN run_summary AS m USING (run_id)
    LEFT JOIN at_printed AS p USING (run_id)
)
SELECT j.*
FROM judged AS j
ORDER BY coalesce(j.total_agrees, true), j.understated_percent DESC NULLS LAST, j.run_id
LIMIT $top;

EXECUTE agreement(top := 20, run := NULL, label := NULL, module := NULL);
