-- title: Selected runs, and on which side of a comparison each one stands.
-- note: A side is run_ids ('3,7'), a label ('jax=0.7.0') or a glob on the dump directory (it holds a '/'). Without `after`
--   it is the imports from `since` on, or the last one of the selected runs; without `before` it is the earlier imports.
-- column run_id BIGINT: Number of the run.
-- column import_id BIGINT: Import that loaded it.
-- column module VARCHAR: Module name; the file's stem where it names none.
-- column backend VARCHAR: cpu, gpu or tpu; NULL if unknown.
-- column bytes BIGINT: Peak, bytes; sum of all allocations without live ranges.
-- column is_before BOOLEAN: It belongs to the first side.
-- column is_after BOOLEAN: It belongs to the second side.
CREATE OR REPLACE MACRO compared_runs(before, after, run := NULL, label := NULL, module := NULL, since := NULL) AS TABLE
WITH chosen AS (
    SELECT
        c.run_id, c.import_id, c.module, c.backend, c.dump_dir, coalesce(c.peak_bytes, c.total_bytes, 0) AS bytes,
        coalesce(since::BIGINT, max(c.import_id) OVER ()) AS first_import_id
    FROM selected_runs(run, label, module) AS c
)
SELECT
    c.run_id,
    c.import_id,
    c.module,
    c.backend,
    c.bytes,
    CASE WHEN before IS NULL THEN c.import_id < c.first_import_id ELSE is_on_side(c.run_id, c.dump_dir, before) END AS is_before,
    CASE WHEN after IS NULL THEN c.import_id >= c.first_import_id ELSE is_on_side(c.run_id, c.dump_dir, after) END AS is_after
FROM chosen AS c;
