"""A question about some runs reads the row groups of these runs, however many others there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest.database.scope import FEW, narrowed
from ingest.database.tables import RUN_TABLES
from ingest.query.blocks import create_temporary
from ingest.query.catalog import shipped
from ingest.query.run import bind, run_query
from ingest.query.selection import read_runs, select_runs
from ingest.sql import literal
from tests.support.profiles import run_profiled, scans

_COPIES = 12
_ROW_GROUP = 2_048
"""Rows; the least that DuckDB takes."""
_LARGE = ("values", "uses", "positions", "ranges", "schedule")


@pytest.fixture(scope="module")
def many(
    demonstration_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The demonstration and copies of its runs, in row groups that hold a few runs each."""
    path = tmp_path_factory.mktemp("many") / "many.duckdb"
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{demonstration_file}' AS one (READ_ONLY)")
        connection.execute(f"ATTACH '{path}' AS many (ROW_GROUP_SIZE {_ROW_GROUP})")
        connection.execute("COPY FROM DATABASE one TO many")
        connection.execute("USE many")
        for table in ("runs", "run_labels", *RUN_TABLES):
            connection.execute(
                f'INSERT INTO "{table}" SELECT t.* REPLACE (t.run_id + 1000 * c.range AS run_id)'
                f' FROM one."{table}" AS t, range(1, {_COPIES}) AS c ORDER BY c.range, t.run_id'
            )
        connection.execute("CHECKPOINT many")
        create_temporary(connection)
        yield connection


@pytest.fixture(scope="module")
def run(many: duckdb.DuckDBPyConnection) -> int:
    """A run in the middle, with a few hundred values."""
    row = many.execute(
        'SELECT v.run_id FROM "values" AS v JOIN runs AS r USING (run_id)'
        " WHERE v.run_id BETWEEN 6000 AND 6999 AND r.has_ranges"
        " GROUP BY v.run_id HAVING count(*) < 1000 ORDER BY count(*) DESC LIMIT 1"
    ).fetchone()
    assert row is not None
    return int(row[0])


def scanned(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, Any], folder: Path
) -> list[tuple[str, int]]:
    """Run a statement; return the scans of large tables."""
    return [scan for scan in scans(run_profiled(connection, sql, values, folder)) if scan[0] in _LARGE]


def most_rows(connection: duckdb.DuckDBPyConnection, run: int, table: str) -> int:
    """Count the rows of the row groups that can hold rows of a run, and one on either side."""
    row = connection.execute(f'SELECT count(*) FROM many.main."{table}" WHERE run_id = ?', [run]).fetchone()
    assert row is not None
    return int(row[0]) + 2 * _ROW_GROUP


def whole(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    row = connection.execute(f'SELECT count(*) FROM many.main."{table}"').fetchone()
    assert row is not None
    return int(row[0])


def arguments(name: str, run: int) -> dict[str, str]:
    """Return what asks a query about one run, or compares it with its copy."""
    query = shipped().load(name)
    if query.parameter("before"):
        return {"before": str(run), "after": str(run + 1000)}
    return {"run": str(run)}


def check_narrowed(connection: duckdb.DuckDBPyConnection, name: str, run: int, folder: Path) -> None:
    """Compare the answer with that of the whole database, and look at what was read for it."""
    query = shipped().load(name)
    values = bind(query, dict(arguments(name, run)))
    expected = connection.execute(query.sql, values).fetchall()
    with narrowed(connection, select_runs(connection, query, values)):
        assert list(run_query(connection, query, values).rows()) == expected
        read = scanned(connection, query.sql, values, folder)
    runs = 1 + ("before" in arguments(name, run))
    assert [scan for scan in read if scan[1] > runs * most_rows(connection, run, scan[0])] == []


def test_tables_and_blocks_show_the_runs_of_the_scope_alone(
    many: duckdb.DuckDBPyConnection, run: int
) -> None:
    asked = [run, run + 1000]
    sql = "SELECT DISTINCT run_id FROM {} ORDER BY 1"
    expected = {
        table: [(one,) for one in asked if (one,) in many.execute(sql.format(f'"{table}"')).fetchall()]
        for table in ("runs", *_LARGE, "hlo_modules", "values_at_peak")
    }
    assert expected["values_at_peak"] == [(one,) for one in asked]
    with narrowed(many, asked):
        for table, runs in expected.items():
            assert many.execute(sql.format(f'"{table}"')).fetchall() == runs
    assert len(many.execute("SELECT DISTINCT run_id FROM runs").fetchall()) > FEW


def test_scope_ends_when_a_statement_fails(many: duckdb.DuckDBPyConnection, run: int) -> None:
    with pytest.raises(duckdb.Error), narrowed(many, [run]):
        many.execute("SELECT error('no')")
    assert many.execute("SELECT count(DISTINCT run_id) > 1 FROM runs").fetchone() == (True,)


@pytest.mark.parametrize(
    ("runs", "seen"), [([], 0), (None, 2), (range(FEW + 1), 2)], ids=["none", "any", "many"]
)
def test_scope_of_no_run_shows_none_and_of_many_or_any_run_shows_all(
    many: duckdb.DuckDBPyConnection, run: int, runs: list[int] | None, seen: int
) -> None:
    with narrowed(many, runs):
        found = many.execute("SELECT count(*) FROM runs WHERE run_id IN (?, ?)", [run, run + 1000]).fetchone()
    assert found == (seen,)


def test_profile_shows_what_is_read_without_a_scope(
    many: duckdb.DuckDBPyConnection, run: int, tmp_path: Path
) -> None:
    """What the tests below look at shows a question that reads everything."""
    sql = (
        'FROM (SELECT v.run_id, count(*) FROM "values" AS v GROUP BY v.run_id)'
        " WHERE run_id IN (SELECT r.run_id FROM selected_runs($run) AS r)"
    )
    read = scanned(many, sql, {"run": str(run)}, tmp_path)
    assert any(rows == whole(many, table) for table, rows in read)


@pytest.mark.parametrize("name", ["users_of", "live_at_peak", "shared_slots", "same_program", "padding"])
def test_question_about_one_run_reads_its_row_groups_alone(
    many: duckdb.DuckDBPyConnection, run: int, name: str, tmp_path: Path
) -> None:
    check_narrowed(many, name, run, tmp_path)


@pytest.mark.parametrize("name", ["users_of", "live_at_peak", "shared_slots"])
def test_macro_about_one_run_reads_its_row_groups_alone(
    many: duckdb.DuckDBPyConnection, run: int, name: str, tmp_path: Path
) -> None:
    read = scanned(many, f"FROM {name}(run := {run})", {}, tmp_path)
    assert read
    assert [scan for scan in read if scan[1] > most_rows(many, run, scan[0])] == []


@pytest.mark.slow
def test_question_about_the_highest_peaks_reads_the_row_groups_of_these_runs_alone(
    many: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """Also where nobody names them: `savings` looks at so many runs and is asked of all."""
    query = shipped().load("savings")
    values = bind(query, {"runs": 1})
    expected = many.execute(query.sql, values).fetchall()
    runs = read_runs(many, query, values, select_runs(many, query, values))
    assert runs is not None
    assert {row[0] for row in expected} == set(runs)
    with narrowed(many, runs):
        assert list(run_query(many, query, values).rows()) == expected
        read = scanned(many, query.sql, values, tmp_path)
    assert [scan for scan in read if scan[1] > most_rows(many, runs[0], scan[0])] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [query.name for query in shipped().load_all() if query.reads_selected])
def test_every_question_about_one_run_is_answered_alike_from_its_row_groups(
    many: duckdb.DuckDBPyConnection, run: int, name: str, tmp_path: Path
) -> None:
    check_narrowed(many, name, run, tmp_path)
    query = shipped().load(name)
    values = bind(query, dict(arguments(name, run)))
    text = ", ".join(f"{key} := {literal(value)}" for key, value in arguments(name, run).items())
    assert many.execute(f"FROM {name}({text})").fetchall() == many.execute(query.sql, values).fetchall()
