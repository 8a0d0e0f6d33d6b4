-- title: What would lower the peak
-- topic: peak
-- question: What could be done about the peak of a module, and how far would each step lower it?
-- needs: ranges
-- reads: selected runs, $runs highest peaks
-- note: The peak is computed anew without what each step spares, at all slots; spare_bytes that another slot needs as much
--   do not save. Steps do not add up: each figure is that of its step alone. What it takes (time to compute again or to
--   transfer, a result nobody reads) is not in a dump. Steps that lower total concern what allocations take over their
--   live bytes; how the compiler would pack them then is not known, so the figure is the most that can be won.
-- example: --least 16KiB
-- parameter top BIGINT = 20: rows to show
-- parameter least BIGINT [bytes] = 4096: bytes that a step must spare at the peak to be looked at
-- parameter runs BIGINT = 5: modules to look at, those with the highest peaks
-- key: run_id, saves_bytes, advice, owner, buffers, shape, reason, module
-- column run_id BIGINT: number of the run
-- column saves_bytes BIGINT [bytes] as saves: bytes by which the peak (or the total) would be lower
-- column percent DOUBLE [share]: share of the run's peak
-- column advice VARCHAR: recompute, offload, drop output, in parts, other layout, other shape, copy, duplicate, narrower
--   type, donate, unused donation, constant; for the total pack, scratch
-- column owner VARCHAR: source line, operation or instruction that the buffers are put down to, layers folded
-- column buffers BIGINT: buffers concerned, count
-- column spare_bytes BIGINT [bytes] as spare: bytes that the step spares at the slot of the peak
-- column after_bytes BIGINT [bytes] as after: the peak (or the total) after it
-- column lowers VARCHAR: peak or total
-- column largest VARCHAR: largest of the buffers
-- column shape VARCHAR: its shape with layout
-- column reason VARCHAR: what in the dump shows it, of that buffer
-- column op_name VARCHAR: name that the framework gave its operation
-- column module VARCHAR: module of the run
PREPARE savings AS
WITH runs AS MATERIALIZED (
    FROM selected_runs($run, $label, $module) AS r
    WHERE r.peak_bytes > 0
    ORDER BY r.peak_bytes DESC, r.run_id
    LIMIT $runs
)
SELECT
    s.run_id,
    s.before_bytes - s.after_bytes AS saves_bytes,
    100.0 * saves_bytes / s.before_bytes AS percent,
    s.advice,
    s.owner,
    s.buffers,
    s.spare_bytes,
    s.after_bytes,
    s.lowers,
    value_name(v.instruction, v.shape_index) AS largest,
    v.shape,
    s.reason,
    v.op_name,
    r.module
FROM saved_bytes(least := $least) AS s
JOIN runs AS r ON r.run_id = s.run_id
LEFT JOIN "values" AS v ON v.run_id = s.run_id AND v.value_id = s.value_id
ORDER BY saves_bytes DESC, s.spare_bytes DESC, s.run_id, s.advice, s.owner
LIMIT $top;

EXECUTE savings(top := 20, least := 4096, runs := 5, run := NULL, label := NULL, module := NULL);
