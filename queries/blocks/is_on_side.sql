-- title: Whether a run belongs to a side of a comparison: run_ids, a label or a glob on the dump directory.
CREATE OR REPLACE MACRO is_on_side(run_id, dump_dir, side) AS
list_contains(string_split(replace(side::VARCHAR, ' ', ''), ','), run_id::VARCHAR)
OR (strpos(side::VARCHAR, '/') > 0 AND dump_dir GLOB side::VARCHAR)
OR run_id IN (SELECT l.run_id FROM selected_runs(label := side::VARCHAR) AS l);
