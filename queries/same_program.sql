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
WITH candidates AS (
    SELECT
        r.run_id, r.module, t.content, m.program_sha256,
        CASE WHEN m.program_sha256 IS NULL THEN r.dump_digest END AS dump_digest,
        CASE WHEN m.program_sha256 IS NULL THEN 'dump' ELSE m.read_from END AS based_on
    FROM selected_runs($run, $label, $module) AS r
    JOIN run_contents AS t USING (run_id)
    LEFT JOIN hlo_modules AS m USING (run_id)
)
SELECT
    left(coalesce(c.program_sha256, md5(c.dump_digest::VARCHAR)), 16) AS fingerprint,
    count(*) AS runs,
    count(DISTINCT c.content) AS contents,
    min(c.module) AS module,
    c.based_on,
    array_to_string(list_slice(list(c.run_id ORDER BY c.run_id), 1, 20), ',') AS run_ids,
    count(DISTINCT c.module) AS modules,
    min(b.total_bytes) AS total_bytes
FROM candidates AS c
LEFT JOIN run_summary AS b ON b.run_id = c.run_id
GROUP BY c.program_sha256, c.dump_digest, c.based_on
HAVING count(*) >= $min_runs
ORDER BY runs DESC, total_bytes DESC, fingerprint
LIMIT $top;

EXECUTE same_program(top := 20, min_runs := 2, run := NULL, label := NULL, module := NULL);
