-- title: Which number is my memory
-- topic: peak
-- question: What does a module ask for, what does it keep, and what does it use at once?
-- reads: selected runs
-- note: total_bytes is what the executable asks for, in all memories. resident_peak_bytes is what it keeps of the main memory
--   at its fullest, XProf's peak heap: all of color 0 but the parts of arenas that are free then. peak_bytes is what is live
--   at one slot. Thread-local scratch and pointer tables of tuples in arenas are in the first, and not in the second.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: run_id, total_bytes, resident_peak_bytes, peak_bytes, module
-- column run_id BIGINT: number of the run
-- column total_bytes BIGINT [bytes]: all allocations of all memory spaces
-- column resident_peak_bytes BIGINT [bytes] as resident: XProf's peak heap, color 0; NULL where it is not known what is live in arenas
-- column peak_bytes BIGINT [bytes] as live_peak: most bytes live at one slot, all memory spaces; NULL without live ranges
-- column main_bytes BIGINT [bytes] as color_0: part of total_bytes in color 0
-- column thread_local_bytes BIGINT [bytes] as scratch: part of main_bytes that is thread-local scratch
-- column arena_bytes BIGINT [bytes]: part of main_bytes that is arenas, used and free
-- column tuple_table_bytes BIGINT [bytes] as tuples: sizes of the pointer tables in these arenas
-- column module VARCHAR: module of the run
PREPARE memory_figures AS
WITH figures AS (
    SELECT
        any_value(r.module) AS module,
        a.run_id,
        any_value(r.resident_peak_bytes) AS resident_peak_bytes,
        any_value(r.peak_bytes) AS peak_bytes,
        sum(a.size_bytes)::BIGINT AS total_bytes,
        coalesce(sum(a.size_bytes) FILTER (a.color = 0), 0)::BIGINT AS main_bytes,
        coalesce(sum(a.size_bytes) FILTER (a.color = 0 AND a.kind = 'thread-local'), 0)::BIGINT AS thread_local_bytes,
        coalesce(sum(a.size_bytes) FILTER (a.color = 0 AND a.kind = 'temp'), 0)::BIGINT AS arena_bytes
    FROM selected_runs($run, $label, $module) AS r
    JOIN allocations AS a ON a.run_id = r.run_id
    GROUP BY a.run_id
    ORDER BY total_bytes DESC, a.run_id
    LIMIT $top
),
tables AS (
    SELECT v.run_id, sum(v.size_bytes)::BIGINT AS bytes
    FROM figures AS f
    JOIN "values" AS v ON v.run_id = f.run_id AND v.dtype = 'tuple'
    JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index
        AND a.color = 0 AND a.kind = 'temp'
    GROUP BY v.run_id
)
SELECT
    f.run_id,
    f.total_bytes,
    f.resident_peak_bytes,
    f.peak_bytes,
    f.main_bytes,
    f.thread_local_bytes,
    f.arena_bytes,
    coalesce(t.bytes, 0) AS tuple_table_bytes,
    f.module
FROM figures AS f
LEFT JOIN tables AS t ON t.run_id = f.run_id
ORDER BY f.total_bytes DESC, f.run_id;

EXECUTE memory_figures(top := 20, run := NULL, label := NULL, module := NULL);
