-- title: What changed the peak between two compilations
-- topic: comparing
-- question: Which buffers make the peak larger or smaller than before, and who makes them?
-- needs: ranges
-- reads: selected runs
-- note: The rows of a pair of runs add up exactly to the change of its peak. Modules are paired as run_pairs does it, buffers
--   matched as matched_buffers does it: by operation and dimensions, never by number. Layers fold into one row (h0 to h47
--   are h*). new and gone: without a partner in the other program; now live and no longer live: both programs have it, and
--   only one keeps it at the peak; resized; shared: as large as before, but other buffers own more or less of its bytes;
--   replaced: another operation of the same line or size stands for it. A run against itself has no rows.
-- example: --before jax=0.4.13 --after jax=0.6.2
-- parameter before VARCHAR = NULL: runs to compare from: run_ids, a label or a glob on the dump directory
-- parameter after VARCHAR = NULL: runs to compare to
-- parameter top BIGINT = NULL: rows to show; fewer than all do not add up
-- key: change, change_bytes, module, source, op_name, before_shape, after_shape, confidence, buffers
-- column module VARCHAR: module
-- column change VARCHAR: new, gone, resized, now live, no longer live, shared or replaced
-- column change_bytes BIGINT [bytes] as by: bytes at the peak after minus before
-- column buffers BIGINT [count]: buffers that were folded into the row
-- column confidence VARCHAR: same, likely or guess: how sure the match is, or that there is none
-- column op_name VARCHAR: name that the framework gave the operation, without function and what a release adds
-- column source VARCHAR: source file and line
-- column before_shape VARCHAR: shape with layout before; NULL where there is no such buffer
-- column after_shape VARCHAR: shape with layout after
-- column before_bytes BIGINT [bytes]: bytes at the peak before
-- column after_bytes BIGINT [bytes]: bytes at the peak after
-- column opcode VARCHAR: opcode of the defining instruction
-- column kind VARCHAR: kind of the allocation
-- column color BIGINT: memory space of the allocation
-- column value VARCHAR: name of the value, in a folded row without its number
-- column before_run_id BIGINT as run_before: run compared from
-- column after_run_id BIGINT as run_after: run compared to
PREPARE diff AS
WITH folded AS (
    SELECT
        c.before_run_id,
        c.after_run_id,
        c.change,
        c.confidence,
        c.before_look,
        c.after_look,
        sum(c.before_peak_bytes)::BIGINT AS before_bytes,
        sum(c.after_peak_bytes)::BIGINT AS after_bytes,
        count(*) AS buffers,
        -- A name that stands alone keeps its number.
        CASE WHEN min(c.operation) = max(c.operation) THEN min(c.operation)
             ELSE coalesce(c.after_look.op_name, c.before_look.op_name) END AS op_name,
        CASE WHEN min(c."value") = max(c."value") THEN min(c."value")
             ELSE coalesce(c.after_look."value", c.before_look."value") END AS "value"
    FROM changed_buffers($before, $after, $run, $label, $module) AS c
    GROUP BY c.before_run_id, c.after_run_id, c.change, c.confidence, c.before_look, c.after_look,
        c.after_peak_bytes > c.before_peak_bytes
)
SELECT
    coalesce(r.module_name, r.stem) AS module,
    f.change,
    f.after_bytes - f.before_bytes AS change_bytes,
    f.buffers,
    f.confidence,
    f.op_name,
    coalesce(f.after_look.source, f.before_look.source) AS source,
    f.before_look.shape AS before_shape,
    f.after_look.shape AS after_shape,
    f.before_bytes,
    f.after_bytes,
    coalesce(f.after_look.opcode, f.before_look.opcode) AS opcode,
    coalesce(f.after_look.kind, f.before_look.kind) AS kind,
    coalesce(f.after_look.color, f.before_look.color) AS color,
    f."value",
    f.before_run_id,
    f.after_run_id
FROM folded AS f
JOIN runs AS r ON r.run_id = f.after_run_id
ORDER BY abs(change_bytes) DESC, module, f.before_run_id, f.after_run_id, f.change, f.op_name, f."value", f.before_look, f.after_look
LIMIT $top;

EXECUTE diff(before := NULL, after := NULL, top := NULL, run := NULL, label := NULL, module := NULL);
