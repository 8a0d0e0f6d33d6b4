-- title: Buffers of two compilations, each with the one that it is in the other compilation, if any; no rows for equal dumps.
-- note: The runs are paired as run_pairs says. Buffers are values with a live range; they are matched by the strongest key
--   that two of them share, the k-th with the k-th: those that are live at the peak first, then in order of their start.
--   The keys, strongest first: for parameters the name, then the number; operation with source, shape, opcode and kind;
--   operation with dimensions, without the functions that it is in; for copies what they copy; operations that read it;
--   name of the instruction without its number; then guesses by dimensions, and the same operation with other dimensions
--   (first, where the parameters differ). Last, of what is left and live at the peak: those of equal bytes, in the same
--   source line first; then those of one source line.
-- column before_run_id BIGINT: Run of the first side.
-- column after_run_id BIGINT: Run of the second side.
-- column before_value_id BIGINT: Value in the first run; NULL where it is new.
-- column after_value_id BIGINT: Value in the second run; NULL where it is gone.
-- column before_peak_bytes BIGINT: Its bytes at the peak of the first run, each byte once; they add up to runs.peak_bytes.
-- column after_peak_bytes BIGINT: Its bytes at the peak of the second run.
-- column matched_by VARCHAR: Key by which they were matched; NULL without a partner.
-- column confidence VARCHAR: same, likely or guess; of a buffer without partner, how sure it is that it has none.
CREATE OR REPLACE MACRO matched_buffers(before, after, run := NULL, label := NULL, module := NULL) AS TABLE
WITH RECURSIVE sides AS MATERIALIZED (
    SELECT
        p.before_run_id,
        p.after_run_id,
        p.paired_by IN ('signature', 'parameters') AS is_same_entry,
        unnest([false, true]) AS is_after,
        unnest([p.before_run_id, p.after_run_id]) AS run_id
    -- Gathered in one row, the pairs are known to be few: else the joins below are planned for all there could be, and read
    -- every value to look up none (CPU time a third to a quarter).
    FROM (SELECT unnest(list(q), recursive := true) FROM run_pairs(before, after, run, label, module) AS q) AS p
    JOIN runs AS b ON b.run_id = p.before_run_id AND b.peak_bytes IS NOT NULL
    JOIN runs AS a ON a.run_id = p.after_run_id AND a.peak_bytes IS NOT NULL
    -- Equal texts need no matching.
    WHERE b.content_sha256 IS NULL OR b.content_sha256 IS DISTINCT FROM a.content_sha256 OR b.peak_bytes <> a.peak_bytes
),
compared AS MATERIALIZED (
    SELECT DISTINCT s.run_id FROM sides AS s
),
-- The values are read once: they are by far the most bytes of a database.
defining AS MATERIALIZED (
    SELECT
        v.run_id, v.value_id, v.instruction, v.shape_index, v.allocation_index, v.size_bytes, v.shape, v.dtype, v.dimensions,
        v.opcode, v.op_name, v.source_file, v.source_line
    FROM compared AS c
    JOIN "values" AS v ON v.run_id = c.run_id
),
operations AS MATERIALIZED (
    SELECT
        n.op_name,
        plain_op_name(n.op_name) AS operation,
        -- Which functions of its library are compiled for themselves, a release decides.
        regexp_replace(operation, '\bjit[(][^()]*[)]/', '', 'g') AS work
    FROM (SELECT DISTINCT d.op_name FROM defining AS d WHERE d.op_name IS NOT NULL) AS n
),
defined AS MATERIALIZED (
    SELECT d.run_id, d.instruction, any_value(coalesce(o.operation, d.opcode) ORDER BY d.value_id) AS operation
    FROM defining AS d
    LEFT JOIN operations AS o ON o.op_name = d.op_name
    GROUP BY d.run_id, d.instruction
),
readers AS (
    SELECT u.run_id, u.value_id, string_agg(DISTINCT d.operation || ' ' || u.operand_number, ',' ORDER BY d.operation || ' ' || u.operand_number) AS readers
    FROM compared AS c
    JOIN uses AS u ON u.run_id = c.run_id
    JOIN defined AS d ON d.run_id = u.run_id AND d.instruction = u.instruction
    GROUP BY u.run_id, u.value_id
),
copies AS MATERIALIZED (
    -- One of several that an operand may be.
    SELECT d.run_id, d.value_id, min(u.value_id) AS original_id
    FROM defining AS d
    JOIN uses AS u ON u.run_id = d.run_id AND u.instruction = d.instruction AND u.operand_number = 0 AND u.operand_index = '{}'
    WHERE d.op_name IS NULL AND d.opcode IN ('copy', 'copy-start') AND d.shape_index IN ('{}', '{0}')
    GROUP BY d.run_id, d.value_id
),
-- Two steps back, as between memory spaces and then within one. Any number of steps, by recursion, leads DuckDB to
-- estimates with which all that follows takes three times as long.
copied AS MATERIALIZED (
    SELECT
        c.run_id,
        c.value_id,
        hash(coalesce(n.work, regexp_replace(d.instruction, '[.\d]+$', '') || d.shape_index), e.value_id IS NULL) AS what
    FROM copies AS c
    LEFT JOIN copies AS e ON e.run_id = c.run_id AND e.value_id = c.original_id
    JOIN defining AS d ON d.run_id = c.run_id AND d.value_id = coalesce(e.original_id, c.original_id)
    LEFT JOIN operations AS n ON n.op_name = d.op_name
),
described AS MATERIALIZED (
    SELECT
        v.run_id,
        v.value_id,
        v.opcode,
        v.dtype,
        v.shape,
        v.shape_index,
        v.size_bytes,
        v.source_file,
        v.source_line,
        a.kind,
        a.parameter_number,
        a.parameter_shape_index,
        a.parameter_value_id IS NOT DISTINCT FROM v.value_id AS is_parameter,
        coalesce(v.dtype || v.dimensions::VARCHAR, shapes_only(v.shape)) AS dimensions,
        regexp_replace(v.instruction, '[.\d]+$', '') AS stem,
        o.operation,
        o.work,
        CASE
            WHEN o.operation IS NOT NULL THEN hash(o.operation, v.opcode, a.kind, v.shape_index)
            WHEN is_parameter THEN hash('parameter', a.parameter_number, a.parameter_shape_index)
        END AS made_by,
        u.readers,
        c.what AS copy_of,
        g.start_time,
        coalesce(g.peak_bytes, 0) AS peak_bytes
    FROM defining AS v
    JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
    -- LEFT, as in values_at_peak: an inner join would be made with ranges, by run_id alone.
    LEFT JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index
    LEFT JOIN operations AS o ON o.op_name = v.op_name
    LEFT JOIN readers AS u ON u.run_id = v.run_id AND u.value_id = v.value_id
    LEFT JOIN copied AS c ON c.run_id = v.run_id AND c.value_id = v.value_id
    WHERE v.size_bytes > 0
),
steps AS (
    SELECT
        s.before_run_id,
        s.after_run_id,
        s.is_after,
        d.value_id,
        d.operation,
        d.is_parameter,
        d.start_time,
        d.peak_bytes,
        -- A key is unique to its place in the list; NULL is none.
        [
            CASE
                WHEN d.operation IS NULL THEN NULL
                WHEN d.is_parameter THEN hash('parameter', d.operation, d.parameter_shape_index, d.dimensions)
                ELSE hash(d.operation, d.source_file, d.source_line, d.shape, d.shape_index, d.opcode, d.kind)
            END,
            CASE
                WHEN d.is_parameter THEN hash('parameter', d.parameter_number, d.parameter_shape_index, d.dimensions)
                WHEN d.work IS NOT NULL THEN hash(d.work, d.dimensions, d.opcode)
            END,
            CASE WHEN d.work IS NOT NULL THEN hash(d.work, d.dimensions) END,
            CASE WHEN d.copy_of IS NOT NULL THEN hash(d.copy_of, d.dimensions) END,
            CASE WHEN d.readers IS NOT NULL THEN hash(d.readers, d.dimensions, d.opcode) END,
            hash(d.stem, d.dimensions, d.kind),
            -- Where the program was called with other shapes, the same operation comes before equal dimensions.
            CASE WHEN NOT s.is_same_entry THEN d.made_by END,
            hash(d.dimensions, d.opcode, d.kind),
            d.made_by,
            CASE WHEN d.peak_bytes > 0 AND d.source_line IS NOT NULL THEN hash(d.source_file, d.source_line, d.peak_bytes, d.kind) END,
            CASE WHEN d.peak_bytes > 0 THEN hash(d.peak_bytes, d.kind) END,
            CASE WHEN d.peak_bytes > 0 AND d.source_line IS NOT NULL THEN hash(d.source_file, d.source_line, d.dtype, d.kind) END
        ] AS keys,
        d.operation IS NOT NULL AND count(DISTINCT s.is_after) OVER (
            PARTITION BY s.before_run_id, s.after_run_id, d.operation
        ) = 1 AS is_foreign,
        0 AS step,
        NULL::UBIGINT AS "key",
        0::BIGINT AS nth,
        false AS is_matched
    FROM sides AS s
    JOIN described AS d ON d.run_id = s.run_id
    UNION ALL
    SELECT
        n.* EXCLUDE (place, befores, afters),
        n.place - CASE WHEN n.is_after THEN n.befores ELSE 0 END AS nth,
        n."key" IS NOT NULL AND nth <= least(n.befores, n.afters)
    FROM (
        SELECT
            s.* EXCLUDE (step, "key", nth, is_matched),
            s.step + 1 AS step,
            s.keys[s.step + 1] AS "key",
            row_number() OVER alike AS place,
            count(*) FILTER (NOT s.is_after) OVER alike AS befores,
            count(*) FILTER (s.is_after) OVER alike AS afters
        FROM steps AS s
        WHERE NOT s.is_matched AND s.step < 12
        WINDOW alike AS (
            PARTITION BY s.before_run_id, s.after_run_id, s.keys[s.step + 1]
            ORDER BY s.is_after, s.peak_bytes > 0 DESC, s.start_time, s.value_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
    ) AS n
)
SELECT
    t.before_run_id,
    t.after_run_id,
    max(t.value_id) FILTER (NOT t.is_after) AS before_value_id,
    max(t.value_id) FILTER (t.is_after) AS after_value_id,
    coalesce(sum(t.peak_bytes) FILTER (NOT t.is_after), 0)::BIGINT AS before_peak_bytes,
    coalesce(sum(t.peak_bytes) FILTER (t.is_after), 0)::BIGINT AS after_peak_bytes,
    CASE WHEN t.is_matched THEN [
        CASE WHEN any_value(t.is_parameter) THEN 'parameter name' ELSE 'operation and source' END,
        CASE WHEN any_value(t.is_parameter) THEN 'parameter number' ELSE 'operation and opcode' END,
        'operation', 'copy', 'readers', 'instruction', 'resized', 'dimensions', 'resized', 'line and size', 'size', 'line'
    ][t.step] END AS matched_by,
    CASE
        WHEN t.is_matched THEN CASE WHEN t.step <= 2 THEN 'same' WHEN t.step IN (3, 4, 5, 6, 7, 9) THEN 'likely' ELSE 'guess' END
        -- Its operation is done in one of the programs only.
        WHEN any_value(t.is_foreign) THEN 'same'
        WHEN any_value(t.operation) IS NOT NULL THEN 'likely'
        ELSE 'guess'
    END AS confidence
FROM steps AS t
WHERE t.is_matched OR t.step = 12
GROUP BY t.before_run_id, t.after_run_id, t.step, t.is_matched,
    CASE WHEN t.is_matched THEN (t."key"::VARCHAR, t.nth) ELSE (t.is_after::VARCHAR, t.value_id) END;
