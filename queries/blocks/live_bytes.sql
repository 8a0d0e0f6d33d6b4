-- title: Live bytes over the schedule, one row for each slot at which they change.
-- note: Between two rows of a run the figure stays as it is. Its greatest value is runs.peak_bytes.
-- column run_id BIGINT: Number of the run.
-- column time BIGINT: Slot of the flattened schedule.
-- column live_bytes BIGINT: Bytes live at that slot, each byte once.
CREATE OR REPLACE VIEW live_bytes AS
-- A sum of changes, sorted once: the obvious join of slots with ranges grows with their product.
SELECT
    c.run_id,
    c.time,
    sum(c.bytes) OVER (PARTITION BY c.run_id ORDER BY c.time)::BIGINT AS live_bytes
FROM (
    SELECT e.run_id, e.time, sum(e.bytes) AS bytes
    FROM (
        SELECT
            g.run_id,
            unnest([g.start_time, g.end_time + 1]) AS time,
            unnest([g.gained_bytes, g.handover_bytes - g.value_bytes]) AS bytes
        FROM ranges AS g
        WHERE g.value_id IS NOT NULL
    ) AS e
    GROUP BY e.run_id, e.time
) AS c;
