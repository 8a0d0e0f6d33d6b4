-- title: Bytes of results that could take a parameter's memory, and of parameters whose donation nothing takes.
-- note: donate: saved query donation says missed; from the parameter's last use on the result could lie in its memory.
--   unused donation: the program owns the parameter, no result has its type and size, and it is not read again.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column kept_bytes BIGINT: Its bytes that would stay.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_donations() AS TABLE
WITH parameter AS (
    SELECT a.run_id, a.donation, a.parameter_number, a.parameter_value_id AS value_id, a.fitting_value_id,
        coalesce(max(coalesce(s.time, r.schedule_length)) FILTER (u.value_id IS NOT NULL), -1) AS last_time
    FROM runs AS r
    JOIN allocations AS a ON a.run_id = r.run_id AND a.donation IN ('missed', 'unused')
    LEFT JOIN uses AS u ON u.run_id = a.run_id AND u.value_id = a.parameter_value_id
    LEFT JOIN schedule AS s ON s.run_id = u.run_id AND s.instruction = u.instruction
    WHERE r.has_values AND r.has_ranges
    GROUP BY a.run_id, a.donation, a.parameter_number, a.parameter_value_id, a.fitting_value_id
)
SELECT
    p.run_id,
    CASE p.donation WHEN 'missed' THEN 'donate' ELSE 'unused donation' END AS advice,
    g.value_id,
    0 AS kept_bytes,
    CASE p.donation WHEN 'missed' THEN greatest(g.start_time, p.last_time) ELSE p.last_time + 1 END AS from_time,
    g.end_time AS to_time,
    CASE p.donation
        WHEN 'missed' THEN 'fits the memory of parameter ' || p.parameter_number
        ELSE 'donated, fits no result'
    END || CASE p.last_time WHEN -1 THEN ', never used' ELSE ', last used at slot ' || p.last_time END AS reason
FROM parameter AS p
JOIN ranges AS g ON g.run_id = p.run_id AND g.value_id = CASE p.donation WHEN 'missed' THEN p.fitting_value_id ELSE p.value_id END;
