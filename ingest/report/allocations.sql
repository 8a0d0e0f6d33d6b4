-- The allocations of a run and the names of their memory spaces.
SELECT a.allocation_index, a.size_bytes, a.color, a.kind, coalesce(m.space, 'color ' || a.color) AS space
FROM allocations AS a
JOIN runs AS r ON r.run_id = a.run_id
LEFT JOIN memory_spaces AS m ON m.backend = r.backend AND m.color = a.color
WHERE a.run_id = $run
ORDER BY a.allocation_index;
