-- title: Half the bytes of buffers that live shortly around the peak, if what makes them worked in two parts, one after the other.
-- note: Of each owner (source line, else operation) whose short-lived temporary values hold a tenth of the peak or more, all
--   such values of the program. Short-lived: a tenth of the schedule at most. Whether the work can be split is not known.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column kept_bytes BIGINT: Its bytes that would stay.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_parts() AS TABLE
WITH short_lived AS MATERIALIZED (
    SELECT v.run_id, v.value_id, v.size_bytes, g.start_time, g.end_time, g.peak_bytes, r.schedule_length,
        r.peak_bytes AS run_peak_bytes,
        owner_name(v.opcode, v.source_file, v.source_line, v.op_name, v.instruction) AS owner
    FROM runs AS r
    JOIN ranges AS g ON g.run_id = r.run_id AND 10 * (g.end_time - g.start_time) <= r.schedule_length
    JOIN "values" AS v ON v.run_id = g.run_id AND v.value_id = g.value_id AND v.dimensions IS NOT NULL
    JOIN allocations AS a ON a.run_id = v.run_id AND a.allocation_index = v.allocation_index AND a.kind = 'temp'
)
SELECT
    s.run_id, 'in parts' AS advice, s.value_id, s.size_bytes // 2 AS kept_bytes, s.start_time AS from_time, s.end_time AS to_time,
    format('lives {} of {} slots', s.end_time - s.start_time + 1, s.schedule_length) AS reason
FROM short_lived AS s
JOIN (
    SELECT h.run_id, h.owner
    FROM short_lived AS h
    GROUP BY h.run_id, h.owner, h.run_peak_bytes
    HAVING 10 * sum(h.peak_bytes) >= h.run_peak_bytes
) AS o ON o.run_id = s.run_id AND o.owner = s.owner;
