-- title: Shared slots
-- question: Which values take turns in one place of memory, and how often is it reused?
-- note: A slot is an address: an allocation and an offset. The sum of the sizes of its values is not memory, it only shows
--   how much the sharing saves. Values at other offsets can overlap a slot as well.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- column run_id BIGINT: number of the run
-- column saved_bytes BIGINT [bytes]: sum of their sizes minus the slot
-- column slot_bytes BIGINT [bytes]: size of the largest value in the slot
-- column values BIGINT [count]: values in the slot
-- column reuse DOUBLE [ratio]: sum of their sizes over the slot
-- column largest VARCHAR: the largest value
-- column shape VARCHAR: shape of the largest value
-- column names VARCHAR: instructions of the values in order of their ids, at most 10
-- column allocation_index BIGINT: number of the allocation
-- column offset_bytes BIGINT [bytes]: start within the allocation
-- column kind VARCHAR: kind of the allocation
-- column module VARCHAR: module of the run
PREPARE shared_slots AS
WITH chosen AS (
    SELECT r.run_id FROM selected_runs($run, $label, $module) AS r
),
large AS (
    SELECT v.run_id, v.allocation_index, v.offset_bytes, v.size_bytes
    FROM chosen AS c
    JOIN "values" AS v USING (run_id)
    ORDER BY v.size_bytes DESC
    LIMIT coalesce(100 * $top, 0)
),
cut AS (
    -- Slots of the largest values save at least this: a run with fewer bytes of values in all has no row to show.
    SELECT min(s.bytes) AS bytes
    FROM (
        SELECT sum(l.size_bytes) - max(l.size_bytes) AS bytes
        FROM large AS l
        GROUP BY l.run_id, l.allocation_index, l.offset_bytes
        ORDER BY bytes DESC
        LIMIT $top
    ) AS s
    HAVING count(*) >= $top
),
promising AS MATERIALIZED (
    SELECT v.run_id
    FROM chosen AS c
    JOIN "values" AS v USING (run_id)
    GROUP BY v.run_id
    HAVING sum(v.size_bytes) >= coalesce((SELECT t.bytes FROM cut AS t), 0)
),
slots AS MATERIALIZED (
    SELECT
        v.run_id,
        v.allocation_index,
        v.offset_bytes,
        max(v.size_bytes) AS slot_bytes,
        count(*) AS "values",
        sum(v.size_bytes)::BIGINT AS value_bytes
    FROM promising AS p
    JOIN "values" AS v USING (run_id)
    WHERE v.size_bytes > 0
    GROUP BY v.run_id, v.allocation_index, v.offset_bytes
    HAVING count(*) > 1
    ORDER BY sum(v.size_bytes) - max(v.size_bytes) DESC, v.run_id, v.allocation_index, v.offset_bytes
    LIMIT $top
),
named AS (
    -- Names are gathered for the slots shown only.
    SELECT
        s.run_id,
        s.allocation_index,
        s.offset_bytes,
        arg_min(v.instruction, (-v.size_bytes, v.value_id)) AS largest,
        arg_min(v.shape, (-v.size_bytes, v.value_id)) AS shape,
        array_to_string(list_slice(list(v.instruction || CASE WHEN v.shape_index = '{}' THEN '' ELSE v.shape_index END
            ORDER BY v.value_id), 1, 10), ' ') AS names
    FROM slots AS s
    JOIN "values" AS v ON v.run_id = s.run_id AND v.allocation_index = s.allocation_index
        AND v.offset_bytes = s.offset_bytes AND v.size_bytes > 0
    GROUP BY s.run_id, s.allocation_index, s.offset_bytes
)
SELECT
    s.run_id,
    s.value_bytes - s.slot_bytes AS saved_bytes,
    s.slot_bytes,
    s."values",
    s.value_bytes / s.slot_bytes AS reuse,
    n.largest,
    n.shape,
    n.names,
    s.allocation_index,
    s.offset_bytes,
    a.kind,
    r.module
FROM slots AS s
JOIN selected_runs() AS r ON r.run_id = s.run_id
JOIN named AS n ON n.run_id = s.run_id AND n.allocation_index = s.allocation_index AND n.offset_bytes = s.offset_bytes
JOIN allocations AS a ON a.run_id = s.run_id AND a.allocation_index = s.allocation_index
ORDER BY saved_bytes DESC, s.run_id, s.allocation_index, s.offset_bytes;

EXECUTE shared_slots(top := 20, run := NULL, label := NULL, module := NULL);
