-- title: Users of a buffer
-- topic: lifetime
-- question: Which instructions use a buffer, and as which operand?
-- needs: uses
-- reads: selected runs
-- note: The name is the defining instruction, with the shape index where the result is a tuple; a glob finds several. Without
--   a name the largest buffers are shown.
-- example: --value 'all-reduce*'
-- parameter value VARCHAR = '*': name of the buffer, a glob
-- parameter top BIGINT = 50: rows to show
-- key: run_id, value, size_bytes, user, operand_number, time, shape
-- column run_id BIGINT: number of the run
-- column value VARCHAR: the buffer
-- column size_bytes BIGINT [bytes]: its size
-- column uses BIGINT [count]: uses of the buffer
-- column user VARCHAR: instruction that uses it; NULL for a buffer without uses
-- column operand_number BIGINT as operand: as which operand, from 0
-- column time BIGINT [slots]: slot of that instruction; NULL inside of fusions and without a schedule
-- column user_opcode VARCHAR: opcode of that instruction, NULL where it defines no value
-- column operand_index VARCHAR as part: which part of that operand
-- column shape VARCHAR: shape of the buffer
-- column module VARCHAR: module of the run
PREPARE users_of AS
WITH wanted AS MATERIALIZED (
    SELECT
        v.run_id, v.value_id, v.size_bytes, v.shape, r.module,
        value_name(v.instruction, v.shape_index) AS "value"
    FROM (
        SELECT x.run_id, x.value_id
        FROM selected_runs($run, $label, $module) AS c
        JOIN "values" AS x USING (run_id)
        WHERE c.has_values
          AND ($value = '*' OR x.instruction GLOB $value OR x.instruction || x.shape_index GLOB $value)
        ORDER BY x.size_bytes DESC, x.run_id, x.value_id
        LIMIT $top
    ) AS n
    JOIN selected_runs() AS r ON r.run_id = n.run_id
    JOIN "values" AS v ON v.run_id = n.run_id AND v.value_id = n.value_id
),
users AS MATERIALIZED (
    SELECT DISTINCT u.run_id, u.instruction
    FROM wanted AS w
    JOIN uses AS u ON u.run_id = w.run_id AND u.value_id = w.value_id
),
opcodes AS (
    SELECT v.run_id, v.instruction, min(v.opcode) AS opcode
    FROM users AS u
    JOIN "values" AS v ON v.run_id = u.run_id AND v.instruction = u.instruction
    GROUP BY v.run_id, v.instruction
),
slots AS (
    SELECT s.run_id, s.instruction, s.time
    FROM users AS u
    JOIN schedule AS s ON s.run_id = u.run_id AND s.instruction = u.instruction
)
SELECT
    w.run_id,
    w."value",
    w.size_bytes,
    count(u.instruction) OVER (PARTITION BY w.run_id, w.value_id) AS uses,
    u.instruction AS "user",
    u.operand_number,
    s.time,
    o.opcode AS user_opcode,
    u.operand_index,
    w.shape,
    w.module
FROM wanted AS w
LEFT JOIN uses AS u ON u.run_id = w.run_id AND u.value_id = w.value_id
LEFT JOIN slots AS s ON s.run_id = u.run_id AND s.instruction = u.instruction
LEFT JOIN opcodes AS o ON o.run_id = u.run_id AND o.instruction = u.instruction
ORDER BY w.size_bytes DESC, w.run_id, w.value_id, u.position
LIMIT $top;

EXECUTE users_of(value := '*', top := 50, run := NULL, label := NULL, module := NULL);
