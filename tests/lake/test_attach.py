"""A file of views of a lake, which any DuckDB shell opens."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.errors import NotADatabase
from ingest.lake.attach import FASTER, attach_lake
from ingest.lake.layout import LAKE_TABLES
from ingest.lake.store import Lake
from tests.support.once import made_once


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory, demonstration_lake: Path) -> Path:
    """Views of the demonstration."""

    def make(folder: Path) -> Path:
        done = attach_lake(Lake(str(demonstration_lake), True), str(folder / "view.duckdb"))
        assert done.is_new
        return folder / "view.duckdb"

    return made_once(tmp_path_factory, "attached", make)


def test_views_show_the_tables(views: Path, in_file: duckdb.DuckDBPyConnection) -> None:
    """As any program of DuckDB's opens them, also attached under another name."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{views}' AS views (READ_ONLY)")
        for name in LAKE_TABLES:
            query = 'SELECT count(*) FROM {}"' + name + '"'
            assert (
                connection.execute(query.format("views.")).fetchall()
                == in_file.execute(query.format("")).fetchall()
            )


def test_saved_queries_are_macros(views: Path, in_file: duckdb.DuckDBPyConnection) -> None:
    """With their list, and comments on tables and columns."""
    with duckdb.connect(str(views), read_only=True) as connection:
        for query in (
            "FROM largest_live_out(top := 5)",
            "FROM memory_by_opcode(run := (SELECT max(run_id) FROM runs)) ORDER BY ALL",
            "SELECT name FROM saved_queries ORDER BY ALL",
        ):
            query = query.replace("(SELECT max(run_id) FROM runs)", str(_newest(in_file)))
            assert connection.execute(query).fetchall() == in_file.execute(query).fetchall()
        of_columns = (
            "SELECT table_name, column_name, comment FROM duckdb_columns()"
            " WHERE NOT internal AND database_name = current_database() AND schema_name = 'main'"
            " AND table_name <> 'attached_lake' ORDER BY ALL"
        )
        commented = {row for row in in_file.execute(of_columns).fetchall() if row[0] != "alembic_version"}
        assert set(connection.execute(of_columns).fetchall()) == commented


def test_a_shell_can_do_what_a_file_cannot(views: Path) -> None:
    """No setting comes with the file; the one that is printed for it takes effect, and changes no answer."""
    query = "FROM largest_live_out(top := 5)"
    with duckdb.connect(str(views), read_only=True) as connection:
        setting = "SELECT current_setting('disabled_optimizers')"
        answer = connection.execute(query).fetchall()
        assert connection.execute(setting).fetchone() == ("",)
        connection.execute(FASTER)
        assert connection.execute(setting).fetchone() == ("common_subplan",)
        assert connection.execute(query).fetchall() == answer


@pytest.mark.slow
def test_it_is_made_anew_in_its_place(
    full_lake: Lake, views: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with relative paths: then lake and views can be moved together."""
    path = tmp_path / "view.duckdb"
    path.write_bytes(views.read_bytes())
    done = attach_lake(full_lake, str(path), relative=True)
    assert not done.is_new
    moved = tmp_path / "moved"
    moved.mkdir()
    os.rename(path, moved / "view.duckdb")
    os.rename(full_lake.root, moved / "lake")
    monkeypatch.chdir(moved)
    with duckdb.connect("view.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(done.runs,)]
        assert connection.execute("SELECT lake, runs FROM attached_lake").fetchall() == [
            (full_lake.root, done.runs)
        ]


def test_no_other_file_is_replaced(full_lake: Lake, own_demonstration: Path, tmp_path: Path) -> None:
    """Neither a database of runs nor a text."""
    database, text = tmp_path / "xbuf.duckdb", tmp_path / "notes.txt"
    database.write_bytes(own_demonstration.read_bytes())
    text.write_text("mine")
    for path in (database, text):
        before = path.read_bytes()
        with pytest.raises(NotADatabase, match="left untouched"):
            attach_lake(full_lake, str(path))
        assert path.read_bytes() == before


def test_xbuf_asks_the_lake_itself(views: Path) -> None:
    """Views of a file could read any file: xbuf opens none."""
    with pytest.raises(NotADatabase, match=r"is made of views of a lake.*--db lake:URL"):
        open_database(views, read_only=True)


def _newest(connection: duckdb.DuckDBPyConnection) -> int:
    [[run]] = connection.execute("SELECT max(run_id) FROM runs").fetchall()
    return int(run)
