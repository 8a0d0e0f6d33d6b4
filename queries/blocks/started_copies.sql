-- title: Copies and slices that run while other instructions do, with the instruction that starts each.
-- note: Element 0 of a copy-start is the copy. A slice runs in a computation that its start calls: what is made there is element 1
--   of the start.
-- column run_id BIGINT: Number of the run.
-- column value_id BIGINT: What is made.
-- column size_bytes BIGINT: Its size, bytes.
-- column start VARCHAR: Instruction that starts it.
CREATE OR REPLACE MACRO started_copies(run := NULL, label := NULL, module := NULL) AS TABLE
SELECT v.run_id, v.value_id, v.size_bytes, v.instruction AS start
FROM selected_runs(run, label, module) AS r
JOIN "values" AS v USING (run_id)
WHERE v.shape_index = '{0}'
  AND (v.opcode = 'copy-start' OR (v.opcode IS NULL AND v.instruction LIKE 'copy-start%'))
UNION ALL
SELECT w.run_id, w.value_id, w.size_bytes, s.instruction
FROM (
    SELECT v.run_id, v.instruction
    FROM selected_runs(run, label, module) AS r
    JOIN "values" AS v USING (run_id)
    WHERE v.shape_index = '{}'
      -- On a GPU the slice is a fusion, and the start is named after it.
      AND (v.opcode IN ('slice-start', 'dynamic-slice-start')
           OR starts_with(v.instruction, 'slice-start') OR starts_with(v.instruction, 'dynamic-slice-start'))
) AS s
JOIN positions AS p ON p.run_id = s.run_id AND p.instruction = s.instruction AND p.shape_index = '{1}'
JOIN "values" AS w ON w.run_id = p.run_id AND w.value_id = p.value_id;
