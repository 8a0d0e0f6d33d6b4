-- title: Addresses that hold several values, the turns that these take there, and the bytes of the turns.
-- note: Values whose bytes another one takes over in place are one turn. So is the state of a loop, although its bytes are
--   free for other values between its last use in the body and its update there.
-- column run_id BIGINT: Number of the run.
-- column allocation_index BIGINT: Number of the allocation.
-- column offset_bytes BIGINT: Start within the allocation, bytes.
-- column values BIGINT: Values, count.
-- column slot_bytes BIGINT: Size of the largest, bytes.
-- column value_bytes BIGINT: Sum of their sizes, bytes.
-- column turns BIGINT: Turns, count; NULL without live ranges.
-- column turn_bytes BIGINT: Sum of the sizes of the turns, bytes; NULL without live ranges.
CREATE OR REPLACE MACRO address_turns(run := NULL, label := NULL, module := NULL) AS TABLE
WITH placed AS MATERIALIZED (
    SELECT
        v.run_id, v.allocation_index, v.offset_bytes, v.value_id, v.size_bytes, g.end_time,
        -- The bytes of a turn are those that its last value does not hand over.
        CASE WHEN r.has_ranges THEN v.size_bytes - coalesce(g.handover_bytes, 0) END AS kept_bytes
    FROM selected_runs(run, label, module) AS r
    JOIN "values" AS v USING (run_id)
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
    WHERE v.size_bytes > 0
),
loops AS (
    SELECT i.run_id, i.allocation_index, i.offset_bytes, i.end_time AS entry_time, g.start_time AS result_time
    FROM "values" AS w
    JOIN ranges AS g ON g.run_id = w.run_id AND g.value_id = w.value_id
    JOIN uses AS u ON u.run_id = w.run_id AND u.instruction = w.instruction AND u.operand_index = w.shape_index
    JOIN placed AS i ON i.run_id = u.run_id AND i.value_id = u.value_id
        AND i.allocation_index = w.allocation_index AND i.offset_bytes = w.offset_bytes
    WHERE w.opcode = 'while' AND w.is_phi AND u.operand_number = 0
),
interrupted AS (
    -- The last value of the turn in which a loop was entered, where that turn ends before the loop's result is there.
    SELECT DISTINCT e.run_id, e.allocation_index, e.offset_bytes, e.last
    FROM (
        SELECT
            l.run_id, l.allocation_index, l.offset_bytes, l.result_time,
            arg_min({'value_id': p.value_id, 'end_time': p.end_time, 'bytes': p.kept_bytes}, (p.end_time, p.value_id)) AS last
        FROM loops AS l
        JOIN placed AS p ON p.run_id = l.run_id AND p.allocation_index = l.allocation_index
            AND p.offset_bytes = l.offset_bytes AND p.end_time >= l.entry_time AND p.kept_bytes > 0
        GROUP BY l.run_id, l.allocation_index, l.offset_bytes, l.entry_time, l.result_time
    ) AS e
    WHERE e.last.end_time < e.result_time
)
SELECT s.* EXCLUDE (turns, turn_bytes), s.turns - coalesce(i.turns, 0) AS turns, (s.turn_bytes - coalesce(i.bytes, 0))::BIGINT AS turn_bytes
FROM (
    SELECT
        p.run_id,
        p.allocation_index,
        p.offset_bytes,
        count(*) AS "values",
        max(p.size_bytes) AS slot_bytes,
        sum(p.size_bytes)::BIGINT AS value_bytes,
        CASE WHEN count(p.kept_bytes) > 0 THEN count(*) FILTER (p.kept_bytes > 0) END AS turns,
        sum(p.kept_bytes) AS turn_bytes
    FROM placed AS p
    GROUP BY p.run_id, p.allocation_index, p.offset_bytes
    HAVING count(*) > 1
) AS s
LEFT JOIN (
    SELECT x.run_id, x.allocation_index, x.offset_bytes, count(*) AS turns, sum(x.last.bytes) AS bytes
    FROM interrupted AS x
    GROUP BY x.run_id, x.allocation_index, x.offset_bytes
) AS i ON i.run_id = s.run_id AND i.allocation_index = s.allocation_index AND i.offset_bytes = s.offset_bytes;
