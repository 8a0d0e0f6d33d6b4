-- title: Named scope of an operation: its op_name without the last part; NULL where there is only one part.
-- note: Parts are separated by '/' outside of brackets and quotes, so that o[0].nu['net/~/block_3'] is one part. In a name
--   whose brackets or quotes do not close, every '/' separates.
CREATE OR REPLACE MACRO scope_of(op_name) AS
nullif(
    CASE
        WHEN regexp_matches(op_name, '^' || op_name_part() || '(?:/' || op_name_part() || ')*$')
            THEN regexp_extract(op_name, '^(' || op_name_part() || '(?:/' || op_name_part() || ')*)/' || op_name_part() || '$', 1)
        ELSE regexp_extract(op_name, '^(.*)/', 1, 's')
    END,
    ''
);
