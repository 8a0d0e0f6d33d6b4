-- title: Buffers whose bytes at the peak differ between two compilations, with what they are on either side.
-- note: Pairs of matched_buffers, and buffers without a partner; of each pair of runs before_peak_bytes adds up to the change
--   of the peak with after_peak_bytes. What folds alike in two programs, as layers do, has equal looks. Two buffers of both
--   programs that take turns at one place, one at the peak before and the other after, are no change: their memory is there
--   at both peaks.
-- column before_run_id BIGINT: Run of the first side.
-- column after_run_id BIGINT: Run of the second side.
-- column change VARCHAR: new, gone, resized, now live, no longer live, shared or replaced.
-- column confidence VARCHAR: same, likely or guess.
-- column before_peak_bytes BIGINT: Bytes at the peak of the first run.
-- column after_peak_bytes BIGINT: Bytes at the peak of the second run.
-- column before_look STRUCT: op_name and value with layers folded, source, shape, opcode, kind and color; NULL where it is new.
-- column after_look STRUCT: The same in the second run; NULL where it is gone.
-- column operation VARCHAR: Plain op_name, not folded.
-- column value VARCHAR: Name of the value, not folded.
CREATE OR REPLACE MACRO changed_buffers(before, after, run := NULL, label := NULL, module := NULL) AS TABLE
WITH RECURSIVE matched AS MATERIALIZED (
    SELECT m.*, row_number() OVER () AS row
    FROM matched_buffers(before, after, run, label, module) AS m
    WHERE m.before_peak_bytes <> m.after_peak_bytes
),
placed AS MATERIALIZED (
    SELECT
        m.row,
        m.before_run_id,
        m.after_run_id,
        m.before_peak_bytes > 0 AS is_before,
        CASE WHEN is_before THEN (m.before_peak_bytes, b.dtype, b.dimensions) ELSE (m.after_peak_bytes, a.dtype, a.dimensions) END AS what,
        -- The program whose places are looked at first does not depend on the direction of the comparison.
        list_sort([
            {'at': (r.content_sha256, b.allocation_index, b.offset_bytes, b.size_bytes), 'value_id': b.value_id},
            {'at': (s.content_sha256, a.allocation_index, a.offset_bytes, a.size_bytes), 'value_id': a.value_id}
        ]) AS places
    FROM matched AS m
    JOIN "values" AS b ON b.run_id = m.before_run_id AND b.value_id = m.before_value_id
    JOIN "values" AS a ON a.run_id = m.after_run_id AND a.value_id = m.after_value_id
    JOIN runs AS r ON r.run_id = m.before_run_id
    JOIN runs AS s ON s.run_id = m.after_run_id
    WHERE least(m.before_peak_bytes, m.after_peak_bytes) = 0
),
turns AS (
    SELECT p.*, 0 AS step, false AS is_turn
    FROM placed AS p
    UNION ALL
    SELECT
        n.* EXCLUDE (place, befores, afters),
        n.place - CASE WHEN n.is_before THEN 0 ELSE n.befores END <= least(n.befores, n.afters)
    FROM (
        SELECT
            t.* EXCLUDE (step, is_turn),
            t.step + 1 AS step,
            row_number() OVER alike AS place,
            count(*) FILTER (t.is_before) OVER alike AS befores,
            count(*) FILTER (NOT t.is_before) OVER alike AS afters
        FROM turns AS t
        WHERE NOT t.is_turn AND t.step < 2
        WINDOW alike AS (
            PARTITION BY t.before_run_id, t.after_run_id, t.what, t.places[t.step + 1].at
            ORDER BY t.is_before DESC, t.places[t.step + 1].value_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
    ) AS n
),
-- Put together before allocations are looked up, or these are joined by run_id alone.
wanted AS MATERIALIZED (
    SELECT d.*
    FROM (
        SELECT m.before_run_id AS run_id, m.before_value_id AS value_id FROM matched AS m WHERE m.before_value_id IS NOT NULL
        UNION
        SELECT m.after_run_id, m.after_value_id FROM matched AS m WHERE m.after_value_id IS NOT NULL
    ) AS w
    JOIN "values" AS d ON d.run_id = w.run_id AND d.value_id = w.value_id
),
described AS (
    SELECT
        d.run_id,
        d.value_id,
        d.size_bytes,
        plain_op_name(d.op_name) AS operation,
        {
            'op_name': folded_name(operation),
            'value': folded_name(value_name(d.instruction, d.shape_index)),
            'source': source_text(d.source_file, d.source_line, d.source_via),
            'shape': d.shape,
            'opcode': d.opcode,
            'kind': a.kind,
            'color': a.color
        } AS look,
        value_name(d.instruction, d.shape_index) AS "value"
    FROM wanted AS d
    JOIN (FROM allocations AS x WHERE x.run_id IN (SELECT w.run_id FROM wanted AS w)) AS a
        ON a.run_id = d.run_id AND a.allocation_index = d.allocation_index
)
SELECT
    m.before_run_id,
    m.after_run_id,
    CASE
        WHEN m.before_value_id IS NULL THEN 'new'
        WHEN m.after_value_id IS NULL THEN 'gone'
        WHEN m.matched_by IN ('line and size', 'size', 'line') THEN 'replaced'
        WHEN m.before_peak_bytes = 0 THEN 'now live'
        WHEN m.after_peak_bytes = 0 THEN 'no longer live'
        WHEN b.size_bytes = a.size_bytes THEN 'shared'
        ELSE 'resized'
    END AS change,
    m.confidence,
    m.before_peak_bytes,
    m.after_peak_bytes,
    b.look AS before_look,
    a.look AS after_look,
    coalesce(a.operation, b.operation) AS operation,
    coalesce(a."value", b."value") AS "value"
FROM matched AS m
ANTI JOIN (SELECT t.row FROM turns AS t WHERE t.is_turn) AS t ON t.row = m.row
LEFT JOIN described AS b ON b.run_id = m.before_run_id AND b.value_id = m.before_value_id
LEFT JOIN described AS a ON a.run_id = m.after_run_id AND a.value_id = m.after_value_id;
