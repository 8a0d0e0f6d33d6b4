-- title: Identical shapes at once
-- topic: layout
-- question: How many buffers of one shape are live at the peak at once?
-- needs: ranges
-- reads: selected runs
-- note: Many equal buffers at once often mean that a loop or a batch is kept whole. Bytes shared by several values count once.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter min_buffers BIGINT = 2: fewest buffers of a shape
-- key: run_id, buffers, bytes, each_bytes, shape, names, opcodes, module
-- column run_id BIGINT: number of the run
-- column buffers BIGINT [count]: buffers of this shape at the peak
-- column bytes BIGINT [bytes]: their bytes
-- column each_bytes BIGINT [bytes]: size of one
-- column shape VARCHAR: shape with layout
-- column names VARCHAR: their names, at most 10
-- column opcodes VARCHAR: opcodes that made them
-- column module VARCHAR: module of the run
PREPARE identical_shapes AS
WITH alike AS (
    SELECT
        p.run_id,
        p.shape,
        count(*) AS buffers,
        sum(p.bytes_at_peak)::BIGINT AS bytes,
        max(p.size_bytes) AS each_bytes,
        any_value(r.module) AS module
    FROM selected_runs($run, $label, $module) AS r
    JOIN buffers_at_peak AS p USING (run_id)
    WHERE p.bytes_at_peak > 0
    GROUP BY p.run_id, p.shape
    HAVING count(*) >= $min_buffers
    ORDER BY bytes DESC, p.run_id, p.shape
    LIMIT $top
),
named AS (
    -- Names are gathered for the shapes shown only.
    SELECT
        p.run_id,
        p.shape,
        array_to_string(list_sort(list(DISTINCT p.opcode)), ' ') AS opcodes,
        array_to_string(list_slice(list(p."value" ORDER BY p.value_id), 1, 10), ' ') AS names
    FROM alike AS a
    JOIN buffers_at_peak AS p ON p.run_id = a.run_id AND p.shape = a.shape AND p.bytes_at_peak > 0
    GROUP BY p.run_id, p.shape
)
SELECT a.run_id, a.buffers, a.bytes, a.each_bytes, a.shape, n.names, n.opcodes, a.module
FROM alike AS a
JOIN named AS n ON n.run_id = a.run_id AND n.shape = a.shape
ORDER BY a.bytes DESC, a.run_id, a.shape;

EXECUTE identical_shapes(top := 20, min_buffers := 2, run := NULL, label := NULL, module := NULL);
