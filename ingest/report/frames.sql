-- The Python stack frames that the module names.
SELECT f.frame_id, f.parent_frame_id, f."function", f.file, f.line, f.is_framework
FROM source_frames AS f
WHERE f.run_id = $run
ORDER BY f.frame_id;
