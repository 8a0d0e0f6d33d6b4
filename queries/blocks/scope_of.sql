-- title: Named scope of an operation: its op_name without the last part; NULL where there is only one part.
-- note: Parts are separated by '/' outside of brackets and quotes, so that o[0].nu['net/~/block_3'] is one part. Where the
--   brackets or quotes behind every '/' do not close, the last '/' separates.
CREATE OR REPLACE MACRO scope_of(op_name) AS
-- The expression stands once: it takes a millisecond to read.
nullif(regexp_replace(op_name, '(?:^|/)(?:' || op_name_part() || '|[^/]*)$', ''), '');
