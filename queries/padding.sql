-- title: Padding by shape and tiling
-- topic: layout
-- question: How many bytes are padding, and which shape and tiling cause it?
-- reads: selected runs
-- note: Values that share an address are one buffer. Padding at the peak counts each byte once and is memory that you
--   would win; it is NULL without live ranges. Tuples have no padding to speak of and are left out. A bounded dynamic
--   shape (f32[<=128,64]) keeps its actual sizes with the data: these are no padding and have a column of their own.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- parameter tiling VARCHAR = NULL: only this tiling, e.g. 'T(8,128)'
-- key: run_id, padding_at_peak_bytes, padding_bytes, expansion, tiling, shape, buffers, example, module
-- column run_id BIGINT: number of the run
-- column padding_at_peak_bytes BIGINT [bytes] as at_peak: padding live at the peak of the run
-- column padding_bytes BIGINT [bytes]: padding of one buffer
-- column expansion DOUBLE [ratio]: allocated size over logical size
-- column buffers BIGINT [count]: buffers of this shape in the module
-- column tiling VARCHAR: tiles of the layout, NULL if not tiled
-- column shape VARCHAR: shape with layout
-- column example VARCHAR as e.g.: one value of this shape
-- column size_bytes BIGINT [bytes]: allocated size of one buffer
-- column logical_bytes BIGINT [bytes]: size of one buffer without padding
-- column module VARCHAR: module of the run
-- column dynamic_size_bytes BIGINT [bytes] as dyn_sizes: actual sizes that one buffer of a bounded dynamic shape keeps, beyond the padding
PREPARE padding AS
WITH padded AS (
    SELECT
        v.run_id,
        v.shape,
        any_value(v.tiling) AS tiling,
        v.size_bytes,
        any_value(v.logical_bytes) AS logical_bytes,
        any_value(v.padding_bytes - dynamic_size_bytes(v.shape, v.tiling)) AS padding_bytes,
        any_value(dynamic_size_bytes(v.shape, v.tiling)) AS dynamic_size_bytes,
        count(DISTINCT (v.allocation_index, v.offset_bytes)) AS buffers,
        min(v.instruction) AS example,
        any_value(r.module) AS module,
        any_value(r.peak_time) AS peak_time
    FROM selected_runs($run, $label, $module) AS r
    JOIN "values" AS v USING (run_id)
    WHERE v.padding_bytes > 0
      AND ($tiling IS NULL OR v.tiling = $tiling)
    GROUP BY v.run_id, v.shape, v.size_bytes
),
at_peak AS (
    -- A value that hands part of its bytes over at the peak keeps its padding in proportion.
    SELECT
        p.run_id,
        p.shape,
        p.size_bytes,
        sum((p.padding_bytes - dynamic_size_bytes(p.shape, p.tiling))::HUGEINT
            * p.bytes_at_peak // p.size_bytes)::BIGINT AS padding_bytes
    FROM buffers_at_peak AS p
    WHERE p.padding_bytes > 0
    GROUP BY p.run_id, p.shape, p.size_bytes
)
SELECT
    d.run_id,
    CASE WHEN d.peak_time IS NOT NULL THEN coalesce(p.padding_bytes, 0) END AS padding_at_peak_bytes,
    d.padding_bytes,
    d.size_bytes / nullif(d.logical_bytes, 0) AS expansion,
    d.buffers,
    d.tiling,
    d.shape,
    d.example,
    d.size_bytes,
    d.logical_bytes,
    d.module,
    d.dynamic_size_bytes
FROM padded AS d
LEFT JOIN at_peak AS p ON p.run_id = d.run_id AND p.shape = d.shape AND p.size_bytes = d.size_bytes
ORDER BY padding_at_peak_bytes DESC NULLS LAST, d.padding_bytes DESC, d.run_id, d.shape
LIMIT $top;

EXECUTE padding(top := 20, tiling := NULL, run := NULL, label := NULL, module := NULL);
