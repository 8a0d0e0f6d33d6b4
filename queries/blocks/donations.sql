-- title: Parameters and whether they share their memory with a result, or could have.
-- note: What saved query donation shows, without texts.
-- column run_id BIGINT: Number of the run.
-- column allocation_index BIGINT: Allocation that holds the parameter.
-- column parameter_number BIGINT: Number of the parameter, from 0.
-- column size_bytes BIGINT: Size of that allocation, bytes.
-- column maybe_live_out BOOLEAN: It leaves the program.
-- column value_id BIGINT: Value that the parameter is.
-- column fitting_id BIGINT: Value that leaves and could have shared its memory; NULL for none.
-- column kind VARCHAR: may or must, as the module's input_output_alias declares; donor for its buffer_donor; NULL for none.
-- column status VARCHAR: honoured, unused, missed or no fit.
CREATE OR REPLACE MACRO donations(run := NULL, label := NULL, module := NULL) AS TABLE
SELECT
    a.run_id,
    a.allocation_index,
    a.parameter_number,
    a.size_bytes,
    a.maybe_live_out,
    a.parameter_value_id AS value_id,
    a.fitting_value_id AS fitting_id,
    a.declared_donation AS kind,
    a.donation AS status
FROM selected_runs(run, label, module) AS r
JOIN allocations AS a ON a.run_id = r.run_id
WHERE a.donation IS NOT NULL;
