"""What an import knows of the dump sets that it finds, without reading what it does not ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import ingest.pipeline.recorded as recorded_module
from ingest.dump.sets import DumpSet, Member
from ingest.pipeline.manifest import note_runs, open_manifest, take_in
from ingest.pipeline.recorded import RenamedFiles, find_recorded, renamed_files
from ingest.staging.task import RecordedFile, RecordedRun

PRIMARY = "m1-buffer-assignment.txt"
VALUES = "m1-buffer-assignment-values.txt"
RECORDED = [
    # run, directory, stem, role, file, size, time
    (1, "/a", "m1", "primary", PRIMARY, 10, 100),
    (1, "/a", "m1", "values", VALUES, 20, 100),
    (2, "/a", "m1", "primary", PRIMARY, 11, 200),
    (2, "/a", "m1", "values", VALUES, 21, 200),
    (3, "/a", "m2", "primary", "m2-buffer-assignment.txt", 10, 100),
    (4, "/a", r"odd\n", "primary", r"odd\n-buffer-assignment.txt", 10, 100),
    (5, "/b", "m1", "primary", PRIMARY, 10, 100),
    (6, "/a/deeper", "kept", "primary", "kept.txt", 10, 100),
    (7, "/ab", "kept", "primary", "kept.txt", 10, 100),
]


def dump_set(directory: str, stem: str, *members: tuple[str, str, int, int]) -> DumpSet:
    return DumpSet(directory, stem, tuple(Member(*member) for member in members))


SETS = [
    dump_set("/a", "m1", ("primary", PRIMARY, 10, 100), ("values", VALUES, 20, 100)),  # run 1
    dump_set("/a", "m1", ("primary", PRIMARY, 11, 200)),  # run 2, which has more
    dump_set("/a", "m1", ("primary", PRIMARY, 10, 100), ("values", VALUES, 21, 200)),  # of two runs
    dump_set("/a", "m2", ("primary", "m2-buffer-assignment.txt", 10, 100)),
    dump_set("/a", "m2", ("primary", "m2-buffer-assignment.txt", 10, 999)),  # touched
    dump_set("/a", "m3", ("primary", "m3-buffer-assignment.txt", 10, 100)),  # new
    dump_set("/a", "odd\n", ("primary", "odd\n-buffer-assignment.txt", 10, 100)),
    dump_set("/c", "m1", ("primary", PRIMARY, 10, 100)),  # in a new directory
    dump_set("/a", "m2", ("proto", "m2-buffer-assignment.txt", 10, 100)),  # in another role
]


@pytest.fixture
def recorded() -> Iterator[duckdb.DuckDBPyConnection]:
    """The columns of a database that are asked for, with RECORDED; runs 6 and 7 are of import 2."""
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            "CREATE TABLE runs (run_id BIGINT, import_id BIGINT, dump_dir VARCHAR, stem VARCHAR)"
        )
        connection.execute(
            "CREATE TABLE run_files (run_id BIGINT, role VARCHAR, file_name VARCHAR, file_bytes BIGINT,"
            " mtime_ns BIGINT, etag VARCHAR, content_sha256 VARCHAR)"
        )
        for run_id, directory, stem in sorted({row[:3] for row in RECORDED}):
            number = 2 if run_id > 5 else 1
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", [run_id, number, directory, stem])
        for run_id, _, _, *file in RECORDED:
            connection.execute("INSERT INTO run_files VALUES (?, ?, ?, ?, ?, NULL, 'sha')", [run_id, *file])
        yield connection


@pytest.fixture
def open_all(recorded: duckdb.DuckDBPyConnection) -> Callable[[], list[duckdb.DuckDBPyConnection]]:
    return lambda: [recorded.cursor()]


@pytest.mark.parametrize("few", [0, 100], ids=["by directory", "by place"])
def test_a_set_is_unchanged_when_one_run_recorded_all_of_it(
    open_all: Callable[[], list[duckdb.DuckDBPyConnection]], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways of looking up give the same answer, also where a set mixes the files of two runs."""
    monkeypatch.setattr(recorded_module, "FEW_SETS", few)
    recorded = find_recorded(open_all, SETS)
    assert recorded.unchanged == {0, 1, 3, 6}
    assert {number: [run.run_id for run in runs] for number, runs in recorded.runs.items()} == {
        2: [1, 2],
        4: [3],
        8: [3],
    }
    assert recorded.runs[4] == (
        RecordedRun(3, [RecordedFile(Member("primary", "m2-buffer-assignment.txt", 10, 100), "sha")]),
    )


def test_with_rehash_nothing_counts_as_unchanged(
    open_all: Callable[[], list[duckdb.DuckDBPyConnection]],
) -> None:
    recorded = find_recorded(open_all, SETS, rehash=True)
    assert recorded.unchanged == frozenset()
    assert sorted(recorded.runs) == [0, 1, 2, 3, 4, 6, 8]


def test_renamed_files_are_those_below_the_roots(
    recorded: duckdb.DuckDBPyConnection,
) -> None:
    """A folder whose name begins alike is another; nothing is asked before the first question."""
    opened = []

    def open_all() -> list[duckdb.DuckDBPyConnection]:
        opened.append(1)
        return [recorded.cursor()]

    renamed = RenamedFiles(lambda: renamed_files(open_all, ["/a"]))
    assert not opened
    assert ("/a/deeper", "kept.txt") in renamed
    assert ("/ab", "kept.txt") not in renamed
    assert ("/a", PRIMARY) not in renamed
    assert len(opened) == 1
    assert ("/ab", "kept.txt") in RenamedFiles(lambda: renamed_files(open_all, ["/"]))


def test_a_write_notes_its_own_rows(recorded: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """The record grows by what is noted, and a run that is noted again has its new rows alone."""
    note_runs(recorded, tmp_path, "import_id = 1")
    take_in(tmp_path, anew=True)
    recorded.execute("UPDATE run_files SET mtime_ns = 999 WHERE run_id = 3")
    note_runs(recorded, tmp_path, "import_id = 2 OR run_id IN (3)")
    noted = duckdb.sql(
        f"SELECT DISTINCT run_id FROM '{tmp_path}/manifest-noted.parquet' ORDER BY ALL"
    ).fetchall()
    assert noted == [(3,), (6,), (7,)]
    take_in(tmp_path)
    record = open_manifest(tmp_path)
    assert record is not None
    columns = "run_id, dump_dir, stem, role, file_name, file_bytes, mtime_ns"
    query = f"SELECT {columns} FROM runs JOIN run_files USING (run_id) ORDER BY run_id, role"
    with record:
        assert record.execute(query).fetchall() == [
            (*row[:-1], 999 if row[0] == 3 else row[-1]) for row in RECORDED
        ]
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.duckdb"]


def test_a_damaged_record_is_dropped(recorded: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Nothing is known then; the next write notes all."""
    (tmp_path / "manifest.duckdb").write_bytes(b"something else" * 1000)
    assert open_manifest(tmp_path) is None
    note_runs(recorded, tmp_path, "import_id = 2")
    take_in(tmp_path)
    assert not (tmp_path / "manifest.duckdb").exists()
