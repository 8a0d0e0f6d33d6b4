-- title: Load failures
-- question: Which dumps failed to load, where and why?
-- note: What failed to load is no run: --run and --label select nothing here, --module looks at the file's name.
-- example: --top 5
-- parameter top BIGINT = 20: rows to show
-- column import_id BIGINT: import that rejected it
-- column started_at TIMESTAMP: when that import started, UTC
-- column file VARCHAR: file at fault
-- column line BIGINT: line in it, from 1
-- column section VARCHAR: section of the dump
-- column kind VARCHAR: rule that failed, one word
-- column message VARCHAR: what failed and what to do
-- column text VARCHAR: the text concerned
PREPARE load_failures AS
SELECT j.import_id, i.started_at, j.file, j.line, j.section, j.kind, j.message, j.text
FROM rejects AS j
LEFT JOIN imports AS i USING (import_id)
WHERE $run IS NULL
  AND $label IS NULL
  AND ($module IS NULL OR regexp_replace(j.file, '^.*/', '') GLOB ('*' || $module || '*'))
ORDER BY j.import_id DESC, j.file, j.line
LIMIT $top;

EXECUTE load_failures(top := 20, run := NULL, label := NULL, module := NULL);
