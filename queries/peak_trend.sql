-- title: Trend of the peak over imports
-- topic: comparing
-- question: How does the peak of each module develop from import to import, and where does it jump?
-- reads: selected runs
-- note: For each module, backend and import the highest peak of its runs; modules seen in one import only are left out. Alarms come
--   first.
-- example: --alarm-percent 5
-- parameter alarm_percent DOUBLE = 10: growth from one import to the next that raises an alarm
-- parameter top BIGINT = 50: rows to show
-- key: module, import_id, alarm, peak_bytes, change_bytes, change_percent
-- column module VARCHAR: module
-- column import_id BIGINT: import
-- column started_at TIMESTAMP as started: when that import started, UTC
-- column alarm BOOLEAN: grew by more than the limit
-- column peak_bytes BIGINT [bytes]: highest peak; the sum of allocations where a run has no ranges
-- column change_bytes BIGINT [bytes] as by: change since the import before; NULL for the first one
-- column change_percent DOUBLE [percent] as percent: change since the import before
-- column since_first_percent DOUBLE [percent] as in_all: change since the first import
-- column run_id BIGINT: run with that peak
-- column runs BIGINT [count]: runs of the module in that import
-- column backend VARCHAR: cpu, gpu or tpu; NULL if unknown
PREPARE peak_trend AS
WITH points AS (
    SELECT
        r.module,
        r.backend,
        r.import_id,
        max(coalesce(r.peak_bytes, r.total_bytes)) AS bytes,
        arg_min(r.run_id, (-coalesce(r.peak_bytes, r.total_bytes, 0), r.run_id)) AS run_id,
        count(*) AS runs
    FROM selected_runs($run, $label, $module) AS r
    GROUP BY r.module, r.backend, r.import_id
),
trend AS (
    SELECT
        p.*,
        p.bytes - lag(p.bytes) OVER by_import AS change_bytes,
        100.0 * (p.bytes - lag(p.bytes) OVER by_import) / nullif(lag(p.bytes) OVER by_import, 0) AS change_percent,
        100.0 * (p.bytes - first(p.bytes) OVER by_import) / nullif(first(p.bytes) OVER by_import, 0) AS since_first_percent,
        count(*) OVER (PARTITION BY p.module, p.backend) AS imports
    FROM points AS p
    WINDOW by_import AS (PARTITION BY p.module, p.backend ORDER BY p.import_id)
)
SELECT
    t.module,
    t.import_id,
    i.started_at,
    coalesce(t.change_percent > $alarm_percent, false) AS alarm,
    t.bytes AS peak_bytes,
    t.change_bytes,
    t.change_percent,
    t.since_first_percent,
    t.run_id,
    t.runs,
    t.backend
FROM trend AS t
LEFT JOIN imports AS i USING (import_id)
WHERE t.imports > 1
ORDER BY alarm DESC, t.module, t.backend, t.import_id
LIMIT $top;

EXECUTE peak_trend(alarm_percent := 10.0, top := 50, run := NULL, label := NULL, module := NULL);
