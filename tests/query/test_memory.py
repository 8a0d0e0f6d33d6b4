"""Figures of memory as the saved queries give them: what adds up, and what is XProf's."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from ingest.cli.show import show
from ingest.database.connect import open_database
from ingest.liveness.measure import Intervals
from ingest.maintenance.doctor import examine
from ingest.pipeline.importer import import_dumps
from ingest.query.blocks import create_temporary
from tests.support.live_bytes import union_curves
from tests.support.query_databases import DATA, ask

OVERLAPPING = {
    "maybe-live-out": "preallocated-temp",
    # Half of b is a's, and all of d is c's.
    "(size=10,offset=10)": "(size=10,offset=5)",
    "(size=10,offset=30)": "(size=10,offset=20)",
    "    c.1{}:2-4": "    c.1{}:2-3",
}


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one run whose values share bytes, as those of two branches may."""
    folder = tmp_path_factory.mktemp("overlapping")
    [path] = (DATA / "handmade/raw-labels").glob("*.txt")
    text = path.read_bytes().decode()
    for old, new in OVERLAPPING.items():
        assert old in text
        text = text.replace(old, new)
    (folder / path.name).write_bytes(text.encode())
    assert import_dumps([folder], folder / "x.duckdb", jobs=1).loaded == 1
    return folder / "x.duckdb"


def assert_live_bytes_are_the_union(connection: duckdb.DuckDBPyConnection) -> int:
    """Compare every figure of live bytes in SQL with the union of addresses; return the slots compared."""
    by_run: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
    for run_id, *interval in connection.execute(
        "SELECT g.run_id, v.allocation_index, v.offset_bytes, v.size_bytes, g.start_time, g.end_time "
        'FROM ranges AS g JOIN "values" AS v USING (run_id, value_id)'
    ).fetchall():
        by_run[run_id].append(tuple(interval))
    colors = {
        (run_id, allocation): color
        for run_id, allocation, color in connection.execute(
            "SELECT run_id, allocation_index, color FROM allocations"
        ).fetchall()
    }
    create_temporary(connection)
    found = _Figures(connection)
    slots = 0
    for run_id, intervals in by_run.items():
        columns = Intervals(*(list(column) for column in zip(*intervals, strict=True)))
        curves = union_curves(columns)
        sums = {time: sum(curve.values()) for time, curve in curves.items()}
        assert found.curves[run_id] == sums
        assert found.peaks[run_id] == found.at_peak.get(run_id, 0) == max(sums.values())
        of_color: defaultdict[int, int] = defaultdict(int)
        for curve in curves.values():
            here: defaultdict[int, int] = defaultdict(int)
            for allocation, size in curve.items():
                here[colors[run_id, allocation]] += size
            for color, size in here.items():
                of_color[color] = max(of_color[color], size)
        assert found.of_color[run_id] == {color: size for color, size in of_color.items() if size}
        released = _released(columns)
        for allocation, (peak, released_peak) in found.arenas[run_id].items():
            if peak is not None:
                assert peak == max(curve.get(allocation, 0) for curve in curves.values())
                assert peak == found.in_arena[run_id, allocation]
                assert released_peak == released.get(allocation, 0)
        slots += len(sums)
    return slots


class _Figures:
    """What the queries answer, by run."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.curves: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for run_id, time, size in connection.execute("FROM live_bytes").fetchall():
            self.curves[run_id][time] = size
        self.of_color: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for run_id, color, size in ask(connection, "peak_by_color", "run_id", "color", "peak_bytes"):
            self.of_color[run_id][color] = size
        self.arenas: defaultdict[int, dict[int, tuple[int | None, int]]] = defaultdict(dict)
        for run_id, allocation, peak, released in connection.execute(
            "SELECT run_id, allocation_index, peak_bytes, released_peak_bytes FROM arena_occupancy"
        ).fetchall():
            self.arenas[run_id][allocation] = (peak, released)
        self.in_arena: defaultdict[tuple[int, int], int] = defaultdict(int)
        for run_id, allocation, size in ask(connection, "temp_arena", "run_id", "allocation_index", "bytes"):
            self.in_arena[run_id, allocation] += size
        self.at_peak = dict(
            connection.execute(
                "SELECT run_id, sum(bytes_at_peak) FROM values_at_peak GROUP BY run_id"
            ).fetchall()
        )
        self.peaks = dict(connection.execute("SELECT run_id, peak_bytes FROM runs").fetchall())


def _released(intervals: Intervals) -> dict[int, int]:
    """Return the peak of each allocation when values go at the slot of their last use."""
    lasting = [row for row in zip(*intervals, strict=True) if row[3] < row[4]]
    peaks: defaultdict[int, int] = defaultdict(int)
    if lasting:
        shorter = [(*row[:4], row[4] - 1) for row in lasting]
        intervals = Intervals(*(list(column) for column in zip(*shorter, strict=True)))
        for curve in union_curves(intervals).values():
            for allocation, size in curve.items():
                peaks[allocation] = max(peaks[allocation], size)
    return peaks


def test_live_bytes_in_sql_are_the_union(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Per run, color and arena, in every slot, the queries give the union of addresses."""
    assert assert_live_bytes_are_the_union(demonstration) > 300


def test_values_that_overlap_count_once_in_sql(overlapping: Path) -> None:
    """Where values share bytes for many slots, all figures are the union too, and doctor agrees."""
    with open_database(overlapping, read_only=True) as connection:
        assert assert_live_bytes_are_the_union(connection) > 3
        assert ask(connection, "live_at_peak", "value", "bytes") == [("a.1", 10), ("c.1", 10), ("b.1", 5)]
    [peaks] = [found for found in examine(str(overlapping)) if found.check == "peaks"]
    assert peaks.level == "ok"


def test_show_prints_the_three_figures(overlapping: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the run asks for, what it keeps and what is live at once are named in one place."""
    monkeypatch.setattr("ingest.report.glance._findings", lambda *_: [])  # five queries, which others try
    result = CliRunner().invoke(show, ["1", "--db", str(overlapping)])
    assert result.exit_code == 0
    lines = [line.split("  ") for line in result.stdout.splitlines()[2:5]]
    assert [(line[0], next(part.strip() for part in line[1:] if part.strip())) for line in lines] == [
        ("total", "40 B"),
        ("resident peak", "25 B"),
        ("live peak", "25 B"),
    ]


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
