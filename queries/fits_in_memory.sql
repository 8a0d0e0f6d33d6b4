-- title: Will it fit
-- question: Which modules fit in a memory of so many GiB?
-- note: Needed is the sum of the allocations of one memory space; thread-local scratch is never allocated up front and is
--   left out. Memory of other programs and of the runtime comes on top.
-- example: --gib 16
-- parameter gib DOUBLE = 16: size of the memory, GiB (2^30 bytes)
-- parameter color BIGINT = 0: memory space; 0 is the main one
-- parameter top BIGINT = 20: rows to show
-- column module VARCHAR: module
-- column run_id BIGINT: number of the run
-- column fits BOOLEAN: needed is at most the limit
-- column needed_bytes BIGINT [bytes]: sum of the allocations of that memory space
-- column headroom_bytes BIGINT [bytes]: limit minus needed; negative if it does not fit
-- column percent DOUBLE [percent]: needed as a share of the limit
-- column space VARCHAR: its name, NULL if unknown
-- column color BIGINT: memory space
-- column limit_bytes BIGINT [bytes]: size of the memory
PREPARE fits_in_memory AS
SELECT
    any_value(r.module) AS module,
    a.run_id,
    sum(a.size_bytes) <= ($gib * 1073741824)::BIGINT AS fits,
    sum(a.size_bytes)::BIGINT AS needed_bytes,
    (($gib * 1073741824)::BIGINT - sum(a.size_bytes))::BIGINT AS headroom_bytes,
    100.0 * sum(a.size_bytes) / nullif(($gib * 1073741824)::BIGINT, 0) AS percent,
    any_value(s.space) AS space,
    a.color,
    ($gib * 1073741824)::BIGINT AS limit_bytes
FROM selected_runs($run, $label, $module) AS r
JOIN allocations AS a ON a.run_id = r.run_id AND a.color = $color AND a.kind <> 'thread-local'
LEFT JOIN memory_spaces AS s ON s.backend = r.backend AND s.color = a.color
GROUP BY a.run_id, a.color
ORDER BY needed_bytes DESC, a.run_id
LIMIT $top;

EXECUTE fits_in_memory(gib := 16.0, color := 0, top := 20, run := NULL, label := NULL, module := NULL);
