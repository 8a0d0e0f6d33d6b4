-- title: Bytes of the total that are not in the peak: holes of arenas, scratch, results that could take a parameter's memory.
-- note: How the compiler would place the rest is not known: this is the most that can be won.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: pack, scratch or donate.
-- column owner VARCHAR: Allocation, thread-local, or what the parameters of donate are put down to.
-- column buffers BIGINT: Values in the arena, thread-local allocations, or results, count.
-- column spare_bytes BIGINT: Bytes.
-- column value_id BIGINT: Largest of the results; NULL for an allocation.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_total() AS TABLE
SELECT
    a.run_id,
    'pack' AS advice,
    'allocation ' || a.allocation_index AS owner,
    a.placed_values AS buffers,
    a.size_bytes - a.live_peak_bytes AS spare_bytes,
    NULL::BIGINT AS value_id,
    'never live at once with the rest' AS reason
FROM runs AS r
JOIN allocations AS a ON a.run_id = r.run_id
WHERE a.kind = 'temp'
UNION ALL
SELECT a.run_id, 'scratch', 'thread-local', count(*), sum(a.size_bytes)::BIGINT, NULL, 'not counted in the peak'
FROM runs AS r
JOIN allocations AS a ON a.run_id = r.run_id
WHERE a.is_thread_local
GROUP BY a.run_id
UNION ALL
SELECT
    a.run_id,
    'donate',
    owner_name(p.opcode, p.source_file, p.source_line, p.op_name, p.instruction) AS owner,
    count(*),
    sum(a.size_bytes)::BIGINT,
    arg_max(a.fitting_value_id, (a.size_bytes, -a.fitting_value_id)),
    'results fit the memory of parameters'
FROM runs AS r
JOIN allocations AS a ON a.run_id = r.run_id AND a.donation = 'missed'
JOIN "values" AS p ON p.run_id = a.run_id AND p.value_id = a.parameter_value_id
GROUP BY a.run_id, owner;
