-- Warnings about the dump.
SELECT n.kind, n.message, n.file, n.line
FROM notices AS n
WHERE n.run_id = $run
ORDER BY n.file, n.line NULLS FIRST, n.kind, n.message;
