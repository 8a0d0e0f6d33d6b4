-- What the import stores in shared_addresses, by joins and sums over values, uses and ranges.
WITH results AS (
    SELECT v.run_id, v.value_id, v.instruction, v.shape_index, v.allocation_index, v.offset_bytes
    FROM runs AS r
    JOIN "values" AS v ON v.run_id = r.run_id
    WHERE v.opcode = 'while' AND v.is_phi
),
loops AS MATERIALIZED (
    -- The operands of loops that hold the bytes of the result. Gathered in one row, the results are known to be few: what
    -- follows then looks at their addresses only, and else makes all values ready to be joined.
    SELECT i.run_id, i.allocation_index, i.offset_bytes, i.value_id, w.value_id AS result_id
    FROM (SELECT unnest(list(r), recursive := true) FROM results AS r) AS w
    JOIN uses AS u ON u.run_id = w.run_id AND u.instruction = w.instruction AND u.operand_index = w.shape_index
    JOIN "values" AS i ON i.run_id = u.run_id AND i.value_id = u.value_id
        AND i.allocation_index = w.allocation_index AND i.offset_bytes = w.offset_bytes
    WHERE u.operand_number = 0 AND i.size_bytes > 0
),
at_loops AS MATERIALIZED (
    SELECT p.run_id, p.allocation_index, p.offset_bytes, p.value_id, p.size_bytes
    FROM "values" AS p
    SEMI JOIN loops AS l ON l.run_id = p.run_id AND l.allocation_index = p.allocation_index AND l.offset_bytes = p.offset_bytes
    WHERE p.size_bytes > 0
),
interrupted AS (
    -- The last value of the turn in which a loop was entered, where that turn ends before the loop's result is there.
    SELECT DISTINCT e.run_id, e.allocation_index, e.offset_bytes, e.last
    FROM (
        SELECT
            l.run_id, l.allocation_index, l.offset_bytes, w.start_time AS result_time,
            arg_min({'value_id': p.value_id, 'end_time': g.end_time, 'bytes': p.size_bytes - g.handover_bytes},
                (g.end_time, p.value_id)) AS last
        FROM loops AS l
        JOIN ranges AS w ON w.run_id = l.run_id AND w.value_id = l.result_id
        JOIN ranges AS i ON i.run_id = l.run_id AND i.value_id = l.value_id
        JOIN at_loops AS p ON p.run_id = l.run_id AND p.allocation_index = l.allocation_index AND p.offset_bytes = l.offset_bytes
        JOIN ranges AS g ON g.run_id = p.run_id AND g.value_id = p.value_id
            AND g.end_time >= i.end_time AND g.handover_bytes < p.size_bytes
        GROUP BY l.run_id, l.allocation_index, l.offset_bytes, i.end_time, w.start_time
    ) AS e
    WHERE e.last.end_time < e.result_time
)
SELECT
    s.* EXCLUDE (taken_over, handover_bytes),
    -- The bytes of a turn are those that its last value does not hand over.
    CASE WHEN r.has_ranges THEN s."values" - s.taken_over - coalesce(i.turns, 0) END AS turns,
    CASE WHEN r.has_ranges THEN (s.value_bytes - coalesce(s.handover_bytes, 0) - coalesce(i.bytes, 0))::BIGINT END AS turn_bytes
FROM (
    SELECT
        v.run_id,
        v.allocation_index,
        v.offset_bytes,
        count(*) AS "values",
        max(v.size_bytes) AS slot_bytes,
        sum(v.size_bytes)::BIGINT AS value_bytes,
        count(*) FILTER (h.handover_bytes = v.size_bytes) AS taken_over,
        sum(h.handover_bytes) AS handover_bytes
    FROM runs AS r
    JOIN allocations AS a ON a.run_id = r.run_id AND a.placed_values > 1
    JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
    -- Most values hand nothing over.
    LEFT JOIN (
        SELECT g.run_id, g.value_id, g.handover_bytes FROM ranges AS g WHERE g.handover_bytes > 0
    ) AS h ON h.run_id = v.run_id AND h.value_id = v.value_id
    WHERE v.size_bytes > 0
    GROUP BY v.run_id, v.allocation_index, v.offset_bytes
    HAVING count(*) > 1
) AS s
JOIN runs AS r ON r.run_id = s.run_id
LEFT JOIN (
    SELECT x.run_id, x.allocation_index, x.offset_bytes, count(*) AS turns, sum(x.last.bytes) AS bytes
    FROM interrupted AS x
    GROUP BY x.run_id, x.allocation_index, x.offset_bytes
) AS i ON i.run_id = s.run_id AND i.allocation_index = s.allocation_index AND i.offset_bytes = s.offset_bytes
ORDER BY ALL;
