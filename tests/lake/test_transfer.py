"""Runs move from a file into a lake and back, each once."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.database.tables import RUN_TABLES
from ingest.errors import UsageError
from ingest.lake import transfer
from ingest.lake.commit import complete_all
from ingest.lake.reading import open_to_read
from ingest.lake.store import Lake
from ingest.lake.transfer import Imported, export_lake, import_database
from tests.support.lakes import begin, die, end, in_process

_PLACES = (
    "SELECT run_id, dump_dir, stem, content_sha256, import_uuid"
    " FROM {0}.runs JOIN {0}.imports USING (import_id)"
)


def _compare(one: Path, other: Path) -> None:
    """Make sure that two files have the same rows but for the numbers of runs and imports."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{one}' AS one (READ_ONLY); ATTACH '{other}' AS other (READ_ONLY)")
        connection.execute(
            "CREATE TABLE pairs AS SELECT a.run_id AS one, b.run_id AS other"
            f" FROM ({_PLACES.format('one')}) AS a JOIN ({_PLACES.format('other')}) AS b"
            " USING (dump_dir, stem, content_sha256, import_uuid)"
        )
        [[runs]] = connection.execute("SELECT count(*) FROM one.runs").fetchall()
        pairs = connection.execute("SELECT count(*), count(DISTINCT one) FROM pairs").fetchall()
        assert pairs == [(runs, runs)]
        for table in ("runs", "run_labels", *RUN_TABLES):
            drop = "run_id, import_id, ingested_at" if table == "runs" else "run_id"
            sides = [
                f'SELECT p.one, t.* EXCLUDE ({drop}) FROM {side}."{table}" AS t'
                f" JOIN pairs AS p ON p.{side} = t.run_id"
                for side in ("one", "other")
            ]
            for first, second in (sides, sides[::-1]):
                left = connection.execute(f"SELECT count(*) FROM ({first} EXCEPT ALL {second})").fetchall()
                assert left == [(0,)], table
        for table in ("imports", "rejects"):
            sides = [f"SELECT * EXCLUDE (import_id) FROM {side}.{table}" for side in ("one", "other")]
            for first, second in (sides, sides[::-1]):
                left = connection.execute(f"SELECT count(*) FROM ({first} EXCEPT ALL {second})").fetchall()
                assert left == [(0,)], table


@pytest.mark.slow
def test_a_file_comes_back_as_it_went(own_demonstration: Path, exported_file: Path) -> None:
    """Every row of every table; only numbers and the time of loading differ."""
    _compare(own_demonstration, exported_file)
    with open_database(exported_file, read_only=True) as connection:
        assert connection.execute("FROM largest_live_out(top := 1)").fetchall()


@pytest.mark.slow
def test_the_same_file_twice_is_one(
    full_lake: Lake, own_demonstration: Path, exported_file: Path, tmp_path: Path
) -> None:
    """So is what a lake has exported itself."""
    exported = tmp_path / "exported.duckdb"  # the other may be open in this process
    exported.write_bytes(exported_file.read_bytes())
    runs = in_process(import_database, str(own_demonstration), full_lake)
    assert runs == Imported(0, runs.known, 0, 0)
    assert in_process(import_database, str(exported), full_lake) == runs
    with open_to_read(f"lake:{full_lake}") as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(runs.known,)]


@pytest.mark.slow
def test_large_files_come_in_several_batches(
    full_lake: Lake, own_demonstration: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a kill between two of them loses nothing."""
    again = tmp_path / "again.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{own_demonstration}' AS old (READ_ONLY); ATTACH '{again}' AS new")
        connection.execute("COPY FROM DATABASE old TO new")
        connection.execute("UPDATE new.runs SET dump_dir = dump_dir || '/again'")
        connection.execute("UPDATE new.imports SET import_uuid = import_uuid || 'again'")
        [[runs, imports]] = connection.execute(
            "SELECT count(*), (SELECT count(*) FROM new.imports) FROM new.runs"
        ).fetchall()
    half = runs // 2 + 1
    monkeypatch.setattr(transfer, "RUNS_A_BATCH", half)

    def killed(done: int, of: int) -> None:
        assert done < of
        die()

    child = begin(lambda: import_database(str(again), full_lake, on_batch=killed))
    assert end(child) == -9
    rest = in_process(import_database, str(again), full_lake)
    assert rest == Imported(runs - half, half, 0, 1)
    assert in_process(complete_all, full_lake) == 0
    with open_to_read(f"lake:{full_lake}") as connection:
        found = connection.execute("SELECT count(*), (SELECT count(*) FROM imports) FROM runs").fetchall()
    assert found == [(2 * runs, 2 * imports)]


def test_an_export_replaces_no_file(full_lake: Lake, tmp_path: Path) -> None:
    """It asks for a new name."""
    path = tmp_path / "xbuf.duckdb"
    path.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        export_lake(full_lake, str(path))
    assert path.read_text() == "mine"
