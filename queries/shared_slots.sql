-- title: Shared slots
-- topic: sharing
-- question: Which values take turns in one place of memory, and how often is it reused?
-- reads: selected runs
-- note: A slot is an address: an allocation and an offset. A value whose bytes another one takes over in place (the state of
--   a loop, an in-place update) is an alias of it, not a turn: a turn begins where the slot was free, and lasts through all
--   aliases; the branches of a conditional take turns. Only turns save memory. The sum of their sizes is not memory either. Values at other offsets can overlap a
--   slot as well. Without live ranges nothing is known of turns.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, saved_bytes, slot_bytes, turns, reuse, largest, shape, names
-- column run_id BIGINT: number of the run
-- column saved_bytes BIGINT [bytes]: sum of the sizes of the turns minus the slot; NULL without live ranges
-- column slot_bytes BIGINT [bytes]: size of the largest value in the slot
-- column values BIGINT [count]: values in the slot
-- column reuse DOUBLE [ratio]: sum of the sizes of the turns over the slot
-- column largest VARCHAR: the largest value
-- column shape VARCHAR: shape of the largest value
-- column names VARCHAR: instructions of the values in order of their ids, at most 10
-- column allocation_index BIGINT as alloc: number of the allocation
-- column offset_bytes BIGINT [bytes]: start within the allocation
-- column kind VARCHAR: kind of the allocation
-- column module VARCHAR: module of the run
-- column turns BIGINT [count]: values that take turns, aliases apart
-- column alias_bytes BIGINT [bytes] as aliased: sum of the sizes of the values minus that of the turns
PREPARE shared_slots AS
WITH shown AS MATERIALIZED (
    SELECT s.*, r.module, s.turn_bytes - s.slot_bytes AS saved_bytes
    FROM selected_runs($run, $label, $module) AS r
    JOIN shared_addresses AS s ON s.run_id = r.run_id
    ORDER BY saved_bytes DESC NULLS LAST, s.placed_bytes - s.slot_bytes DESC, s.run_id, s.allocation_index, s.offset_bytes
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
        array_to_string(list_slice(list(value_name(v.instruction, v.shape_index)
            ORDER BY v.value_id), 1, 10), ' ') AS names
    FROM shown AS s
    JOIN "values" AS v ON v.run_id = s.run_id AND v.allocation_index = s.allocation_index
        AND v.offset_bytes = s.offset_bytes AND v.size_bytes > 0
    GROUP BY s.run_id, s.allocation_index, s.offset_bytes
)
SELECT
    s.run_id,
    s.saved_bytes,
    s.slot_bytes,
    s.placed_values AS "values",
    s.turn_bytes / s.slot_bytes AS reuse,
    n.largest,
    n.shape,
    n.names,
    s.allocation_index,
    s.offset_bytes,
    a.kind,
    s.module,
    s.turns,
    s.placed_bytes - s.turn_bytes AS alias_bytes
FROM shown AS s
JOIN named AS n ON n.run_id = s.run_id AND n.allocation_index = s.allocation_index AND n.offset_bytes = s.offset_bytes
JOIN allocations AS a ON a.run_id = s.run_id AND a.allocation_index = s.allocation_index
ORDER BY s.saved_bytes DESC NULLS LAST, s.placed_bytes - s.slot_bytes DESC, s.run_id, s.allocation_index, s.offset_bytes;

EXECUTE shared_slots(top := 20, run := NULL, label := NULL, module := NULL);
