-- Values whose bytes overlap those of a buffer: the last $most before it, all that are live with it, the first after it.
WITH of_it AS (
    SELECT v.run_id, v.value_id, v.allocation_index, v.offset_bytes, v.size_bytes, g.start_time, g.end_time
    FROM "values" AS v
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
    WHERE v.run_id = $run AND v.value_id = $value_id
),
sharing AS (
    SELECT
        CASE
            WHEN g.end_time < b.start_time THEN 'before'
            WHEN g.start_time > b.end_time THEN 'after'
            WHEN g.start_time IS NOT NULL AND b.start_time IS NOT NULL THEN 'with it'
        END AS share_when,
        value_name(v.instruction, v.shape_index) AS "value",
        v.size_bytes,
        v.offset_bytes,
        g.start_time,
        g.end_time,
        v.opcode,
        v.op_name,
        v.value_id
    FROM of_it AS b
    JOIN "values" AS v ON v.run_id = b.run_id AND v.allocation_index = b.allocation_index
        AND v.value_id <> b.value_id
        AND v.offset_bytes < b.offset_bytes + b.size_bytes AND b.offset_bytes < v.offset_bytes + v.size_bytes
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
)
SELECT s.share_when, s."value", s.size_bytes, s.offset_bytes, s.start_time, s.end_time, s.opcode, s.op_name
FROM (
    SELECT
        x.*,
        row_number() OVER (
            PARTITION BY x.share_when
            ORDER BY CASE WHEN x.share_when = 'before' THEN -x.end_time ELSE x.start_time END, x.value_id
        ) AS near
    FROM sharing AS x
) AS s
WHERE s.near <= $most
ORDER BY s.start_time NULLS LAST, s.end_time, s.value_id;
