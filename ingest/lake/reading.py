"""Open a database to read, a file or a lake: what every command that only reads does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from ingest.database.connect import open_database
from ingest.errors import UsageError
from ingest.lake.layout import TABLES_OF_RUNS
from ingest.source.kinds import is_lake


def open_to_read(
    database: str | os.PathLike[str],
    *,
    unsafe: bool = False,
    wait_seconds: float = 0.0,
    may_fork: bool = True,
) -> duckdb.DuckDBPyConnection:
    """Open a database file, or a lake as it is now, to read.

    Args:
        database: the file, or `lake:` with a folder or URL.
        unsafe, wait_seconds: as `open_database` takes them.
        may_fork: as `open_lake` takes it.

    Raises what `open_database(read_only=True)` raises; DatabaseError too where the store is away or refuses.
    """
    name = os.fspath(database)
    if not is_lake(name):
        return open_database(name, read_only=True, unsafe=unsafe, wait_seconds=wait_seconds)
    from ingest.lake.opened import open_lake
    from ingest.lake.store import parse_lake

    return open_lake(parse_lake(name), unsafe=unsafe, may_fork=may_fork)


@contextmanager
def in_words_of(database: str) -> Iterator[None]:
    """Raise what DuckDB says of a lake's files as a DatabaseError with a remedy.

    Args:
        database: what is asked, as `open_to_read` takes it; nothing is done for a file.
    """
    try:
        yield
    except (duckdb.Error, UsageError) as error:
        of_duckdb = error if isinstance(error, duckdb.Error) else error.__cause__
        if not is_lake(database) or not isinstance(of_duckdb, duckdb.Error):
            raise
        from ingest.lake.failures import failure_of
        from ingest.lake.store import parse_lake

        failure = failure_of(parse_lake(database), of_duckdb)
        if failure is None:
            raise
        raise failure from error


def install_macros(connection: duckdb.DuckDBPyConnection, database: str, statement: str) -> None:
    """Install what a statement uses of the saved queries, which a file has and a lake has not.

    Args:
        connection: as `open_to_read` opened it.
        database: what it was opened for.
        statement: SQL that may call saved queries as macros, or name building blocks.
    """
    if is_lake(database):
        from ingest.query.install import install_used  # 30 ms

        install_used(connection, statement, ("runs", *TABLES_OF_RUNS))
