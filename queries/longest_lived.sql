-- title: Long-lived large buffers
-- topic: lifetime
-- question: Which results of operations hold much memory for long, and which last use holds them?
-- needs: ranges
-- reads: selected runs
-- note: Ranked by size times slots. Parameters and constants, which live throughout anyway, are left out, and so are results
--   that lie in the memory of a donated parameter, which is taken throughout as well, unless --donated true asks for
--   them. The last use is the latest scheduled one within the range; NULL for what leaves the program or is never read.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter min_bytes BIGINT [bytes] = 0: smallest buffer to show
-- parameter donated BOOLEAN = false: also results in the memory of donated parameters
-- key: run_id, size_bytes, slots, value, last_use, source, op_name, shape
-- column run_id BIGINT: number of the run
-- column size_bytes BIGINT [bytes]: size of the buffer
-- column slots BIGINT [slots]: slots in which it is live
-- column value VARCHAR: the buffer
-- column last_use VARCHAR: instruction that reads it last
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column op_name VARCHAR: name that the framework gave the operation
-- column shape VARCHAR: its shape with layout
-- column percent DOUBLE [share]: slots as a share of the schedule
-- column live_out BOOLEAN: its allocation leaves the program
-- column start_time BIGINT [slots] as start: first slot at which it is live
-- column end_time BIGINT [slots] as end: last slot at which it is live
-- column opcode VARCHAR: opcode of its instruction
-- column module VARCHAR: module of the run
PREPARE longest_lived AS
WITH longest AS MATERIALIZED (
    -- Texts and uses are looked up for the rows shown.
    SELECT
        g.run_id, g.value_id, r.module, r.schedule_length, g.start_time, g.end_time,
        g.end_time - g.start_time + 1 AS slots,
        g.value_bytes::DOUBLE * (g.end_time - g.start_time + 1) AS product
    FROM selected_runs($run, $label, $module) AS r
    JOIN ranges AS g ON g.run_id = r.run_id
    WHERE (g.role = 'result' OR (g.role = 'donated' AND $donated))
      AND g.value_bytes >= $min_bytes
    ORDER BY product DESC, g.run_id, g.value_id
    LIMIT $top
),
shown AS MATERIALIZED (
    SELECT l.*, v.* EXCLUDE (run_id, value_id), a.maybe_live_out
    FROM longest AS l
    JOIN "values" AS v ON v.run_id = l.run_id AND v.value_id = l.value_id
    JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index
),
reads AS MATERIALIZED (
    SELECT l.run_id, l.value_id, l.end_time, u.instruction, u.position
    FROM shown AS l
    JOIN uses AS u ON u.run_id = l.run_id AND u.value_id = l.value_id
    WHERE NOT (l.maybe_live_out AND l.end_time >= l.schedule_length)
),
last_uses AS (
    SELECT u.run_id, u.value_id, arg_max(u.instruction, (s.time, u.position)) AS instruction
    -- Gathered in one row, the reads are known to be few: else all slots are read.
    FROM (SELECT unnest(list(r), recursive := true) FROM reads AS r) AS u
    JOIN schedule AS s ON s.run_id = u.run_id AND s.instruction = u.instruction AND s.time <= u.end_time
    GROUP BY u.run_id, u.value_id
)
SELECT
    l.run_id,
    l.size_bytes,
    l.slots,
    value_name(l.instruction, l.shape_index) AS "value",
    u.instruction AS last_use,
    source_text(l.source_file, l.source_line, l.source_via) AS source,
    l.op_name,
    l.shape,
    100.0 * l.slots / nullif(l.schedule_length + 1, 0) AS percent,
    l.maybe_live_out AS live_out,
    l.start_time,
    l.end_time,
    l.opcode,
    l.module
FROM shown AS l
LEFT JOIN last_uses AS u ON u.run_id = l.run_id AND u.value_id = l.value_id
ORDER BY l.product DESC, l.run_id, l.value_id;

EXECUTE longest_lived(top := 20, min_bytes := 0, donated := false, run := NULL, label := NULL, module := NULL);
