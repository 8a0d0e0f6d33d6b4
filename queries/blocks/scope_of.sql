-- title: Named scope of an operation: its op_name without the last part; NULL where there is only one part.
-- note: Parts are separated by '/' outside of brackets and quotes, so that o[0].nu['net/~/block_3'] is one part. In a name
--   whose brackets or quotes do not close, every '/' separates.
CREATE OR REPLACE MACRO scope_of(op_name) AS
-- All but the last part, with the '/' behind them. Each macro stands once: DuckDB writes them out wherever they are used.
nullif(left(regexp_replace(op_name, '^(?:((?:' || op_name_part() || '/)*)' || op_name_part() || '|((?s:.*/))?[^/]*)$', '\1\2'), -1), '');
