"""Let a connection see some runs only, so that a question about them reads no others.

DuckDB keeps the rows of a run together and knows the least and the greatest `run_id` of every row group, so
`run_id = 17` reads a few of them, however many runs there are. But the condition must be a constant where the
table is read: joined with a list of runs, and below an aggregate or a limit, whole tables are read. So the
runs are looked up first, and while they are asked about, a temporary view of the same name stands before
each table.

A table can be a view of other files as well: what stands before it is its name and a constant condition.
Such a view may leave out files without these runs: a variable has their numbers meanwhile (`NARROWED`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ingest.database.tables import RUN_TABLES

if TYPE_CHECKING:
    import duckdb

FEW: Final = 100
"""So many runs are worth it: of more, most row groups are read anyway, and a list of numbers costs, too."""

NARROWED: Final = "narrowed_to"
"""DuckDB variable: the runs that the connection sees, as a list; NULL where it sees all."""

_TABLES: Final = ("runs", "run_labels", *RUN_TABLES)


@contextmanager
def narrowed(connection: duckdb.DuckDBPyConnection, runs: Collection[int] | None) -> Iterator[None]:
    """Let the connection see the rows of these runs only, in every table, as long as the context lasts.

    A result must be read within it: DuckDB ends an open result at the next statement. Contexts do not nest.

    Args:
        runs: their numbers; None, and more than `FEW`, are no restriction.
    """
    if runs is None or len(runs) > FEW:
        yield
        return
    row = connection.execute("SELECT system.main.current_database()").fetchone()
    database = str(row[0]).replace('"', '""') if row else ""
    numbers = ", ".join(map(str, sorted(runs)))
    # The column is qualified: an argument of a macro could have its name.
    condition = f"x.run_id IN ({numbers})" if runs else "false"
    connection.execute(
        f"SET VARIABLE {NARROWED} = [{numbers}]::BIGINT[];"
        + ";".join(
            f'CREATE TEMP VIEW "{table}" AS SELECT x.* FROM "{database}".main."{table}" AS x'
            f" WHERE {condition}"
            for table in _TABLES
        )
    )
    try:
        yield
    finally:
        dropped = ";".join(f'DROP VIEW temp.main."{table}"' for table in _TABLES)
        connection.execute(f"RESET VARIABLE {NARROWED}; {dropped}")
