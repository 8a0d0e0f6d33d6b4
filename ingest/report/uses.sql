-- What reads each value: the first uses, and how many there are.
SELECT u.value_id, list(u.instruction ORDER BY u.position) FILTER (u.position < $most) AS users, count(*) AS uses
FROM uses AS u
WHERE u.run_id = $run
GROUP BY u.value_id
ORDER BY u.value_id;
