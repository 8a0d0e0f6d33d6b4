-- title: Pairs of runs of the same module and backend, one of each side, to compare two versions.
-- note: A side is run_ids ('3,7'), a label ('jax=0.7.0') or a glob on the dump directory (it holds a '/'). Without `after`
--   it is the last import of the selected runs, without `before` the earlier imports. Of several runs of a module on a
--   side, the one of the newest import with the highest peak stands for it.
-- column module VARCHAR: Module name; the file's stem where it names none.
-- column backend VARCHAR: cpu, gpu or tpu; NULL if unknown.
-- column before_run_id BIGINT: Run of the first side.
-- column after_run_id BIGINT: Run of the second side.
CREATE OR REPLACE MACRO run_pairs(before, after, run := NULL, label := NULL, module := NULL) AS TABLE
WITH chosen AS (
    SELECT c.run_id, c.import_id, c.module, c.backend, c.dump_dir, coalesce(c.peak_bytes, c.total_bytes, 0) AS bytes
    FROM selected_runs(run, label, module) AS c
),
sided AS (
    SELECT
        c.*,
        CASE
            WHEN before IS NULL THEN c.import_id < (SELECT max(m.import_id) FROM chosen AS m)
            ELSE list_contains(string_split(replace(before::VARCHAR, ' ', ''), ','), c.run_id::VARCHAR)
              OR (strpos(before::VARCHAR, '/') > 0 AND c.dump_dir GLOB before::VARCHAR)
              OR c.run_id IN (SELECT l.run_id FROM selected_runs(label := before::VARCHAR) AS l)
        END AS is_before,
        CASE
            WHEN after IS NULL THEN c.import_id = (SELECT max(m.import_id) FROM chosen AS m)
            ELSE list_contains(string_split(replace(after::VARCHAR, ' ', ''), ','), c.run_id::VARCHAR)
              OR (strpos(after::VARCHAR, '/') > 0 AND c.dump_dir GLOB after::VARCHAR)
              OR c.run_id IN (SELECT l.run_id FROM selected_runs(label := after::VARCHAR) AS l)
        END AS is_after
    FROM chosen AS c
)
SELECT
    s.module,
    s.backend,
    arg_max(s.run_id, (s.import_id, s.bytes, -s.run_id)) FILTER (s.is_before) AS before_run_id,
    arg_max(s.run_id, (s.import_id, s.bytes, -s.run_id)) FILTER (s.is_after) AS after_run_id
FROM sided AS s
GROUP BY s.module, s.backend
HAVING bool_or(s.is_before) AND bool_or(s.is_after);
