-- title: Load failures
-- topic: housekeeping
-- question: Which dumps failed to load, where and why?
-- note: The newest reject of each file, until a later import loads that file; the table rejects keeps all. What failed to
--   load is no run: --run and --label select nothing here, --module looks at the file's name.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- key: file, line, message
-- column file VARCHAR: file at fault
-- column line BIGINT: line in it, from 1
-- column message VARCHAR: what failed and what to do
-- column kind VARCHAR: rule that failed, one word
-- column section VARCHAR: section of the dump
-- column import_id BIGINT: import that rejected it last
-- column started_at TIMESTAMP as started: when that import started, UTC
-- column text VARCHAR: the text concerned
PREPARE load_failures AS
SELECT j.file, j.line, j.message, j.kind, j.section, j.import_id, i.started_at, j.text
FROM rejects AS j
LEFT JOIN imports AS i USING (import_id)
LEFT JOIN (
    SELECT CASE r.dump_dir WHEN '' THEN '' ELSE r.dump_dir || '/' END || f.file_name AS file, max(r.import_id) AS import_id
    FROM run_files AS f
    JOIN runs AS r USING (run_id)
    GROUP BY ALL
) AS l ON l.file = j.file AND l.import_id > j.import_id
WHERE $run IS NULL
  AND $label IS NULL
  AND l.file IS NULL
  AND ($module IS NULL OR regexp_replace(j.file, '^.*/', '') GLOB ('*' || $module || '*'))
QUALIFY row_number() OVER (PARTITION BY j.file ORDER BY j.import_id DESC, j.line) = 1
ORDER BY j.import_id DESC, j.file, j.line
LIMIT $top;

EXECUTE load_failures(top := 20, run := NULL, label := NULL, module := NULL);
