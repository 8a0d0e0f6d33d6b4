-- title: Whether a run can be among run_ids as '3,7', by the least and the greatest of them; NULL are all runs.
-- note: A constant bound where a table is read spares the others: DuckDB knows the runs of each row group.
CREATE OR REPLACE MACRO may_be_run(run_id, run_ids) AS
run_ids IS NULL
OR (
    run_id >= list_min(TRY_CAST(string_split(run_ids::VARCHAR, ',') AS BIGINT[]))
    AND run_id <= list_max(TRY_CAST(string_split(run_ids::VARCHAR, ',') AS BIGINT[]))
);
