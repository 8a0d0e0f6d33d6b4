"""The saved queries inside a database, for any DuckDB shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.query import install
from ingest.query.blocks import blocks_of, read_blocks
from ingest.query.catalog import shipped
from ingest.query.header import SavedQuery, Value
from ingest.query.install import install_queries
from ingest.query.run import bind, run_query
from ingest.sql import literal
from ingest.version import VERSION
from tests.support.query_databases import one_of_each_parameter
from tests.support.shells import duckdb_program

pytestmark = pytest.mark.usefixtures("macros")


@pytest.mark.parametrize("how", ["chosen", pytest.param("defaults", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", one_of_each_parameter())
def test_a_macro_answers_like_the_query(
    demonstration: duckdb.DuckDBPyConnection, name: str, how: str
) -> None:
    """FROM name() gives the rows of `xbuf query name`, with other values as with all defaults."""
    query = shipped().load(name)
    given: dict[str, Value] = {}
    if how == "chosen":
        given = {"module": "jit_*"} | ({"top": 3} if query.parameter("top") else {})
    values = bind(query, given)
    expected = list(run_query(demonstration, query, values).rows())
    arguments = ", ".join(f"{key} := {literal(value)}" for key, value in given.items())
    assert expected == demonstration.execute(f"FROM {name}({arguments})").fetchall()


@pytest.fixture(scope="module")
def described(demonstration: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[str, str]]]:
    """Names and types of the columns of every macro, by its name."""
    return {
        name: [(str(row[0]), str(row[1])) for row in demonstration.sql(f"DESCRIBE FROM {name}()").fetchall()]
        for name in shipped()
    }


def test_macros_and_queries_have_the_same_columns(described: dict[str, list[tuple[str, str]]]) -> None:
    """The columns of a macro are those of the header, and so are their types."""
    assert described == {
        query.name: [(column.name, column.type) for column in query.columns] for query in shipped().load_all()
    }


def test_saved_queries_list_every_query(demonstration: duckdb.DuckDBPyConnection) -> None:
    """With its question, its parameters and an example to paste, which calls its macro."""
    rows = demonstration.execute("SELECT name, question, parameters, example FROM saved_queries").fetchall()
    assert [row[0] for row in sorted(rows)] == list(shipped())
    for name, question, parameters, example in rows:
        assert question == shipped().load(name).question
        assert "module VARCHAR := NULL" in parameters
        assert example.startswith(f"FROM {name}(")
    [example] = [example for name, *_, example in rows if name == "largest_live_out"]
    assert "top := " in example
    assert demonstration.execute(example).fetchall()


@pytest.mark.slow
def test_the_example_of_every_query_runs(demonstration: duckdb.DuckDBPyConnection) -> None:
    """As it is pasted from saved_queries."""
    examples = demonstration.execute("SELECT example FROM saved_queries").fetchall()
    assert len(examples) == len(list(shipped()))
    for (example,) in examples:
        demonstration.execute(example)


def test_a_run_may_be_given_as_a_number(demonstration: duckdb.DuckDBPyConnection) -> None:
    """In SQL, run := 5 and run := '5,6' both work."""
    assert demonstration.execute("SELECT DISTINCT run_id FROM live_at_peak(run := 5)").fetchall() == [(5,)]
    rows = demonstration.execute("SELECT DISTINCT run_id FROM live_at_peak(run := '5, 6', top := NULL)")
    assert sorted(rows.fetchall()) == [(5,), (6,)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            "memory_by_source(by := 'function')",
            "by := 'function' is none of 'line', 'file', 'op_name', 'scope'",
        ),
        ("donation(status := 'misssed')", "status := 'misssed' is none of 'all', 'honoured'"),
        ("donation(status := NULL)", "status := NULL is none of"),
        ("live_at_peak(run := 'abc')", "run := 'abc' is no run_id"),
        ("live_at_peak(run := '5;6')", "run := '5;6' is no run_id"),
        ("live_at_peak(run := [5])", "is no run_id"),
        ("live_at_peak(run := 999)", "run := '999' is no run of this database"),
        ("buffer_changes(before := 1, after := 2, run := '998, 999')", "is no run of this database"),
        ("live_at_peak(top := -1)", "negative"),
        ("peak_growth(before := 'jax=9')", "before := 'jax=9' matches none of the selected runs"),
        ("buffer_changes(after := '/no/*')", "after := '/no/*' matches none of the selected runs"),
        ("peak_growth(run := 5)", "before := NULL matches none of the selected runs"),
    ],
)
def test_a_wrong_argument_is_an_error(
    demonstration: duckdb.DuckDBPyConnection, call: str, message: str
) -> None:
    """A shell is told what the argument can be, also where the query would read nothing."""
    with pytest.raises(duckdb.Error, match=re.escape(message)):
        demonstration.execute(f"FROM {call}").fetchall()


def test_a_wrong_argument_is_an_error_in_an_empty_database(connection: duckdb.DuckDBPyConnection) -> None:
    """The check does not depend on rows; a comparison of no runs at all is only empty."""
    with pytest.raises(duckdb.Error, match="is none of 'line'"):
        connection.execute("FROM memory_by_source(by := 'function')").fetchall()
    assert connection.execute("FROM peak_growth(before := 'jax=9')").fetchall() == []


def test_saved_queries_list_the_choices(demonstration: duckdb.DuckDBPyConnection) -> None:
    """The choices stand behind the default, as in the header of the file."""
    row = demonstration.execute("SELECT parameters FROM saved_queries WHERE name = 'in_place'").fetchone()
    assert row is not None
    assert "verdict VARCHAR := 'all' in (all, in place, copied)" in row[0]


def test_no_column_is_hugeint(
    demonstration: duckdb.DuckDBPyConnection, described: dict[str, list[tuple[str, str]]]
) -> None:
    """Sums of bytes are BIGINT: pandas makes floats of HUGEINT."""
    wide = [
        (name, column) for name, columns in described.items() for column in columns if "HUGEINT" in column[1]
    ]
    wide += demonstration.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns()"
        " WHERE database_name = current_database() AND contains(data_type, 'HUGEINT')"
    ).fetchall()
    assert wide == []


def test_every_result_column_is_described(
    demonstration: duckdb.DuckDBPyConnection, described: dict[str, list[tuple[str, str]]]
) -> None:
    """DuckDB has no comments for columns of macros: `FROM query_columns` has them, with unit and type."""
    listed = demonstration.execute(
        "SELECT query, list((column_name, data_type) ORDER BY position) FROM query_columns GROUP BY query"
    ).fetchall()
    assert dict(listed) == described
    lacking = "SELECT count(*) FROM query_columns WHERE coalesce(comment, '') = ''"
    assert demonstration.execute(lacking).fetchall() == [(0,)]


def test_labels_are_a_map(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Of every run, by key; empty for a run without labels."""
    found = demonstration.execute("SELECT run_id, labels FROM run_summary").fetchall()
    pairs = demonstration.execute("SELECT run_id, key, value FROM run_labels").fetchall()
    assert {(run, *pair) for run, labels in found for pair in labels.items()} == set(pairs)
    batch = demonstration.execute("SELECT DISTINCT labels['batch'] FROM run_summary ORDER BY 1").fetchall()
    assert batch == [("16",), ("32",), ("8",), (None,)]


def test_blocks_are_commented(demonstration: duckdb.DuckDBPyConnection) -> None:
    """A shell's DESCRIBE and duckdb_views() explain the views and each of their columns."""
    views = dict(
        demonstration.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT temporary").fetchall()
    )
    for block in read_blocks():
        if block.kind == "VIEW":
            assert views[block.name] == f"xbuf: {block.title}"
            bare = demonstration.execute(
                "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND comment IS NULL "
                "AND database_name = current_database()",
                [block.name],
            ).fetchall()
            assert bare == []


def test_a_column_with_the_name_of_a_macro_is_no_use_of_it() -> None:
    """`saved_bytes` stands for twenty blocks, and is a column of `shared_slots`."""
    sql = 'SELECT s.saved_bytes, "value_name" (s.a, s.b) FROM live_bytes AS s'
    assert {block.name for block in blocks_of(sql)} == {"value_name", "live_bytes"}


def test_installing_again_does_nothing(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same files and version nothing is made: the database is left alone."""
    before = _definitions(connection)
    monkeypatch.setattr("ingest.query.install._create", lambda *_: pytest.fail("made again"))
    install_queries(connection)
    assert connection.execute("SELECT count(*) FROM saved_queries").fetchall() == [(len(list(shipped())),)]
    assert before == _definitions(connection)


@pytest.fixture
def few_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of four queries that stand for all: all take 0.25 s to install."""
    folder = tmp_path / "queries"
    folder.mkdir()
    for name in ("padding", "recent_runs", "retraces", "thread_local"):
        shutil.copy(shipped().paths[name], folder)
    use_queries(folder, monkeypatch)
    return folder


def use_queries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("digest", "catalog"):
        monkeypatch.setattr(f"ingest.query.{module}.queries_dir", lambda: folder)


def test_a_new_version_replaces_the_old_queries(
    bare_database: Path, few_queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed query is refreshed, a removed one goes, a new one comes."""
    folder = tmp_path / "newer"
    shutil.copytree(few_queries, folder)
    (folder / "padding.sql").unlink()
    text = (folder / "retraces.sql").read_text()
    (folder / "retraces.sql").write_text(text.replace("-- title: Retraces", "-- title: Changed"))
    (folder / "again.sql").write_text(text.replace("retraces", "again"))
    with open_database(bare_database) as connection:
        install_queries(connection)
        connection.execute("FROM padding()")
        use_queries(folder, monkeypatch)
        install_queries(connection)
        names = dict(connection.execute("SELECT name, title FROM saved_queries").fetchall())
        assert "padding" not in names
        assert names["retraces"] == "Changed"
        connection.execute("FROM again()")
        with pytest.raises(duckdb.CatalogException):
            connection.execute("FROM padding()")


@pytest.mark.usefixtures("few_queries")
def test_a_failed_installation_leaves_the_earlier_one(
    bare_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All queries change together or none does."""
    real = install._macros
    calls = []

    def failing(query: SavedQuery, tables: Collection[str]) -> object:
        calls.append(query.name)
        return ["SELECT error('disk full')"] if len(calls) == 3 else real(query, tables)

    with open_database(bare_database) as connection:
        install_queries(connection)
        before = _definitions(connection)
        monkeypatch.setattr(install, "_macros", failing)
        monkeypatch.setattr("ingest.query.digest.VERSION", "2.0")
        with pytest.raises(duckdb.Error, match="disk full"):
            install_queries(connection)
        assert before == _definitions(connection)
        assert connection.execute("SELECT DISTINCT tool_version FROM saved_queries").fetchall() == [
            (VERSION,)
        ]
        connection.execute("FROM retraces()")


@pytest.mark.usefixtures("few_queries")
def test_what_users_made_is_left_alone(bare_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A macro or view of the user's own stays, also under the name of a query or block."""
    with open_database(bare_database) as connection:
        connection.execute("CREATE MACRO padding() AS TABLE SELECT 'mine' AS whose")
        connection.execute("CREATE VIEW live_bytes AS SELECT 'mine' AS whose")
        connection.execute("CREATE MACRO own(x) AS x + 1")
        connection.execute("CREATE VIEW own_view AS SELECT 1 AS one")
        install_queries(connection)
        connection.execute("CREATE OR REPLACE MACRO retraces() AS TABLE SELECT 'mine' AS whose")
        monkeypatch.setattr("ingest.query.digest.VERSION", "2.0")
        install_queries(connection)
        for name in ("padding()", "live_bytes", "retraces()"):
            assert connection.execute(f"SELECT whose FROM {name}").fetchall() == [("mine",)]
        assert connection.execute("SELECT own(1), one FROM own_view").fetchall() == [(2, 1)]
        listed = {name for (name,) in connection.execute("SELECT name FROM saved_queries").fetchall()}
        assert listed == set(shipped()) - {"padding", "retraces"}


def test_an_attached_database_answers_too(database: Path) -> None:
    """After ATTACH and USE, as for a refreshed snapshot, the macros find their tables."""
    shell = duckdb.connect()
    shell.execute(f"ATTACH {literal(str(database))} AS x (READ_ONLY)")
    shell.execute("USE x")
    for name in shipped():
        assert shell.execute(f"FROM {name}() LIMIT 0").fetchall() == []
    assert shell.execute("FROM run_summary").fetchall() == []


@pytest.mark.parametrize(
    "names",
    [("largest_live_out", "recent_runs"), pytest.param(tuple(shipped()), marks=pytest.mark.slow, id="all")],
)
def test_a_plain_shell_answers(database: Path, names: tuple[str, ...]) -> None:
    """The duckdb program runs the macros, and .read runs the query files, on a read-only database."""
    commands = ["FROM largest_live_out(top := 5, color := 1);", "FROM saved_queries;"]
    commands += [f".read {shipped().paths[name]}" for name in names]
    done = subprocess.run(
        [duckdb_program(), "-readonly", "-bail", "-csv", str(database)],
        input="\n".join(commands),
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(database.parent)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "largest_live_out" in done.stdout


def _definitions(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT schema_name, function_name, macro_definition, comment FROM duckdb_functions() "
        "WHERE NOT internal "
        "UNION ALL SELECT schema_name, view_name, sql, comment FROM duckdb_views() WHERE NOT internal "
        "UNION ALL SELECT name, title, question, sha256 FROM saved_queries ORDER BY ALL"
    ).fetchall()
