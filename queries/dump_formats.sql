-- title: Formats of the dumps
-- topic: housekeeping
-- question: Which formats of dumps are loaded, and which sections are missing?
-- reads: selected runs
-- note: XLA stamps no version on a dump; a format is the list of features that its text showed.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: runs, backend, features, without_uses, without_ranges
-- column runs BIGINT [count]: runs of this format
-- column without_uses BIGINT [count] as no_uses: of these, runs without positions and uses
-- column without_ranges BIGINT [count] as no_ranges: of these, runs without live ranges
-- column backend VARCHAR: cpu, gpu or tpu; NULL if unknown
-- column features VARCHAR: features, in alphabetical order
-- column example_run_id BIGINT as e.g._run: first run of this format
-- column example VARCHAR as e.g.: its module
PREPARE dump_formats AS
SELECT
    count(*) AS runs,
    count(*) FILTER (NOT r.has_values) AS without_uses,
    count(*) FILTER (NOT r.has_ranges) AS without_ranges,
    r.backend,
    array_to_string(list_sort(r.format), ' ') AS features,
    min(r.run_id) AS example_run_id,
    arg_min(r.module, r.run_id) AS example
FROM selected_runs($run, $label, $module) AS r
GROUP BY r.backend, features
ORDER BY runs DESC, example_run_id
LIMIT $top;

EXECUTE dump_formats(top := 20, run := NULL, label := NULL, module := NULL);
