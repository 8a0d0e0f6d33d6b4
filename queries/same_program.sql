-- title: Same program or not
-- question: Which runs are the same program?
-- needs: values
-- note: The fingerprint is over shape, opcode and size of all values and over the allocations, without names and numbers,
--   which change from one compilation to the next. Runs of one fingerprint with several contents differ in text only.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter min_runs BIGINT = 2: fewest runs of a program
-- column fingerprint VARCHAR: fingerprint, good within one database
-- column runs BIGINT [count]: runs of this program
-- column contents BIGINT [count]: distinct contents among them, byte by byte
-- column modules BIGINT [count]: distinct module names among them
-- column module VARCHAR: one of the module names
-- column total_bytes BIGINT [bytes]: sum of allocations of each
-- column run_ids VARCHAR: the runs, at most 20
PREPARE same_program AS
WITH of_values AS (
    SELECT v.run_id, sum(hash(v.shape, v.opcode, v.size_bytes) // 4294967296)::BIGINT AS print
    FROM "values" AS v
    GROUP BY v.run_id
),
of_allocations AS (
    SELECT a.run_id, sum(hash(a.size_bytes, a.color, a.kind) // 4294967296)::BIGINT AS print,
        sum(a.size_bytes)::BIGINT AS total_bytes
    FROM allocations AS a
    GROUP BY a.run_id
)
SELECT
    printf('%016x', hash(v.print, a.print)) AS fingerprint,
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
