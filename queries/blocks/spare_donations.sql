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
CREATE OR REPLACE MACRO spare_donations(run := NULL, label := NULL, module := NULL) AS TABLE
WITH parameter AS (
    SELECT d.run_id, d.status, d.parameter_number, d.value_id, d.fitting_id,
        coalesce(max(coalesce(s.time, r.schedule_length)) FILTER (u.value_id IS NOT NULL), -1) AS last_time
    FROM donations(run, label, module) AS d
    JOIN runs AS r ON r.run_id = d.run_id AND r.has_values AND r.has_ranges
    LEFT JOIN uses AS u ON u.run_id = d.run_id AND u.value_id = d.value_id
    LEFT JOIN schedule AS s ON s.run_id = u.run_id AND s.instruction = u.instruction
    WHERE d.status IN ('missed', 'unused')
    GROUP BY d.run_id, d.status, d.parameter_number, d.value_id, d.fitting_id
)
SELECT
    p.run_id,
    CASE p.status WHEN 'missed' THEN 'donate' ELSE 'unused donation' END AS advice,
    g.value_id,
    0 AS kept_bytes,
    CASE p.status WHEN 'missed' THEN greatest(g.start_time, p.last_time) ELSE p.last_time + 1 END AS from_time,
    g.end_time AS to_time,
    CASE p.status
        WHEN 'missed' THEN 'fits the memory of parameter ' || p.parameter_number
        ELSE 'donated, fits no result'
    END || CASE p.last_time WHEN -1 THEN ', never used' ELSE ', last used at slot ' || p.last_time END AS reason
FROM parameter AS p
JOIN ranges AS g ON g.run_id = p.run_id AND g.value_id = CASE p.status WHEN 'missed' THEN p.fitting_id ELSE p.value_id END;
