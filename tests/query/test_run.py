"""Running a query: values of parameters, narrowing, and why a result is empty."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.errors import UsageError
from ingest.query.blocks import execute_with_blocks
from ingest.query.catalog import shipped
from ingest.query.comparison import describe_comparison
from ingest.query.header import Parameter, Value, parse_query
from ingest.query.run import bind, convert, run_query, run_sql, sql_text, why_empty
from tests.support.query_databases import ask, one_of_each_parameter

SIZE = Parameter("least", "BIGINT", 0, "smallest", unit="bytes")
WHOLE = Parameter("top", "BIGINT", 20, "rows")
NUMBER = Parameter("gib", "DOUBLE", 1.0, "size")
FLAG = Parameter("peaks", "BOOLEAN", False, "peaks")
CHOICE = Parameter("by", "VARCHAR", "size", "order", choices=("size", "name"))


@pytest.mark.parametrize(
    ("parameter", "text", "expected"),
    [
        (SIZE, "4096", 4096),
        (SIZE, "16KiB", 16384),
        (SIZE, "1.5 GiB", 1610612736),
        (SIZE, "2MB", 2000000),
        (SIZE, "7B", 7),
        (WHOLE, "7", 7),
        (WHOLE, "null", None),
        (NUMBER, "0.5", 0.5),
        (FLAG, "True", True),
        (CHOICE, "name", "name"),
        (Parameter("key", "VARCHAR", None, "label"), "NULL", None),
    ],
)
def test_a_text_becomes_a_value(parameter: Parameter, text: str, expected: Value) -> None:
    """Each type reads its own notation; null is NULL for all but choices."""
    assert convert(parameter, text) == expected


@pytest.mark.parametrize(
    ("parameter", "text", "reason"),
    [
        (SIZE, "big", "'big' is no size"),
        (WHOLE, "1.5", "'1.5' is no whole number"),
        (WHOLE, "-1", "is negative"),
        (WHOLE, str(2**63), "does not fit in 64 bits"),
        (NUMBER, "x", "'x' is no number"),
        (FLAG, "yes", "neither true nor false"),
        (CHOICE, "nmae", "did you mean name?"),
        (CHOICE, "NULL", "'NULL' is none of size, name"),
    ],
)
def test_a_wrong_value_is_told(parameter: Parameter, text: str, reason: str) -> None:
    """The error names the option, the text and what is expected."""
    with pytest.raises(UsageError, match=reason) as caught:
        convert(parameter, text)
    assert str(caught.value).startswith(f"--{parameter.name}: ")


def test_an_unknown_parameter_is_told() -> None:
    """bind() refuses what the query does not have."""
    with pytest.raises(UsageError, match="no parameter 'tpo'; did you mean top"):
        bind(shipped().load("padding"), {"tpo": 3})


def test_a_wrong_choice_is_told_to_callers_too() -> None:
    """bind() checks choices as the command line does."""
    with pytest.raises(UsageError, match="status: None is none of all, honoured"):
        bind(shipped().load("donation"), {"status": None})


BY_RUN = [query.name for query in shipped().load_all() if "run_id" in {c.name for c in query.columns}]
"""The queries whose rows are of one run each."""


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"module": "jit_st?p", "label": "batch=1*"}, id="label and module"),
        pytest.param({"run": "10"}, id="run", marks=pytest.mark.slow),
        pytest.param({"module": "nothing"}, id="nothing", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", BY_RUN)
def test_every_query_is_narrowed_alike(
    demonstration: duckdb.DuckDBPyConnection, name: str, given: dict[str, Value]
) -> None:
    """No query shows a run that --run, --label or --module leaves out."""
    inside = demonstration.execute("SELECT run_id FROM run_labels WHERE value = '16'").fetchall()
    assert inside == [(10,)]
    expected = [] if given.get("module") == "nothing" else inside
    assert set(ask(demonstration, name, "run_id", **given)) <= set(expected)


def test_several_labels_must_all_hold(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Labels narrow together, and a label without value asks for its key."""

    def runs(label: str) -> int:
        row = demonstration.execute("SELECT count(*) FROM selected_runs(label := ?)", [label]).fetchone()
        return int(row[0]) if row else -1

    assert [runs("batch=8"), runs("batch=*"), runs("batch"), runs("batch=8,jax=0.6.2"), runs("x=1")] == [
        1,
        3,
        3,
        0,
        0,
    ]


@pytest.mark.parametrize("name", one_of_each_parameter())
def test_the_printed_sql_gives_the_same_rows(demonstration: duckdb.DuckDBPyConnection, name: str) -> None:
    """--sql prints what runs, with values in place of parameters."""
    query = shipped().load(name)
    values = bind(query, {"module": "jit_step"})
    expected = list(run_query(demonstration, query, values).rows())
    assert expected == demonstration.execute(sql_text(query, values)).fetchall()


def test_a_value_never_becomes_sql(demonstration: duckdb.DuckDBPyConnection) -> None:
    """A text with quotes is a text, also in the printed SQL."""
    query = shipped().load("users_of")
    values = bind(query, {"value": "x' OR true --"})
    assert "'x'' OR true --'" in sql_text(query, values)
    assert demonstration.execute(sql_text(query, values)).fetchall() == []


def test_an_empty_database_says_so(bare_database: Path) -> None:
    """Every query runs without runs, and says why there is nothing; no macro of the database is used."""
    with open_database(bare_database, read_only=True) as connection:
        for query in shipped().load_all():
            values = bind(query, {})
            assert list(run_query(connection, query, values).rows()) == []
            assert "holds no runs yet" in why_empty(connection, query, values)


def test_a_query_gets_the_blocks_that_it_uses(bare_database: Path) -> None:
    """Those that it names, in any spelling, with those that these use."""
    made = (
        "SELECT function_name FROM duckdb_functions() WHERE database_name = 'temp'"
        " UNION SELECT view_name FROM duckdb_views() WHERE database_name = 'temp' AND NOT internal ORDER BY 1"
    )
    with open_database(bare_database, read_only=True) as connection:
        assert execute_with_blocks(connection, 'FROM "Selected_Runs"()').fetchall() == []
        assert connection.execute(made).fetchall() == [("selected_runs",)]
        assert execute_with_blocks(connection, "FROM run_pairs('1', '2')").fetchall() == []
        assert ("compared_runs",) in connection.execute(made).fetchall()


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("padding", {"module": "jit_stpe"}, "no run matches --module jit_stpe; did you mean jit_step"),
        ("padding", {"label": "batch=9"}, "no run matches --label batch=9; did you mean batch="),
        ("padding", {"run": "9999"}, "no run matches --run 9999"),
        ("largest_live_out", {"color": 77}, "no row matches"),
        (
            "peak_growth",
            {"before": "jax=9"},
            "--before jax=9 matches none of the 29 selected runs; a side is",
        ),
        ("peak_growth", {"run": "5"}, "imports before 1 matches none of the 1 selected runs"),
        (
            "buffer_changes",
            {"before": "6", "after": "1,2"},
            "no row: compared 1 run (--before 6) with 2 runs (--after 1,2); 0 modules with the same name",
        ),
    ],
)
def test_an_empty_result_is_explained(
    demonstration: duckdb.DuckDBPyConnection, name: str, values: dict[str, Value], reason: str
) -> None:
    """The reason is what the reader can change."""
    query = shipped().load(name)
    bound = bind(query, values)
    assert list(run_query(demonstration, query, bound).rows()) == []
    assert reason in why_empty(demonstration, query, bound)


def test_a_comparison_says_what_it_compared(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Sides that are not given are imports; other queries compare nothing."""
    query = shipped().load("peak_growth")
    run_query(demonstration, query, bind(query, {}))
    assert describe_comparison(demonstration, query, bind(query, {})) == (
        "compared 28 runs (imports before 9) with 1 run (import 9); "
        "1 module with the same name and backend on both sides"
    )
    other = shipped().load("padding")
    assert describe_comparison(demonstration, other, bind(other, {})) is None


def test_a_missing_section_is_told(demonstration: duckdb.DuckDBPyConnection) -> None:
    """A query that needs live ranges says when no selected dump has them."""
    row = demonstration.execute("SELECT min(run_id) FROM runs WHERE NOT has_ranges").fetchone()
    assert row is not None
    query = shipped().load("live_at_peak")
    values = bind(query, {"run": str(row[0])})
    assert list(run_query(demonstration, query, values).rows()) == []
    assert why_empty(demonstration, query, values) == (
        "none of the 1 selected runs has live ranges: their dumps lack them"
    )


def test_a_header_that_tells_other_columns_is_refused(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Names and types of the columns are checked when a user's query runs."""
    text = "-- title: T\n-- question: Q?\n-- column {}: c\nSELECT run_id FROM runs"
    path = Path("/q/mine.sql")
    for column, reason in [
        ("run BIGINT", "the header has columns run; the statement gives run_id"),
        ("run_id VARCHAR", "is BIGINT"),
    ]:
        query = parse_query(text.format(column), path)
        with pytest.raises(UsageError, match=reason):
            run_query(demonstration, query, bind(query, {}))


def test_a_statement_that_duckdb_refuses_is_one_line(demonstration: duckdb.DuckDBPyConnection) -> None:
    """DuckDB's message is kept, its picture of the statement is not."""
    with pytest.raises(UsageError, match="Catalog Error: Table with name nothing does not exist") as caught:
        run_sql(demonstration, "SELECT *\nFROM nothing")
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="2 statements given"):
        run_sql(demonstration, "SELECT 1; SELECT 2")
