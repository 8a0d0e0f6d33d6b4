"""Figures of memory as the saved queries give them: what adds up, and what is XProf's."""

from __future__ import annotations

from pathlib import Path

from ingest.database.connect import open_database
from ingest.pipeline.importer import import_dumps
from tests.query_databases import DATA, ask


def test_colors_of_one_memory_are_added_up(database: Path, tmp_path: Path) -> None:
    """What a GPU program puts into symmetric memory takes device memory; what it pins on the host none."""
    stem = "module_3325.jit_act_offload_scan.sm_9.0a_gpu_after_optimizations"
    for path in (DATA / "dumps/gpu-h100-jaxlib-0.10.2").glob(stem + "-*.txt"):
        text = path.read_text(encoding="utf-8")
        changed = text.replace("size 127928368, preallocated", "size 127928368, color 7, preallocated")
        (tmp_path / path.name).write_text(changed, encoding="utf-8")
    assert import_dumps([tmp_path], database, jobs=1).loaded == 1
    with open_database(database, read_only=True) as connection:
        columns = ("needed_bytes", "memory", "colors")
        fixed = 16777216 + 16777216 + 8388608 + 3 * 4
        assert ask(connection, "fits_in_memory", *columns) == [(fixed + 127928368, "device memory", "0,7")]
        assert ask(connection, "fits_in_memory", *columns, color=5) == [(67108864, "host memory", "5")]
        assert ask(connection, "fits_in_memory", *columns, color=9) == []
