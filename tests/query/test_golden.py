"""Results over larger dumps, and the documentation made from them, are as committed."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.query.catalog import shipped
from ingest.query.cells import display_width
from ingest.query.formats import write_text
from ingest.query.result import Listed
from tests.regenerate import DOCS, golden_result, golden_text, screen_text
from tests.support.queries_page import reference
from tests.support.query_databases import GOLDEN, one_of_each_parameter


@pytest.fixture(scope="module")
def result(demonstration: duckdb.DuckDBPyConnection) -> Callable[[str], Listed]:
    """Run a query, given its name, the first time that a test asks for its result."""
    return cache(lambda name: golden_result(demonstration, shipped().load(name)))


@pytest.mark.parametrize("name", list(shipped()))
def test_result_is_as_committed(result: Callable[[str], Listed], name: str) -> None:
    """A query gives the result in tests/golden; `python -m tests.regenerate` writes it again."""
    expected = (GOLDEN / f"{name}.csv").read_text(encoding="utf-8")
    assert expected == golden_text(result(name))


@pytest.mark.slow
def test_results_do_not_depend_on_threads(own_demonstration: Path) -> None:
    """Several threads of DuckDB give the rows of one, in the same order."""
    with open_database(own_demonstration, read_only=True, threads=4) as connection:
        for query in shipped().load_all():
            expected = (GOLDEN / f"{query.name}.csv").read_text(encoding="utf-8")
            assert expected == golden_text(golden_result(connection, query)), query.name


@pytest.mark.parametrize("name", list(shipped()))
def test_no_table_is_wider_than_the_terminal(result: Callable[[str], Listed], name: str) -> None:
    """Whatever a query gives, no line is wider than the terminal, and each column is shown, said or named."""
    listed = result(name)
    for width in (20, 40, 60, 80, 120, 200):
        out = io.StringIO()
        written = write_text(listed, "table", out, width)
        lines = out.getvalue().splitlines()
        [rule] = [line for line in lines if set(line) <= {"-", " "}]
        columns = len(rule.split())
        assert max(display_width(line) for line in lines) <= width or columns == 1
        assert columns + len(written.left_out) + len(written.said) == len(listed.columns)


@pytest.mark.parametrize("name", one_of_each_parameter())
def test_screens_are_as_committed(demonstration: duckdb.DuckDBPyConnection, name: str) -> None:
    """A query's table at 80, 120 and 200 columns is that of tests/golden/screens."""
    expected = (GOLDEN / "screens" / f"{name}.txt").read_text(encoding="utf-8")
    assert expected == screen_text(demonstration, shipped().load(name))


def test_no_golden_result_is_left_over() -> None:
    """Every golden result and every screen belongs to a query."""
    assert set(shipped()) == {path.stem for path in GOLDEN.glob("*.csv")}
    assert set(shipped()) == {path.stem for path in GOLDEN.glob("screens/*.txt")}


@pytest.mark.slow
def test_the_reference_is_up_to_date(demonstration: duckdb.DuckDBPyConnection) -> None:
    """docs/queries.md says what the headers say; `python -m tests.regenerate` writes it again."""
    assert DOCS.read_text(encoding="utf-8") == reference(demonstration, shipped().load_all())


def test_the_reference_has_what_a_query_says(demonstration: duckdb.DuckDBPyConnection) -> None:
    """The introduction, and the entries of three queries: with a note, with choices, with units."""
    queries = [shipped().load(name) for name in ("donation", "memory_by_role", "padding")]
    expected, page = (
        text.split("\n## ") for text in (reference(demonstration, queries), DOCS.read_text(encoding="utf-8"))
    )
    introduction = len(expected) - len(queries) - 1  # whose last part lists the queries
    assert expected[:introduction] == page[:introduction]
    assert {part.rstrip() for part in expected[-len(queries) :]} <= {part.rstrip() for part in page}


def test_every_query_shows_something_in_the_reference() -> None:
    """No entry of the reference has an empty result: its example finds rows."""
    results = {name: (GOLDEN / f"{name}.csv").read_text(encoding="utf-8") for name in shipped()}
    assert [name for name, text in results.items() if text.count("\n") < 2] == []


def test_a_narrow_table_says_whose_a_row_is() -> None:
    """Run or module are among the four columns that get room first, however long names are."""
    named = {one.name: one.key for one in shipped().load_all() if "module" in {c.name for c in one.columns}}
    assert "diff" in named
    assert not [name for name, key in named.items() if not {"run_id", "module"} & set(key[:4])]
