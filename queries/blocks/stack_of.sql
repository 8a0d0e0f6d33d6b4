-- title: Python stack of a value, outermost call first.
-- note: From the HLO text or protobuf of the dump (jaxlib 0.8 and later); no rows where they have none.
-- column level BIGINT: 0 for the outermost call.
-- column function VARCHAR: Function.
-- column file VARCHAR: Source file.
-- column line BIGINT: Source line.
-- column is_framework BOOLEAN: The file lies in a framework's own folders.
CREATE OR REPLACE MACRO stack_of(run_id, value_id) AS TABLE
WITH RECURSIVE walk AS (
    SELECT f.run_id, f.parent_frame_id, f."function", f.file, f.line, f.is_framework, 0 AS depth
    FROM "values" AS v
    JOIN source_frames AS f ON f.run_id = v.run_id AND f.frame_id = coalesce(v.source_frame_id, v.stack_frame_id)
    WHERE v.run_id = run_id AND v.value_id = value_id
    UNION ALL
    -- The limit ends a damaged table that goes in circles.
    SELECT p.run_id, p.parent_frame_id, p."function", p.file, p.line, p.is_framework, w.depth + 1
    FROM walk AS w
    JOIN source_frames AS p ON p.run_id = w.run_id AND p.frame_id = w.parent_frame_id
    WHERE w.depth < 1000
)
SELECT (max(w.depth) OVER () - w.depth)::BIGINT AS level, w."function", w.file, w.line, w.is_framework
FROM walk AS w
ORDER BY w.depth DESC;
