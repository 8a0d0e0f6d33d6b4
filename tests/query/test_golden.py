"""Results over larger dumps, and the documentation made from them, are as committed."""

from __future__ import annotations

import duckdb
import pytest

from ingest.query.catalog import shipped
from ingest.query.docs import reference
from tests.regenerate import DOCS, golden_text, screen_text
from tests.support.query_databases import GOLDEN


@pytest.mark.parametrize("name", list(shipped()))
def test_result_is_as_committed(demonstration: duckdb.DuckDBPyConnection, name: str) -> None:
    """A query gives the result in tests/golden; `python -m tests.regenerate` writes it again."""
    expected = (GOLDEN / f"{name}.csv").read_text(encoding="utf-8")
    assert expected == golden_text(demonstration, shipped().load(name))


@pytest.mark.parametrize("name", list(shipped()))
def test_screens_are_as_committed(demonstration: duckdb.DuckDBPyConnection, name: str) -> None:
    """A query's table at 80, 120 and 200 columns is that of tests/golden/screens."""
    expected = (GOLDEN / "screens" / f"{name}.txt").read_text(encoding="utf-8")
    assert expected == screen_text(demonstration, shipped().load(name))


def test_no_golden_result_is_left_over() -> None:
    """Every golden result and every screen belongs to a query."""
    assert set(shipped()) == {path.stem for path in GOLDEN.glob("*.csv")}
    assert set(shipped()) == {path.stem for path in GOLDEN.glob("screens/*.txt")}


def test_the_reference_is_up_to_date(demonstration: duckdb.DuckDBPyConnection) -> None:
    """docs/queries.md says what the headers say; `python -m tests.regenerate` writes it again."""
    assert DOCS.read_text(encoding="utf-8") == reference(demonstration, shipped().load_all())


def test_every_query_shows_something_in_the_reference() -> None:
    """No entry of the reference has an empty result: its example finds rows."""
    results = {name: (GOLDEN / f"{name}.csv").read_text(encoding="utf-8") for name in shipped()}
    assert [name for name, text in results.items() if text.count("\n") < 2] == []
