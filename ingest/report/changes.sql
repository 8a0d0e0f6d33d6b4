-- What holds the bytes at the peaks of two runs, by op_name, opcode, shape and source line: sums over buffers.
WITH held AS (
    SELECT
        s.is_after,
        coalesce(p.op_name, p."value") AS what,
        p.opcode,
        regexp_replace(p.shape, '\{.*$', '') AS shape,
        source_text(p.source_file, p.source_line, p.source_via) AS "source",
        p.bytes_at_peak AS bytes
    FROM (VALUES ($before, false), ($after, true)) AS s(run_id, is_after)
    JOIN buffers_at_peak AS p ON p.run_id = s.run_id
)
SELECT
    h.what,
    h.opcode,
    h.shape,
    arg_max(h."source", h.is_after) AS "source",
    coalesce(sum(h.bytes) FILTER (NOT h.is_after), 0)::BIGINT AS before_bytes,
    coalesce(sum(h.bytes) FILTER (h.is_after), 0)::BIGINT AS after_bytes,
    count(*) FILTER (NOT h.is_after) AS before_buffers,
    count(*) FILTER (h.is_after) AS after_buffers
FROM held AS h
GROUP BY h.what, h.opcode, h.shape
HAVING before_bytes <> after_bytes
ORDER BY abs(after_bytes - before_bytes) DESC, h.what, h.opcode, h.shape;
