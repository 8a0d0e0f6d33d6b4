-- title: For each allocation that outlives the program, the value that leaves in it.
-- note: An allocation can hold several values, one after the other; the one that lives to the end of the schedule leaves.
--   Without live ranges the largest one is taken.
-- column run_id BIGINT: Number of the run.
-- column allocation_index BIGINT: Number of the allocation.
-- column value_id BIGINT: Id of the value within the run.
CREATE OR REPLACE VIEW live_out_values AS
SELECT
    v.run_id,
    v.allocation_index,
    arg_max(v.value_id, (coalesce(g.end_time, -1), v.size_bytes, v.value_id)) AS value_id
FROM allocations AS a
JOIN "values" AS v ON v.run_id = a.run_id AND v.allocation_index = a.allocation_index
LEFT JOIN ranges AS g ON g.run_id = v.run_id AND g.value_id = v.value_id
WHERE a.maybe_live_out
GROUP BY v.run_id, v.allocation_index;
