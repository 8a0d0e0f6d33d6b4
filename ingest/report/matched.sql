-- First slots of the buffers that two runs have in common, in order of the first run's; those that are live from the
-- start of both, as parameters are, say nothing about the order.
SELECT b.start_time AS before_slot, a.start_time AS after_slot
FROM matched_buffers($before::VARCHAR, $after::VARCHAR) AS m
JOIN ranges AS b ON b.run_id = m.before_run_id AND b.value_id = m.before_value_id
JOIN ranges AS a ON a.run_id = m.after_run_id AND a.value_id = m.after_value_id
WHERE m.confidence <> 'guess' AND (b.start_time > 0 OR a.start_time > 0)
ORDER BY b.start_time, a.start_time;
