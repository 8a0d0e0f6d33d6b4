-- title: Bytes at the peak that are padding of tiles, which another layout or shape would not need.
-- note: other layout: two other dimensions of the same shape, as the most minor ones, would fill the tiles better; at least
--   half of the padding goes. other shape: no order of its dimensions does; as many elements in full tiles would.
-- column run_id BIGINT: Number of the run.
-- column advice VARCHAR: What could be done.
-- column value_id BIGINT: Value whose bytes would be spared.
-- column kept_bytes BIGINT: Its bytes that would stay.
-- column from_time BIGINT: First slot from which they would be spared.
-- column to_time BIGINT: Last slot.
-- column reason VARCHAR: What in the dump shows it.
CREATE OR REPLACE MACRO spare_padding() AS TABLE
WITH padded AS (
    SELECT v.run_id, v.value_id, v.size_bytes, v.logical_bytes, v.dimensions, v.tiling, v.start_time, v.end_time,
        -- T(8,128): rows and columns of a tile; none for arrays of one dimension.
        try_cast(regexp_extract(v.tiling, '^T\((\d+),', 1) AS BIGINT) AS "rows",
        try_cast(regexp_extract(v.tiling, '^T\(\d+,(\d+)\)', 1) AS BIGINT) AS "columns"
    FROM advised_values AS v
    WHERE v.padding_bytes > 0 AND v.tiling IS NOT NULL
),
laid_out AS (
    SELECT p.*,
        ceil(p.logical_bytes * list_min(flatten(list_transform(p.dimensions, lambda a, i:
            list_transform(p.dimensions, lambda b, j: CASE WHEN i <> j THEN
                ceil(a / p."rows") * p."rows" / a * ceil(b / p."columns") * p."columns" / b
            END)))))::BIGINT AS least_bytes
    FROM padded AS p
)
SELECT
    l.run_id,
    CASE WHEN 2 * (l.size_bytes - l.least_bytes) >= l.size_bytes - l.logical_bytes THEN 'other layout' ELSE 'other shape' END AS advice,
    l.value_id,
    CASE advice WHEN 'other layout' THEN l.least_bytes ELSE l.logical_bytes END AS kept_bytes,
    l.start_time AS from_time,
    l.end_time AS to_time,
    format('{} makes it {:.4g} times as large', l.tiling, l.size_bytes / l.logical_bytes) AS reason
FROM laid_out AS l
WHERE l.logical_bytes > 0;
