"""Saved queries stay fast as the database grows: no join multiplies, and a large database answers at once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest.query.blocks import create_temporary
from ingest.query.catalog import shipped
from ingest.query.run import bind
from ingest.store.database import open_database
from tests.query_databases import load_demonstration

# A query that needs a value of its own to do its work, besides its defaults.
MORE_VALUES: dict[str, dict[str, str]] = {
    "peak_growth": {"before": "batch=8", "after": "batch=32"},
    "buffer_changes": {"before": "set=devices", "after": "set=devices"},
    "largest_live_out": {"by": "tiling"},
    "in_place": {"verdict": "copied"},
    "donation": {"status": "missed"},
}


def multiply(connection: duckdb.DuckDBPyConnection, copies: int) -> None:
    """Repeat every run `copies` times under new ids, in the order of their ids as imports append them."""
    tables = [
        name
        for (name,) in connection.execute(
            "SELECT table_name FROM duckdb_columns() WHERE column_name = 'run_id' AND schema_name = 'main' "
            "AND NOT internal AND table_name IN (SELECT table_name FROM duckdb_tables())"
        ).fetchall()
    ]
    for table in tables:
        connection.execute(
            f'INSERT INTO "{table}" SELECT t.* REPLACE (t.run_id + 1000 * c.range AS run_id) '
            f'FROM "{table}" AS t, range(1, {copies}) AS c ORDER BY c.range, t.run_id'
        )
    connection.execute("CHECKPOINT")


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The demonstration's runs 40 times: 1,200 runs."""
    path = load_demonstration(tmp_path_factory.mktemp("grown"))
    with open_database(path) as connection:
        multiply(connection, 40)
        yield connection


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """More than 5,000 runs and a million values."""
    path = load_demonstration(tmp_path_factory.mktemp("large"))
    with open_database(path) as connection:
        (values, runs) = connection.execute(
            'SELECT (SELECT count(*) FROM "values"), (SELECT count(*) FROM runs)'
        ).fetchone() or (0, 0)
        multiply(connection, max(1_000_000 // values, 5_000 // runs) + 1)
        yield connection


def most_rows(node: dict[str, Any]) -> int:
    """Return the greatest number of rows that an operator of a profile put out."""
    own = int(node.get("operator_cardinality", 0))
    return max([own, *(most_rows(child) for child in node.get("children", []))])


def profile(connection: duckdb.DuckDBPyConnection, name: str, folder: Path) -> int:
    query = shipped().load(name)
    create_temporary(connection)
    output = folder / "profile.json"
    connection.execute("PRAGMA enable_profiling = 'json'")
    connection.execute(f"PRAGMA profiling_output = '{output}'")
    try:
        connection.execute(query.sql, bind(query, dict(MORE_VALUES.get(name, {})))).fetchall()
    finally:
        connection.execute("PRAGMA disable_profiling")
    return most_rows(json.loads(output.read_text()))


@pytest.mark.parametrize("name", list(shipped()))
def test_no_join_multiplies(grown: duckdb.DuckDBPyConnection, name: str, tmp_path: Path) -> None:
    """No operator puts out more rows than three changes for each range, or twice the largest table."""
    sizes = [
        int((grown.execute(f'SELECT count(*) FROM "{table}"').fetchone() or (0,))[0])
        for table in ("values", "uses", "ranges", "allocations")
    ]
    assert profile(grown, name, tmp_path) <= max(2 * max(sizes), 3 * sizes[2])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(shipped()))
def test_a_large_database_answers_within_a_second(large: duckdb.DuckDBPyConnection, name: str) -> None:
    """5,000 runs and a million values: the best of three tries takes less than a second."""
    query = shipped().load(name)
    create_temporary(large)
    best = 10.0
    for _ in range(3):
        start = time.perf_counter()
        large.execute(query.sql, bind(query, dict(MORE_VALUES.get(name, {})))).fetchall()
        best = min(best, time.perf_counter() - start)
    assert best < 1.0
