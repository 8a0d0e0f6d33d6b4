-- title: Peak by memory space
-- topic: peak
-- question: What is the peak of each module in each memory space (color)?
-- needs: ranges
-- note: Each memory space has a peak of its own, at a slot of its own; their sum can exceed the peak of the run.
--   One in which nothing has a size is left out. A value counts where its allocation lies, whatever its own color.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter color BIGINT = NULL: only this memory space
-- column module VARCHAR: module
-- column run_id BIGINT: number of the run
-- column color BIGINT: memory space
-- column space VARCHAR: its name, NULL if unknown
-- column peak_bytes BIGINT [bytes]: most bytes live at one slot in this memory space
-- column peak_time BIGINT [slots]: first slot with that many
-- column allocated_bytes BIGINT [bytes]: allocations in this memory space, thread-local ones left out
-- column run_peak_bytes BIGINT [bytes]: peak of the run over all memory spaces
PREPARE peak_by_color AS
WITH candidates AS (
    -- At a run's peak one of its n memory spaces holds an n-th of the bytes or more, and none ever holds more than the peak.
    -- So runs whose peak is below the $top-th greatest of these shares have no row to show.
    SELECT r.run_id, r.peak_bytes, r.peak_bytes / count(DISTINCT a.color) AS share
    FROM selected_runs($run, $label, $module) AS r
    JOIN allocations AS a USING (run_id)
    WHERE r.has_ranges
    GROUP BY r.run_id, r.peak_bytes
),
cut AS (
    SELECT min(s.share) AS bytes
    FROM (SELECT c.share FROM candidates AS c WHERE c.share > 0 ORDER BY c.share DESC LIMIT $top) AS s
    HAVING $color IS NULL AND count(*) >= $top
),
chosen AS MATERIALIZED (
    SELECT c.run_id FROM candidates AS c WHERE c.peak_bytes >= coalesce((SELECT t.bytes FROM cut AS t), 0)
),
changes AS (
    -- Sums of changes by slot instead of a join of slots with ranges.
    SELECT e.run_id, e.color, e.time, sum(e.bytes)::BIGINT AS bytes
    FROM (
        SELECT
            g.run_id,
            a.color,
            unnest([g.start_time, g.end_time + 1]) AS time,
            unnest([g.gained_bytes, g.handover_bytes - v.size_bytes]) AS bytes
        FROM chosen AS r
        JOIN ranges AS g ON g.run_id = r.run_id
        JOIN "values" AS v ON v.run_id = g.run_id AND v.value_id = g.value_id
        LEFT JOIN (SELECT x.* FROM chosen AS c JOIN allocations AS x USING (run_id)) AS a
            ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index
        WHERE $color IS NULL OR a.color = $color
    ) AS e
    WHERE e.bytes <> 0
    GROUP BY e.run_id, e.color, e.time
),
curve AS (
    SELECT
        c.run_id,
        c.color,
        c.time,
        (sum(c.bytes) OVER (PARTITION BY c.run_id, c.color ORDER BY c.time))::BIGINT AS bytes
    FROM changes AS c
),
peaks AS (
    SELECT c.run_id, c.color, max(c.bytes) AS bytes, arg_min(c.time, (-c.bytes, c.time)) AS time
    FROM curve AS c
    GROUP BY c.run_id, c.color
),
shown AS MATERIALIZED (
    SELECT p.* FROM peaks AS p ORDER BY p.bytes DESC, p.run_id, p.color LIMIT $top
),
allocated AS (
    SELECT a.run_id, a.color, sum(a.size_bytes)::BIGINT AS bytes
    FROM shown AS p
    JOIN allocations AS a ON a.run_id = p.run_id AND a.color = p.color AND a.kind <> 'thread-local'
    GROUP BY a.run_id, a.color
)
SELECT
    r.module,
    p.run_id,
    p.color,
    s.space,
    p.bytes AS peak_bytes,
    p.time AS peak_time,
    a.bytes AS allocated_bytes,
    r.peak_bytes AS run_peak_bytes
FROM shown AS p
JOIN selected_runs() AS r ON r.run_id = p.run_id
LEFT JOIN allocated AS a ON a.run_id = p.run_id AND a.color = p.color
LEFT JOIN memory_spaces AS s ON s.backend = r.backend AND s.color = p.color
ORDER BY p.bytes DESC, p.run_id, p.color;

EXECUTE peak_by_color(top := 20, color := NULL, run := NULL, label := NULL, module := NULL);
