-- title: Bytes in which a value of a bounded dynamic shape keeps its actual sizes; 0 for other shapes.
-- note: A layout on TPU says how many, M(n); elsewhere they are 4 for each dimension.
CREATE OR REPLACE MACRO dynamic_size_bytes(shape, tiling) AS
CASE
    WHEN contains(shape, 'M(') THEN coalesce(nullif(regexp_extract(shape, '\{[^}]*:[^}]*M\((\d+)\)', 1), '')::BIGINT, 0)
    WHEN contains(shape, '<=') AND tiling IS NULL THEN 4 * len(string_split(regexp_extract(shape, '\[([^\]]*)', 1), ','))
    ELSE 0
END;
