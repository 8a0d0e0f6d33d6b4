"""Compare what two databases hold, table by table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from ingest.database.connect import open_database
from ingest.sql import literal

_NUMBERED_ANEW = {
    "runs": ("run_id", "import_id", "ingested_at"),
    "imports": ("import_id", "started_at", "finished_at"),
    "rejects": ("import_id",),
}
"""Columns that differ between two imports of the same dumps."""
_OF_IMPORTS = ("imports", "rejects")
_NOT_CONTENT = ("alembic_version", "saved_queries")


Run = tuple[str, str, str]
"""Directory, stem and content: by them a run is known in any database."""
Sum = tuple[int, int]
"""How many rows, and the sum of their hashes."""


@dataclass(frozen=True)
class Content:
    """What a database held when it was read, in sums that take 0.1 s to make.

    Attributes:
        path: of the database.
        rows: of each table by run; of one without runs under None.
        columns: of each table.
        orphans: how many rows of each table belong to a run or import that is not there.
    """

    path: Path
    rows: dict[str, dict[Run | None, Sum]]
    columns: dict[str, list[str]]
    orphans: dict[str, int]

    @property
    def runs(self) -> set[Run | None]:
        """The runs that are there."""
        return set(self.rows["runs"])


def content(path: Path) -> Content:
    """Read what a database holds; numbers of runs and imports and the moments of imports do not count."""
    with duckdb.connect(config={"threads": 1}) as plain:
        plain.execute(f"ATTACH {literal(path)} AS a (READ_ONLY)")
        columns = _columns(plain, "a")
        known = "SELECT run_id, dump_dir, stem, content_sha256 FROM a.runs"
        runs: dict[int | None, Run] = {run: (one, two, three) for run, one, two, three in _all(plain, known)}
        sums = {name: _sums(name, kept) for name, kept in columns.items() if name not in _NOT_CONTENT}
        rows: dict[str, dict[Run | None, Sum]] = {name: {} for name in sums}
        lost: Counter[str] = Counter()
        for table, run, count, hashes in _all(plain, " UNION ALL ".join(sums.values())):
            if run is not None and run not in runs:
                lost[table] += count
                continue
            before = rows[table].get(runs.get(run), (0, 0))
            rows[table][runs.get(run)] = (before[0] + count, before[1] + int(hashes))
        for table in ("runs", "rejects"):
            lost[table] += _count(plain, f"FROM a.{table} ANTI JOIN a.imports USING (import_id)")
        return Content(path, rows, columns, dict(+lost))


def differences(
    first: Path | Content, second: Path | Content, *, with_imports: bool = False, runs_of_first: bool = False
) -> dict[str, tuple[int, int]]:
    """Return how many rows each table has in only the first or only the second database.

    Args:
        first, second: databases, or what they held: then they must not have changed since.
        with_imports: the history of imports and their rejects counts too.
        runs_of_first: of the second, only runs that the first has count.
    """
    first, second = (one if isinstance(one, Content) else content(one) for one in (first, second))
    assert first.columns == second.columns
    unlike = []
    for table, rows in first.rows.items():
        if table not in _OF_IMPORTS or with_imports:
            others = second.rows[table]
            if runs_of_first:
                others = {run: found for run, found in others.items() if run in first.runs or run is None}
            if rows != others:
                unlike.append(table)
    return _counted(first, second, unlike, runs_of_first) if unlike else {}


def rows(database: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return what a query finds in a database file."""
    with open_database(database, read_only=True) as connection:
        return connection.execute(sql).fetchall()


def orphans(database: Path | Content) -> dict[str, int]:
    """Return how many rows of each table belong to a run or import that is not there."""
    return (database if isinstance(database, Content) else content(database)).orphans


def _counted(
    first: Content, second: Content, tables: list[str], runs_of_first: bool
) -> dict[str, tuple[int, int]]:
    """Count the rows of tables that only one of two databases has."""
    with duckdb.connect() as both:
        for name, one in (("a", first), ("b", second)):
            both.execute(f"ATTACH {literal(one.path)} AS {name} (READ_ONLY)")
        found = {}
        for table in tables:
            a, b = (_rows(name, table, first.columns[table]) for name in ("a", "b"))
            if runs_of_first and table not in _OF_IMPORTS:
                b = f"FROM ({b}) AS q SEMI JOIN a.runs AS f ON {_same_run(table)}"
            only = [_count(both, f"{one} EXCEPT ALL {other}") for one, other in ((a, b), (b, a))]
            found[table] = (only[0], only[1])
        return found


def _sums(table: str, columns: list[str]) -> str:
    """Return a query for the rows of a table by run: name, run_id or NULL, how many, sum of their hashes."""
    run = "run_id" if "run_id" in columns else "NULL"
    kept = ", ".join(f'"{column}"' for column in _kept(table, columns))
    return (
        f"SELECT '{table}', {run}, count(*), sum(hash({kept})::HUGEINT)::VARCHAR"
        f' FROM a."{table}" GROUP BY ALL HAVING count(*) > 0'
    )


def _all(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


def _kept(table: str, columns: list[str]) -> list[str]:
    dropped = [*_NUMBERED_ANEW.get(table, ()), "run_id"]
    return [column for column in columns if column not in dropped]


def _rows(name: str, table: str, columns: list[str]) -> str:
    kept = ", ".join(f't."{column}"' for column in _kept(table, columns))
    if table == "runs" or "run_id" not in columns:
        return f'SELECT {kept} FROM {name}."{table}" AS t'
    return (
        f"SELECT r.dump_dir AS of_dir, r.stem AS of_stem, r.content_sha256 AS of_content, {kept}"
        f' FROM {name}."{table}" AS t JOIN {name}.runs AS r USING (run_id)'
    )


def _same_run(table: str) -> str:
    if table == "runs":
        return "(q.dump_dir, q.stem, q.content_sha256) = (f.dump_dir, f.stem, f.content_sha256)"
    return "(q.of_dir, q.of_stem, q.of_content) = (f.dump_dir, f.stem, f.content_sha256)"


def _columns(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, list[str]]:
    """Return the columns of every table of an attached database, in one query: each takes 7 ms."""
    rows = connection.execute(
        "SELECT t.table_name, list(c.column_name ORDER BY c.column_index)"
        " FROM duckdb_tables() AS t JOIN duckdb_columns() AS c USING (database_name, schema_name, table_name)"
        " WHERE (database_name, schema_name) = (?, 'main') GROUP BY ALL ORDER BY ALL",
        [name],
    )
    return dict(rows.fetchall())


def _count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM ({query})").fetchone()
    assert row is not None
    return int(row[0])
