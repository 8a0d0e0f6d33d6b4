-- Which run of the database each given run is.
--
-- In: `given_runs` (number, dump_dir, stem) and `given_files` (number, role, content_sha256).
-- Out: `matched_runs` (number, run_id, is_held), one row a given run.
--   is_held: the run holds every given file with this content; there is nothing to load.
--   run_id without is_held: the given files complete that run. Without run_id, it is a new run.
--
-- A run is its place and its own text: primary, values and live ranges; of a protobuf without primary that one
-- counts as text too. A run is completed by what has all of its text and more sidecar files; so nothing that a run
-- holds of its text is ever lost. A file of which no content is known could not be read.
CREATE OR REPLACE TEMP TABLE matched_runs AS
WITH candidates AS (
    SELECT number, run_id FROM given_runs JOIN runs USING (dump_dir, stem)
),
recorded AS (
    SELECT
        run_id,
        role,
        content_sha256,
        role IN ('primary', 'values', 'live_range')
            OR (role = 'proto' AND NOT bool_or(role = 'primary') OVER (PARTITION BY run_id)) AS is_text
    FROM run_files SEMI JOIN candidates USING (run_id)
),
held AS (
    SELECT
        c.number,
        c.run_id,
        bool_and(
            r.role IS NOT NULL
            AND (g.content_sha256 IS NULL OR g.content_sha256 IS NOT DISTINCT FROM r.content_sha256)
        ) AS is_held
    FROM candidates AS c
    JOIN given_files AS g USING (number)
    LEFT JOIN recorded AS r ON r.run_id = c.run_id AND r.role = g.role
    GROUP BY ALL
),
kept AS (
    SELECT c.number, c.run_id, bool_and(g.content_sha256 IS NOT DISTINCT FROM r.content_sha256) AS is_kept
    FROM candidates AS c
    JOIN recorded AS r ON r.run_id = c.run_id AND r.is_text AND r.content_sha256 IS NOT NULL
    LEFT JOIN given_files AS g ON g.number = c.number AND g.role = r.role
    GROUP BY ALL
),
best AS (
    SELECT number, run_id, is_held
    FROM held LEFT JOIN kept USING (number, run_id)
    WHERE is_held OR is_kept
    -- The newest, where a text came back.
    QUALIFY row_number() OVER (PARTITION BY number ORDER BY is_held DESC, run_id DESC) = 1
)
SELECT
    number,
    -- Of two that would complete one run, the first does; the other is a new version.
    CASE
        WHEN is_held OR row_number() OVER (PARTITION BY run_id, is_held ORDER BY number) = 1 THEN run_id
    END AS run_id,
    coalesce(is_held, false) AS is_held
FROM given_runs LEFT JOIN best USING (number);
