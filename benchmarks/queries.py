"""Time the saved queries: with their defaults, and about one run of many."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from ingest.database.scope import narrowed
from ingest.lake.reading import open_to_read
from ingest.query.catalog import shipped
from ingest.query.comparison import is_comparison
from ingest.query.header import SavedQuery, Value
from ingest.query.run import bind, run_query
from ingest.query.selection import read_runs, select_runs


@dataclass(frozen=True)
class QueryTime:
    """How long a query took, seconds: at first, in the median of later runs, and in CPU time then."""

    name: str
    first: float
    median: float
    cpu: float
    rows: int


@dataclass(frozen=True)
class Counts:
    """What a database holds."""

    runs: int
    values: int


def time_queries(database: str | os.PathLike[str], repeat: int) -> tuple[Counts, list[QueryTime]]:
    """Run every saved query several times on two threads; slowest first."""
    with _open(database) as connection:
        timed = [_time(connection, query, {}, repeat) for query in shipped().load_all()]
        return _counts(connection), sorted(timed, key=lambda one: -one.median)


def time_one_run(database: str | os.PathLike[str], repeat: int) -> tuple[Counts, list[QueryTime]]:
    """Ask every question that can be asked of one run of the one in the middle; slowest first.

    A comparison is with the next run of the same module.
    """
    with _open(database) as connection:
        counts = _counts(connection)
        pair = connection.execute(
            "SELECT run_id, next_id FROM ("
            " SELECT run_id, lead(run_id) OVER (PARTITION BY module_name, backend ORDER BY run_id) AS next_id"
            " FROM runs QUALIFY row_number() OVER (ORDER BY run_id) <= $half)"
            " WHERE next_id IS NOT NULL ORDER BY run_id DESC LIMIT 1",
            {"half": counts.runs // 2},
        ).fetchone()
        assert pair is not None
        run, next_one = map(str, pair)
        timed = []
        for query in shipped().load_all():
            if query.reads_selected:
                sides = {"before": run, "after": next_one}
                timed.append(
                    _time(connection, query, sides if is_comparison(query) else {"run": run}, repeat)
                )
        return counts, sorted(timed, key=lambda one: -one.median)


def _open(database: str | os.PathLike[str]) -> duckdb.DuckDBPyConnection:
    """Open a file or a lake with two threads."""
    connection = open_to_read(database, unsafe=True)
    connection.execute("SET threads = 2")
    return connection


def _time(
    connection: duckdb.DuckDBPyConnection, query: SavedQuery, given: Mapping[str, Value], repeat: int
) -> QueryTime:
    """Ask a question as `xbuf query` does: look up the runs, then see no others."""
    seconds, cpu = [], []
    rows = 0
    for _ in range(repeat + 1):
        started, busy = time.perf_counter(), time.process_time()
        values = bind(query, given)
        selected = select_runs(connection, query, values)
        with narrowed(connection, read_runs(connection, query, values, selected)):
            rows = sum(1 for _ in run_query(connection, query, values).rows())
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - busy)
    return QueryTime(query.name, seconds[0], statistics.median(seconds[1:]), statistics.median(cpu[1:]), rows)


def _counts(connection: duckdb.DuckDBPyConnection) -> Counts:
    row = connection.execute('SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM "values")').fetchone()
    assert row is not None
    return Counts(*row)
