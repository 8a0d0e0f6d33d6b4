-- title: Same program or not
-- question: Which runs are the same program?
-- note: The fingerprint is over shape, opcode and size of all values and over the allocations, without names and numbers,
--   which change from one compilation to the next. Runs of one fingerprint with several contents differ in text only.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter min_runs BIGINT = 2: fewest runs of a program
-- column fingerprint VARCHAR: fingerprint
-- column runs BIGINT [count]: runs of this program
-- column contents BIGINT [count]: distinct contents among them, byte by byte
-- column module VARCHAR: one of the module names
-- column run_ids VARCHAR: the runs, at most 20
-- column modules BIGINT [count]: distinct module names among them
-- column total_bytes BIGINT [bytes]: sum of allocations of each
PREPARE same_program AS
-- MD5 is the same in every version of DuckDB, unlike hash(), but slow: it is taken once of each distinct text, and values
-- are looked at only in runs whose allocations are those of other runs.
WITH of_allocations AS (
    SELECT u.run_id, sum(u.print * u.number) AS print, sum(u.size_bytes::HUGEINT * u.number)::BIGINT AS total_bytes
    FROM (
        SELECT d.print, d.size_bytes, d.number, unnest(d.run_ids) AS run_id
        FROM (
            SELECT
                (md5_number_lower(concat_ws(' ', g.size_bytes, g.color, g.kind)) >> 24)::HUGEINT AS print,
                g.size_bytes, g.number, list(g.run_id) AS run_ids
            FROM (
                SELECT a.run_id, a.size_bytes, a.color, a.kind, count(*) AS number
                FROM allocations AS a
                GROUP BY a.run_id, a.size_bytes, a.color, a.kind
            ) AS g
            GROUP BY g.size_bytes, g.color, g.kind, g.number
        ) AS d
    ) AS u
    GROUP BY u.run_id
),
candidates AS MATERIALIZED (
    SELECT r.run_id, r.content_sha256, r.module, a.print, a.total_bytes
    FROM selected_runs($run, $label, $module) AS r
    JOIN of_allocations AS a USING (run_id)
    QUALIFY count(*) OVER (PARTITION BY a.print) >= $min_runs
),
of_values AS (
    SELECT u.run_id, sum(u.print) AS print
    FROM (
        SELECT d.print, unnest(d.run_ids) AS run_id
        FROM (
            SELECT
                md5_number_lower(concat_ws(' ', g.shape, g.opcode, g.size_bytes, g.number)) >> 24 AS print,
                list(g.run_id) AS run_ids
            FROM (
                SELECT v.run_id, v.shape, coalesce(v.opcode, '') AS opcode, v.size_bytes, count(*) AS number
                FROM "values" AS v
                WHERE v.run_id IN (SELECT c.run_id FROM candidates AS c)
                GROUP BY v.run_id, v.shape, coalesce(v.opcode, ''), v.size_bytes
            ) AS g
            GROUP BY g.shape, g.opcode, g.size_bytes, g.number
        ) AS d
    ) AS u
    GROUP BY u.run_id
)
SELECT
    left(md5(concat_ws(' ', v.print, c.print)), 16) AS fingerprint,
    count(*) AS runs,
    count(DISTINCT c.content_sha256) AS contents,
    min(c.module) AS module,
    array_to_string(list_slice(list(c.run_id ORDER BY c.run_id), 1, 20), ',') AS run_ids,
    count(DISTINCT c.module) AS modules,
    min(c.total_bytes) AS total_bytes
FROM candidates AS c
JOIN of_values AS v USING (run_id)
GROUP BY v.print, c.print
HAVING count(*) >= $min_runs
ORDER BY runs DESC, total_bytes DESC, fingerprint
LIMIT $top;

EXECUTE same_program(top := 20, min_runs := 2, run := NULL, label := NULL, module := NULL);
