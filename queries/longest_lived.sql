-- title: Long-lived large buffers
-- topic: lifetime
-- question: Which results of operations hold much memory for long, and which last use holds them?
-- needs: ranges
-- note: Ranked by size times slots. Parameters and constants, which live throughout anyway, are left out, and so are results
--   that lie in the memory of a donated parameter, which is taken throughout as well, unless --donated true asks for
--   them. The last use is the latest scheduled one within the range; NULL for what leaves the program or is never read.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter min_bytes BIGINT [bytes] = 0: smallest buffer to show
-- parameter donated BOOLEAN = false: also results in the memory of donated parameters
-- column run_id BIGINT: number of the run
-- column size_bytes BIGINT [bytes]: size of the buffer
-- column slots BIGINT [slots]: slots in which it is live
-- column value VARCHAR: the buffer
-- column last_use VARCHAR: instruction that reads it last
-- column source VARCHAR: source file and line; an inherited line names in brackets where it comes from
-- column op_name VARCHAR: name that the framework gave the operation
-- column shape VARCHAR: its shape with layout
-- column percent DOUBLE [percent]: slots as a share of the schedule
-- column live_out BOOLEAN: its allocation leaves the program
-- column start_time BIGINT [slots]: first slot at which it is live
-- column end_time BIGINT [slots]: last slot at which it is live
-- column opcode VARCHAR: opcode of its instruction
-- column module VARCHAR: module of the run
PREPARE longest_lived AS
WITH made AS (
    -- Results of operations; the ranking is made of numbers: texts and uses are looked up for the rows shown only.
    SELECT v.run_id, v.value_id, v.size_bytes, v.allocation_index, r.schedule_length
    FROM selected_runs($run, $label, $module) AS r
    JOIN "values" AS v USING (run_id)
    WHERE r.has_ranges
      AND v.size_bytes >= $min_bytes
      AND coalesce(v.opcode, '') NOT IN ('parameter', 'constant')
),
large AS MATERIALIZED (
    SELECT m.*
    FROM made AS m
    ORDER BY m.size_bytes DESC
    LIMIT coalesce(20 * $top, 0)
),
cut AS (
    -- Among the largest there are $top with this product or more. Others are worth a look only if they exceed it when
    -- they live throughout.
    SELECT min(s.product) AS product
    FROM (
        SELECT l.size_bytes::DOUBLE * (g.end_time - g.start_time + 1) AS product
        FROM large AS l
        JOIN ranges AS g ON g.run_id = l.run_id AND g.value_id = l.value_id
        JOIN allocations AS a ON a.run_id = l.run_id AND a.allocation_index = l.allocation_index
        WHERE (a.parameter_number IS NULL OR $donated)
          AND NOT a.is_constant
        ORDER BY product DESC
        LIMIT $top
    ) AS s
    HAVING count(*) >= $top
),
promising AS MATERIALIZED (
    SELECT m.run_id, m.value_id, m.size_bytes, m.allocation_index
    FROM made AS m
    LEFT JOIN cut AS c ON true
    WHERE NOT coalesce(m.size_bytes::DOUBLE * (m.schedule_length + 1) < c.product, false)
),
longest AS MATERIALIZED (
    SELECT
        m.run_id,
        m.value_id,
        m.size_bytes,
        g.start_time,
        g.end_time,
        g.end_time - g.start_time + 1 AS slots,
        a.maybe_live_out
    FROM promising AS m
    JOIN ranges AS g ON g.run_id = m.run_id AND g.value_id = m.value_id
    JOIN allocations AS a ON a.run_id = m.run_id AND a.allocation_index = m.allocation_index
    WHERE (a.parameter_number IS NULL OR $donated)
      AND NOT a.is_constant
    ORDER BY m.size_bytes::DOUBLE * slots DESC, m.run_id, m.value_id
    LIMIT $top
),
last_uses AS (
    SELECT l.run_id, l.value_id, arg_max(u.instruction, (s.time, u.position)) AS instruction
    FROM longest AS l
    JOIN runs AS r ON r.run_id = l.run_id
    JOIN uses AS u ON u.run_id = l.run_id AND u.value_id = l.value_id
    JOIN schedule AS s ON s.run_id = u.run_id AND s.instruction = u.instruction AND s.time <= l.end_time
    WHERE NOT (l.maybe_live_out AND l.end_time >= r.schedule_length)
    GROUP BY l.run_id, l.value_id
)
SELECT
    l.run_id,
    l.size_bytes,
    l.slots,
    value_name(v.instruction, v.shape_index) AS "value",
    u.instruction AS last_use,
    source_text(v.source_file, v.source_line, v.source_via) AS source,
    v.op_name,
    v.shape,
    100.0 * l.slots / nullif(r.schedule_length + 1, 0) AS percent,
    l.maybe_live_out AS live_out,
    l.start_time,
    l.end_time,
    v.opcode,
    r.module
FROM longest AS l
JOIN selected_runs() AS r ON r.run_id = l.run_id
JOIN "values" AS v ON v.run_id = l.run_id AND v.value_id = l.value_id
LEFT JOIN last_uses AS u ON u.run_id = l.run_id AND u.value_id = l.value_id
ORDER BY l.size_bytes::DOUBLE * l.slots DESC, l.run_id, l.value_id;

EXECUTE longest_lived(top := 20, min_bytes := 0, donated := false, run := NULL, label := NULL, module := NULL);
