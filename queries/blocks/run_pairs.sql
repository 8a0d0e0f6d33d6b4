-- title: Pairs of runs of the same module and backend, one of each side, to compare two versions.
-- note: The sides are those of compared_runs. Of several runs of a module on a side, the one of the newest import with the
--   highest peak stands for it.
-- column module VARCHAR: Module name; the file's stem where it names none.
-- column backend VARCHAR: cpu, gpu or tpu; NULL if unknown.
-- column before_run_id BIGINT: Run of the first side.
-- column after_run_id BIGINT: Run of the second side.
CREATE OR REPLACE MACRO run_pairs(before, after, run := NULL, label := NULL, module := NULL) AS TABLE
SELECT
    s.module,
    s.backend,
    arg_max(s.run_id, (s.import_id, s.bytes, -s.run_id)) FILTER (s.is_before) AS before_run_id,
    arg_max(s.run_id, (s.import_id, s.bytes, -s.run_id)) FILTER (s.is_after) AS after_run_id
FROM compared_runs(before, after, run, label, module) AS s
GROUP BY s.module, s.backend
HAVING bool_or(s.is_before) AND bool_or(s.is_after);
