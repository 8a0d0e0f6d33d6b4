-- title: What the texts of a run's dump are, as one text: equal where all of them are equal, byte by byte.
-- note: Since jaxlib 0.10 a dump is three files, and the first alone does not say what its instructions are. Of a run without
--   texts it is the protobuf.
-- column run_id BIGINT: Number of the run.
-- column content VARCHAR: SHA-256 of each file; NULL where none is known.
CREATE OR REPLACE VIEW run_contents AS
SELECT
    r.run_id,
    coalesce(string_agg(f.role || ' ' || f.content_sha256, ', ' ORDER BY f.role), r.content_sha256) AS content
FROM runs AS r
LEFT JOIN run_files AS f ON f.run_id = r.run_id AND f.role IN ('primary', 'values', 'live_range')
GROUP BY r.run_id, r.content_sha256;
