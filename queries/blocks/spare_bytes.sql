-- title: Bytes that something could spare at the peak of a run, one row for each value and advice.
-- note: What each advice means and when it is given is said in the block spare_... that it comes from. These look at the rows
--   of runs and of the view advised_values, and of fewer where a statement names these so.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column owner VARCHAR: What the value is put down to: source line, operation or instruction, layers folded.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column first_byte BIGINT: First byte that would be spared, within its allocation.
-- column end_byte BIGINT: First byte after them.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_bytes(run := NULL, label := NULL, module := NULL) AS TABLE
WITH runs AS MATERIALIZED (FROM selected_runs(run, label, module)),
-- A view reads the table runs, not what is named so here.
advised_values AS MATERIALIZED (SELECT v.* FROM runs AS r JOIN advised_values AS v ON v.run_id = r.run_id)
SELECT
    s.run_id,
    s.advice,
    owner_name(v.opcode, v.source_file, v.source_line, v.op_name, v.instruction) AS owner,
    s.value_id,
    v.allocation_index,
    v.offset_bytes + s.kept_bytes AS first_byte,
    v.offset_bytes + v.size_bytes AS end_byte,
    s.from_time,
    s.to_time,
    s.reason
FROM (
    FROM spare_idle()
    UNION ALL FROM spare_parts()
    UNION ALL FROM spare_padding()
    UNION ALL FROM spare_copies()
    UNION ALL FROM spare_duplicates()
    UNION ALL FROM spare_precision()
    UNION ALL FROM spare_donations()
    UNION ALL FROM spare_constants()
) AS s
JOIN "values" AS v ON v.run_id = s.run_id AND v.value_id = s.value_id
WHERE v.size_bytes > s.kept_bytes AND s.from_time <= s.to_time;
