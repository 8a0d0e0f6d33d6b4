-- title: Same program or not
-- topic: comparing
-- question: Which runs are the same program?
-- reads: selected runs
-- note: With the HLO text or the protobuf of a dump, the fingerprint is of the module: opcodes, operands, shapes,
--   attributes and constants of all instructions in the order in which they run, without names, numbers and metadata.
--   From the dump alone it is of the values: shapes, opcodes, live ranges and uses; what fusions compute is not known
--   then, besides by their names. based_on says which; runs are grouped with those that have the same only.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter min_runs BIGINT = 2: fewest runs of a program
-- key: runs, contents, module, run_ids, based_on
-- column fingerprint VARCHAR: fingerprint
-- column runs BIGINT [count]: runs of this program
-- column contents BIGINT [count]: distinct contents among them, byte by byte
-- column module VARCHAR: one of the module names
-- column based_on VARCHAR: what the fingerprint is of: protobuf, text (HLO text) or dump
-- column run_ids VARCHAR as which: the runs, at most 20
-- column modules BIGINT [count]: distinct module names among them
-- column total_bytes BIGINT [bytes]: sum of allocations of each
PREPARE same_program AS
WITH texts AS (
    SELECT f.run_id, list(f.content_sha256 ORDER BY f.role) AS contents
    FROM run_files AS f
    WHERE f.role IN ('primary', 'values', 'live_range') AND f.content_sha256 IS NOT NULL
    GROUP BY f.run_id
),
candidates AS MATERIALIZED (
    -- One run stands for all whose texts are equal byte by byte.
    SELECT
        r.run_id, r.module, r.content_sha256, m.program_sha256,
        CASE WHEN m.program_sha256 IS NULL THEN 'dump' ELSE m.read_from END AS based_on,
        CASE WHEN m.program_sha256 IS NULL THEN min(r.run_id) OVER (
            PARTITION BY coalesce(t.contents, [r.run_id::VARCHAR]), m.program_sha256 IS NULL) END AS alike
    FROM selected_runs($run, $label, $module) AS r
    LEFT JOIN hlo_modules AS m USING (run_id)
    LEFT JOIN texts AS t USING (run_id)
),
dumps AS MATERIALIZED (SELECT DISTINCT c.alike AS run_id FROM candidates AS c WHERE c.alike IS NOT NULL),
-- A value is known by what it is and when it is live: ids and numbers in names change between compilations, and
-- names of parameters are the user's.
of_values AS MATERIALIZED (
    SELECT v.run_id, v.value_id, md5_number_lower(concat_ws(' ', v.shape, v.shape_index, v.opcode,
        CASE WHEN v.opcode IS DISTINCT FROM 'parameter' THEN translate(v.instruction, '0123456789.', '') END,
        g.start_time, g.end_time)) >> 24 AS print
    FROM "values" AS v
    SEMI JOIN dumps AS d USING (run_id)
    LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
),
of_dumps AS (
    SELECT p.run_id, sum(p.print)::VARCHAR AS print
    FROM (
        SELECT v.run_id, v.print FROM of_values AS v
        UNION ALL
        SELECT u.run_id, md5_number_lower(concat_ws(' ', v.print, u.operand_number, u.operand_index,
            translate(u.instruction, '0123456789.', ''))) >> 24
        FROM uses AS u
        JOIN of_values AS v USING (run_id, value_id)
        UNION ALL
        SELECT a.run_id, md5_number_lower(concat_ws(' ', a.size_bytes, a.color, a.kind)) >> 24
        FROM allocations AS a
        SEMI JOIN dumps AS d USING (run_id)
    ) AS p
    GROUP BY p.run_id
)
SELECT
    left(coalesce(c.program_sha256, md5(d.print)), 16) AS fingerprint,
    count(*) AS runs,
    count(DISTINCT c.content_sha256) AS contents,
    min(c.module) AS module,
    c.based_on,
    array_to_string(list_slice(list(c.run_id ORDER BY c.run_id), 1, 20), ',') AS run_ids,
    count(DISTINCT c.module) AS modules,
    min(b.total_bytes) AS total_bytes
FROM candidates AS c
LEFT JOIN of_dumps AS d ON d.run_id = c.alike
LEFT JOIN run_summary AS b ON b.run_id = c.run_id
GROUP BY c.program_sha256, d.print, c.based_on
HAVING count(*) >= $min_runs
ORDER BY runs DESC, total_bytes DESC, fingerprint
LIMIT $top;

EXECUTE same_program(top := 20, min_runs := 2, run := NULL, label := NULL, module := NULL);
