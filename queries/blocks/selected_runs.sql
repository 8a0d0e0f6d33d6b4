-- title: Runs that run, label and module select, as every saved query does.
-- note: run is a run_id or several as '3,7'; label is key=value, the value may be a glob, several as 'a=1,b=2' (all
--   must hold; write ? for a comma in a value); module is a glob on the module's name. NULL selects all.
-- column module VARCHAR: Module name of the file name; the file's stem where it names none.
CREATE OR REPLACE MACRO selected_runs(run := NULL, label := NULL, module := NULL) AS TABLE
SELECT r.*, coalesce(r.module_name, r.stem) AS module
FROM runs AS r
WHERE (run IS NULL OR list_contains(string_split(replace(run::VARCHAR, ' ', ''), ','), r.run_id::VARCHAR))
  AND (module IS NULL OR coalesce(r.module_name, r.stem) GLOB module)
  AND (label IS NULL OR r.run_id IN (
        SELECT l.run_id
        FROM unnest(string_split(label, ',')) AS wanted(pair), run_labels AS l
        WHERE l."key" = trim(string_split(wanted.pair, '=')[1])
          AND l."value" GLOB coalesce(nullif(trim(substr(wanted.pair, strpos(wanted.pair, '=') + 1)), trim(wanted.pair)), '*')
        GROUP BY l.run_id
        HAVING count(DISTINCT wanted.pair) = len(list_distinct(string_split(label, ',')))));
