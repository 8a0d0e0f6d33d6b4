"""Time the saved queries with their defaults."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from ingest.database.connect import open_database
from ingest.query.catalog import shipped
from ingest.query.run import bind, run_query


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


def time_queries(database: Path, repeat: int) -> tuple[Counts, list[QueryTime]]:
    """Run every saved query several times on two threads; slowest first."""
    timed = []
    with open_database(database, read_only=True, threads=2) as connection:
        row = connection.execute(
            'SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM "values")'
        ).fetchone()
        assert row is not None
        for query in shipped().load_all():
            seconds, cpu = [], []
            rows = 0
            for _ in range(repeat + 1):
                started, busy = time.perf_counter(), time.process_time()
                rows = sum(1 for _ in run_query(connection, query, bind(query, {})).rows())
                seconds.append(time.perf_counter() - started)
                cpu.append(time.process_time() - busy)
            later = statistics.median(seconds[1:]), statistics.median(cpu[1:])
            timed.append(QueryTime(query.name, seconds[0], *later, rows))
    return Counts(*row), sorted(timed, key=lambda one: -one.median)
