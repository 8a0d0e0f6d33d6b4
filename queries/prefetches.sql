-- title: Prefetches
-- topic: lifetime
-- question: Which copies between memory spaces run ahead of their use, how large are they and how long do they take up memory?
-- needs: ranges
-- reads: selected runs
-- note: A pair of copy-start and copy-done (or slice-start and slice-done) moves data while other instructions run. Slots in
--   flight count instructions, not time. A slice is made in a computation of its own and has its name from there.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, size_bytes, from_color, to_color, value, slots_in_flight, held_slots, first_use, source, shape
-- column run_id BIGINT: number of the run
-- column size_bytes BIGINT [bytes]: size of the copy
-- column from_color BIGINT as from: memory space copied from, NULL if unknown
-- column to_color BIGINT as to: memory space copied to
-- column value VARCHAR: the copy
-- column slots_in_flight BIGINT [slots] as in_flight: instructions scheduled between start and done; neither of the two counts
-- column held_slots BIGINT [slots] as held: slots in which the copy takes up memory
-- column first_use VARCHAR: instruction that reads the copy first
-- column source VARCHAR: value that is copied
-- column start_time BIGINT [slots] as start: slot of the start
-- column done_time BIGINT [slots] as done: slot of the done
-- column first_use_time BIGINT [slots] as used: slot of that instruction
-- column cross_program BOOLEAN as crosses: prefetched for the next execution of the program
-- column shape VARCHAR: shape with layout
-- column module VARCHAR: module of the run
PREPARE prefetches AS
WITH largest AS MATERIALIZED (
    -- Slots and other texts than the name are looked up for the rows shown.
    SELECT c.run_id, c.value_id, c.start AS instruction, g.start_time AS held_from, g.end_time
    FROM started_copies($run, $label, $module) AS c
    JOIN ranges AS g ON g.run_id = c.run_id AND g.value_id = c.value_id
    ORDER BY c.size_bytes DESC, c.run_id, c.value_id
    LIMIT $top
),
involved AS (
    SELECT c.run_id, c.value_id, c.instruction, NULL AS position FROM largest AS c -- the start, which is no use
    UNION ALL
    SELECT c.run_id, c.value_id, x.instruction, x.position
    FROM largest AS c
    JOIN uses AS x ON x.run_id = c.run_id AND x.value_id = c.value_id
),
slots AS (
    SELECT
        x.run_id, x.value_id,
        min(s.time) FILTER (x.position IS NULL) AS start_time,
        min(s.time) FILTER (x.instruction LIKE '%-done%') AS done_time,
        min(s.time) FILTER (x.position IS NOT NULL AND x.instruction NOT LIKE '%-done%') AS first_use_time,
        arg_min(x.instruction, (s.time, x.position)) FILTER (x.position IS NOT NULL AND x.instruction NOT LIKE '%-done%') AS first_use
    FROM involved AS x
    JOIN schedule AS s ON s.run_id = x.run_id AND s.instruction = x.instruction
    GROUP BY x.run_id, x.value_id
),
sources AS (
    SELECT
        c.run_id, c.value_id,
        arg_min(value_name(o.instruction, o.shape_index), o.value_id) AS "value",
        arg_min(a.color, o.value_id) AS color
    FROM largest AS c
    JOIN uses AS x ON x.run_id = c.run_id AND x.instruction = c.instruction AND x.operand_number = 0
    JOIN "values" AS o ON o.run_id = x.run_id AND o.value_id = x.value_id
    JOIN allocations AS a ON a.run_id = o.run_id AND a.allocation_index = o.allocation_index
    GROUP BY c.run_id, c.value_id
)
SELECT
    c.run_id,
    v.size_bytes,
    o.color AS from_color,
    a.color AS to_color,
    value_name(v.instruction, v.shape_index) AS "value",
    d.done_time - d.start_time - 1 AS slots_in_flight,
    c.end_time - c.held_from + 1 AS held_slots,
    d.first_use,
    o."value" AS source,
    d.start_time,
    d.done_time,
    d.first_use_time,
    contains(v.instruction_text, 'cross_program_prefetch_index') AS cross_program,
    v.shape,
    r.module
FROM largest AS c
JOIN selected_runs($run, $label, $module) AS r ON r.run_id = c.run_id
JOIN "values" AS v ON v.run_id = c.run_id AND v.value_id = c.value_id
JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index
LEFT JOIN slots AS d ON d.run_id = c.run_id AND d.value_id = c.value_id
LEFT JOIN sources AS o ON o.run_id = c.run_id AND o.value_id = c.value_id
ORDER BY v.size_bytes DESC, c.run_id, c.value_id;

EXECUTE prefetches(top := 20, run := NULL, label := NULL, module := NULL);
