-- title: Pairs of runs of the same module, one of each side, to compare two versions.
-- note: The sides are those of compared_runs. Modules are paired by name, backend and entry signature, then those that are
--   left by parameters, then by name: of each the runs of its newest import, the k-th with the k-th in order of directory
--   and file. Where each side was named and is one run, the two are a pair, whatever their names. What has no partner has a row too.
-- column module VARCHAR: Module name; the file's stem where it names none.
-- column backend VARCHAR: cpu, gpu or tpu; NULL if unknown.
-- column before_run_id BIGINT: Run of the first side; NULL where only the second has the module.
-- column after_run_id BIGINT: Run of the second side; NULL where only the first has the module.
-- column paired_by VARCHAR: signature, parameters, name or only run; NULL without a partner.
CREATE OR REPLACE MACRO run_pairs(before, after, run := NULL, label := NULL, module := NULL, since := NULL) AS TABLE
WITH RECURSIVE sides AS MATERIALIZED (
    SELECT unnest([s.is_before, s.is_after]) AS stands, unnest([false, true]) AS is_after, s.* EXCLUDE (is_before, is_after)
    FROM compared_runs(before, after, run, label, module, since) AS s
    WHERE s.is_before OR s.is_after
),
keyed AS MATERIALIZED (
    SELECT
        s.run_id,
        s.import_id,
        s.is_after,
        s.module,
        s.backend,
        [
            -- A NULL is no key.
            CASE WHEN h.layout_digest IS NOT NULL
                THEN hash('signature', s.module, s.backend, r.parameters_digest, h.layout_digest) END,
            hash('parameters', s.module, s.backend, r.parameters_digest),
            hash('name', s.module, s.backend),
            CASE WHEN before IS NOT NULL AND after IS NOT NULL AND count(*) OVER (PARTITION BY s.is_after) = 1
                THEN hash('only run') END
        ] AS keys,
        row_number() OVER (ORDER BY r.dump_dir, r.module_id, r.dump_time, r.stem, r.run_id) AS place
    FROM sides AS s
    JOIN runs AS r ON r.run_id = s.run_id
    LEFT JOIN hlo_modules AS h ON h.run_id = s.run_id
    WHERE s.stands
    QUALIFY s.import_id = max(s.import_id) OVER (PARTITION BY s.is_after, s.module, s.backend, r.parameters_digest, h.layout_digest)
),
shared AS (
    SELECT k.keys[3] AS "key" FROM keyed AS k GROUP BY k.keys[3] HAVING min(k.is_after) <> max(k.is_after)
),
steps AS (
    -- A name that one side alone has is not looked at step by step.
    SELECT
        CASE WHEN k.keys[3] IN (FROM shared) OR k.keys[4] IS NOT NULL THEN 0 ELSE 4 END AS step,
        k.*, NULL::UBIGINT AS "key", 0::BIGINT AS nth, false AS is_paired
    FROM keyed AS k
    UNION ALL
    SELECT
        n.step,
        n.run_id,
        n.import_id,
        n.is_after,
        n.module,
        n.backend,
        n.keys,
        n.place,
        n."key",
        n.nth,
        n."key" IS NOT NULL AND n.is_newest AND count(*) OVER (PARTITION BY n."key", n.is_newest, n.nth) = 2
    FROM (
        SELECT
            w.*,
            row_number() OVER (PARTITION BY w.is_after, w."key", w.is_newest ORDER BY w.place) AS nth
        FROM (
            SELECT
                s.step + 1 AS step,
                s.* EXCLUDE (step, "key", nth, is_paired),
                s.keys[s.step + 1] AS "key",
                s.import_id = max(s.import_id) OVER (PARTITION BY s.is_after, s.keys[s.step + 1]) AS is_newest
            FROM steps AS s
            WHERE NOT s.is_paired AND s.step < 4
        ) AS w
    ) AS n
)
SELECT
    any_value(t.module ORDER BY t.is_after DESC) AS module,
    any_value(t.backend ORDER BY t.is_after DESC) AS backend,
    max(t.run_id) FILTER (NOT t.is_after) AS before_run_id,
    max(t.run_id) FILTER (t.is_after) AS after_run_id,
    CASE WHEN bool_or(t.is_paired) THEN ['signature', 'parameters', 'name', 'only run'][any_value(t.step)] END AS paired_by
FROM steps AS t
WHERE t.is_paired OR t.step = 4
GROUP BY t.step, t."key", t.nth, t.is_paired, CASE WHEN NOT t.is_paired THEN (t.is_after, t.run_id) END;
