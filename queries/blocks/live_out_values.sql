-- title: For each allocation that outlives the program, the value that leaves in it.
-- note: An allocation can hold several values, one after the other; the one that lives to the end of the schedule leaves.
--   Without live ranges the largest one is taken.
-- column run_id BIGINT: Number of the run.
-- column allocation_index BIGINT: Number of the allocation.
-- column value_id BIGINT: Id of the value within the run.
CREATE OR REPLACE VIEW live_out_values AS
SELECT a.run_id, a.allocation_index, a.live_out_value_id AS value_id
FROM allocations AS a
WHERE a.live_out_value_id IS NOT NULL;
