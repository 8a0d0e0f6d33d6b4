"""A question has the same answer in a lake as in a file with the same runs."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import duckdb
import pytest

import xbuf
from ingest.compare.sides import Source, gather
from ingest.database.connect import open_database
from ingest.database.scope import narrowed
from ingest.database.tables import RUN_TABLES, TABLES
from ingest.errors import DatabaseError, UsageError
from ingest.lake.commit import connect, without_runs
from ingest.lake.layout import LAKE_TABLES
from ingest.lake.reading import in_words_of, open_to_read
from ingest.lake.snapshot import read_snapshot
from ingest.lake.store import Lake
from ingest.lake.transactions import Change, change_in_turn
from ingest.lake.transfer import export_lake, import_database
from ingest.pipeline.importer import import_dumps
from ingest.query.catalog import shipped
from ingest.query.run import bind
from ingest.query.selection import select_runs
from tests.support.lakes import in_process
from tests.support.query_databases import ask, one_of_each_parameter

if TYPE_CHECKING:
    from deltalake import DeltaTable


@pytest.mark.parametrize("name", one_of_each_parameter())
def test_a_query_has_the_rows_of_a_file(
    in_lake: duckdb.DuckDBPyConnection, in_file: duckdb.DuckDBPyConnection, name: str
) -> None:
    """Over all runs; the tables have the same rows, so others can only differ in how DuckDB reads them."""
    assert ask(in_lake, name, top=20) == ask(in_file, name, top=20)


@pytest.mark.parametrize("name", ["live_at_peak", "users_of", "memory_by_source"])
def test_a_query_about_one_run_has_the_rows_of_a_file(
    in_lake: duckdb.DuckDBPyConnection, in_file: duckdb.DuckDBPyConnection, name: str
) -> None:
    """Narrowed to the run, as a command asks."""
    [[run]] = in_file.execute(
        "SELECT run_id FROM runs WHERE module_name = 'jit_mlp_wide_train_step'"
    ).fetchall()
    query = shipped().load(name)
    runs = select_runs(in_lake, query, bind(query, {"run": str(run)}))
    assert runs == (run,)
    with narrowed(in_lake, runs):
        answer = ask(in_lake, name, run=str(run))
    assert answer == ask(in_file, name, run=str(run))
    assert answer


def test_tables_are_those_of_a_file(
    in_lake: duckdb.DuckDBPyConnection, in_file: duckdb.DuckDBPyConnection
) -> None:
    """Names, columns, types and rows; also of tables without rows."""
    for name in LAKE_TABLES:
        described = [
            [column[:2] for column in connection.execute(f'DESCRIBE "{name}"').fetchall()]
            for connection in (in_lake, in_file)
        ]
        assert described[0] == described[1]
        rows = [
            connection.execute(f'SELECT * FROM "{name}" ORDER BY ALL').fetchall()
            for connection in (in_lake, in_file)
        ]
        assert rows[0] == rows[1], name


def test_a_table_in_which_no_run_has_a_row_is_empty_for_a_run(in_lake: duckdb.DuckDBPyConnection) -> None:
    """Narrowed to a run that no file holds, every table is there and has no row."""
    with narrowed(in_lake, [1]):
        for name in ("runs", *RUN_TABLES):
            assert in_lake.execute(f'SELECT count(*) FROM "{name}"').fetchall() == [(0,)], name


@pytest.mark.slow
def test_files_without_the_run_are_not_opened(
    full_lake: Lake, own_demonstration: Path, tmp_path: Path
) -> None:
    """A question about one run is answered also where the files of the others are gone."""
    in_process(import_database, str(_elsewhere(own_demonstration, tmp_path)), full_lake)
    files = in_process(read_snapshot, full_lake).tables["values"].files
    assert len(files) == 2
    with open_to_read(f"lake:{full_lake}") as connection:
        [[run]] = connection.execute("SELECT max(run_id) FROM runs WHERE has_ranges").fetchall()
        os.unlink(full_lake.url(f"values/{files[0].name}"))
        with narrowed(connection, [run]):
            [[seen]] = connection.execute("SELECT count(DISTINCT run_id) FROM values").fetchall()
        assert seen == 1
        gone = pytest.raises(DatabaseError, match=f"values/{files[0].name}: is gone: .* run again")
        with gone, in_words_of(f"lake:{full_lake}"):
            connection.execute("SELECT count(DISTINCT run_id) FROM values").fetchall()


@pytest.mark.slow
def test_a_row_counts_where_its_run_does(full_lake: Lake) -> None:
    """What a batch that is not complete has brought is not seen."""
    with open_to_read(f"lake:{full_lake}") as connection:
        [[before]] = connection.execute("SELECT count(*) FROM uses").fetchall()
        [[run, lost]] = connection.execute(
            "SELECT run_id, count(*) FROM uses GROUP BY ALL ORDER BY 2 DESC LIMIT 1"
        ).fetchall()
    in_process(_take_out, full_lake, run)
    with open_to_read(f"lake:{full_lake}") as connection:
        assert connection.execute("SELECT count(*) FROM uses").fetchall() == [(before - lost,)]


def _elsewhere(database: Path, folder: Path) -> Path:
    """Make a database of the same runs in other places."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{database}' AS old (READ_ONLY)")
        connection.execute(f"ATTACH '{folder}/elsewhere.duckdb' AS new")
        connection.execute("COPY FROM DATABASE old TO new")
        connection.execute("UPDATE new.runs SET dump_dir = dump_dir || '/again'")
    return folder / "elsewhere.duckdb"


def _take_out(lake: Lake, run: int) -> None:
    """Take the row of a run out of `runs`, and no other row."""

    def work_out(table: DeltaTable) -> Change:
        with TemporaryDirectory() as scratch, connect() as connection:
            return without_runs(connection, lake, table, [run], 1, Path(scratch))

    change_in_turn(lake, "runs", work_out)


@pytest.mark.slow
def test_macros_are_there_for_sql(demonstration_lake: Path, exported_file: Path) -> None:
    """A statement of one's own may call saved queries and building blocks, and list them."""
    with xbuf.open(f"lake:{demonstration_lake}") as lake, xbuf.open(exported_file) as file:
        for statement in (
            "FROM largest_live_out(top := 3)",
            "SELECT run_id, module FROM selected_runs(module := 'jit_*') ORDER BY ALL",
            "SELECT name, parameters FROM saved_queries ORDER BY ALL",
            "SELECT count(*) FROM query_columns",
        ):
            assert list(lake.sql(statement)) == list(file.sql(statement)), statement


def test_an_opened_lake_keeps_to_its_files(demonstration_lake: Path, own_demonstration: Path) -> None:
    """SQL of a user reaches no other file, and no setting."""
    with open_to_read(f"lake:{demonstration_lake}") as connection:
        for sql in (
            "FROM read_text('/etc/hostname')",
            f"ATTACH '{own_demonstration}' AS other",
            f"FROM read_text('{demonstration_lake}/../x')",
        ):
            with pytest.raises(duckdb.PermissionException):
                connection.execute(sql)
        with pytest.raises(duckdb.InvalidInputException, match="locked"):
            connection.execute("SET threads = 1")
        with pytest.raises(UsageError, match="does more than read"):
            xbuf.open(f"lake:{demonstration_lake}").sql("FROM read_parquet('x.parquet')")


def test_saved_queries_are_no_table_of_a_lake() -> None:
    """All other tables are."""
    assert set(TABLES) - set(LAKE_TABLES) == {"saved_queries"}


@pytest.mark.slow
def test_a_column_that_came_later_is_unknown_in_older_files(
    full_lake: Lake, own_demonstration: Path, tmp_path: Path
) -> None:
    """Where no file has it, and where some have: as the log's statistics say."""
    folder = Path(full_lake.url("color_peaks"))
    file = next(folder.glob("*.parquet"))
    duckdb.sql(
        f"COPY (SELECT * EXCLUDE (peak_time) FROM read_parquet('{file}')) TO '{file}.tmp' (FORMAT parquet)"
    )
    os.replace(f"{file}.tmp", file)
    for log in (folder / "_delta_log").glob("*.json"):
        log.write_text(log.read_text().replace('\\"peak_time\\":', '\\"other\\":'))
    with open_to_read(f"lake:{full_lake}") as connection:
        peaks = "SELECT count(*), count(peak_time), sum(peak_bytes) FROM color_peaks"
        [(rows, known, total)] = connection.execute(peaks).fetchall()
    assert rows > 0
    assert known == 0
    in_process(import_database, str(_elsewhere(own_demonstration, tmp_path)), full_lake)
    with open_to_read(f"lake:{full_lake}") as connection:
        assert connection.execute(peaks).fetchall() == [(2 * rows, rows, 2 * total)]


@pytest.mark.long
def test_the_corpus_answers_as_from_a_file(shared_corpus: Path, tmp_path: Path) -> None:
    """All rows of every saved query, of 337 dumps in a lake and in the file that they were imported into."""
    import_dumps([shared_corpus], tmp_path / "xbuf.duckdb", jobs=2)
    lake = Lake(str(tmp_path / "lake"), True)
    in_process(import_database, str(tmp_path / "xbuf.duckdb"), lake)
    export_lake(lake, str(tmp_path / "exported.duckdb"))
    with (
        open_to_read(f"lake:{lake}") as stored,
        open_database(tmp_path / "exported.duckdb", read_only=True) as exported,
    ):
        for name in shipped():
            assert ask(stored, name) == ask(exported, name), name


@pytest.mark.slow
def test_runs_of_a_lake_and_of_a_file_come_together(
    demonstration_lake: Path, own_demonstration: Path, tmp_path: Path
) -> None:
    """As a comparison of a run in a lake with dumps needs them."""
    with open_to_read(f"lake:{demonstration_lake}") as connection:
        [[run]] = connection.execute("SELECT max(run_id) FROM runs WHERE has_ranges").fetchall()
        [[rows]] = connection.execute("SELECT count(*) FROM ranges WHERE run_id = $1", [run]).fetchall()
    both = tmp_path / "both.duckdb"
    stored, filed = f"lake:{demonstration_lake}", str(own_demonstration)
    gather(str(both), [Source(stored, (run,)), Source(filed, (1,), run)])
    with duckdb.connect(str(both), read_only=True) as connection:
        found = connection.execute("SELECT run_id, count(*) FROM ranges GROUP BY ALL ORDER BY 1").fetchall()
        runs = connection.execute("SELECT run_id FROM runs ORDER BY 1").fetchall()
    assert found[0] == (run, rows)
    assert runs == [(run,), (run + 1,)]


def test_a_table_that_a_query_names_twice_is_not_copied(in_lake: duckdb.DuckDBPyConnection) -> None:
    """Each use reads the columns that it needs, and no other."""
    row = in_lake.execute(
        "EXPLAIN (FORMAT json) SELECT count(*)"
        " FROM (SELECT run_id, max(size_bytes) FROM values GROUP BY run_id)"
        " JOIN (SELECT run_id, count(DISTINCT opcode) FROM values GROUP BY run_id) USING (run_id)"
    ).fetchone()
    assert row is not None
    assert "READ_PARQUET" in row[1]
    assert '"CTE' not in row[1]
