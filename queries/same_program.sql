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
-- column modules BIGINT [count]: distinct module names among them
-- column module VARCHAR: one of the module names
-- column total_bytes BIGINT [bytes]: sum of allocations of each
-- column run_ids VARCHAR: the runs, at most 20
PREPARE same_program AS
WITH of_values AS (
    -- MD5 is the same in every version of DuckDB, unlike hash(); alike values are counted first to save it.
    SELECT g.run_id, sum(md5_number_lower(concat_ws(' ', g.shape, g.opcode, g.size_bytes, g.number)) >> 24) AS print
    FROM (
        SELECT v.run_id, v.shape, coalesce(v.opcode, '') AS opcode, v.size_bytes, count(*) AS number
        FROM "values" AS v
        GROUP BY v.run_id, v.shape, coalesce(v.opcode, ''), v.size_bytes
    ) AS g
    GROUP BY g.run_id
),
of_allocations AS (
    SELECT a.run_id, sum(md5_number_lower(concat_ws(' ', a.size_bytes, a.color, a.kind)) >> 24) AS print,
        sum(a.size_bytes)::BIGINT AS total_bytes
    FROM allocations AS a
    GROUP BY a.run_id
)
SELECT
    left(md5(concat_ws(' ', v.print, a.print)), 16) AS fingerprint,
    count(*) AS runs,
    count(DISTINCT r.content_sha256) AS contents,
    count(DISTINCT r.module) AS modules,
    min(r.module) AS module,
    min(a.total_bytes) AS total_bytes,
    array_to_string(list_slice(list(r.run_id ORDER BY r.run_id), 1, 20), ',') AS run_ids
FROM selected_runs($run, $label, $module) AS r
JOIN of_values AS v USING (run_id)
JOIN of_allocations AS a USING (run_id)
GROUP BY v.print, a.print
HAVING count(*) >= $min_runs
ORDER BY runs DESC, total_bytes DESC, fingerprint
LIMIT $top;

EXECUTE same_program(top := 20, min_runs := 2, run := NULL, label := NULL, module := NULL);
