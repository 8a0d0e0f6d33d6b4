"""Compare compilations: find both sides, pair their modules, say what changed the peak."""
