"""A lake in DuckDB: a database in memory with views of the lake's tables.

It holds no SQL of the lake's, and of all files it reaches the lake's alone: those in a folder by DuckDB's own
means, those in a store by a file system that knows no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import duckdb

from ingest.database.ddl import created
from ingest.database.refusals import explain
from ingest.database.spill import spilling
from ingest.database.tables import TABLES
from ingest.lake.failures import SCHEME, failure_of
from ingest.lake.snapshot import Snapshot, read_snapshot
from ingest.lake.store import Lake
from ingest.lake.views import create_views
from ingest.source.apart import apart
from ingest.source.source import Terms
from ingest.sql import literal

DISABLED: Final = "common_subplan"
"""Of a view that a query names twice, DuckDB makes a common table: of 10 million values with all columns,
where the query needs two or three. Without it `diff` takes half of the CPU, `buffer_changes` a twentieth."""


def open_lake(lake: Lake, *, unsafe: bool = False, may_fork: bool = True) -> duckdb.DuckDBPyConnection:
    """Open a lake as it is now, to read.

    From then on no child of this process can open a lake, unless this one is in a folder and `may_fork`.

    Args:
        unsafe: leave other files within reach and settings open.
        may_fork: no thread of this process holds a lock that a child would wait for.

    Raises:
        NotADatabase: there is no lake, or something else.
        DatabaseTooNew: a newer xbuf made it.
        DatabaseError: it is older than this xbuf, or the store is away or refuses.
    """
    snapshot = look_up(lake, may_fork=may_fork)
    connection = duckdb.connect(config=spilling(lake.root))
    try:
        connection.execute(f"PRAGMA disable_progress_bar; SET disabled_optimizers = {literal(DISABLED)}")
        if lake.is_local:
            root = lake.root
        else:
            from ingest.lake.filesystem import StoredFiles  # 0.1 s, with fsspec

            connection.register_filesystem(StoredFiles(snapshot))
            root = f"{SCHEME}:/"
        connection.execute(created(TABLES["saved_queries"]))
        create_views(connection, root, snapshot.tables)
        if not unsafe:
            _seal(connection, f"{root}/")
    except BaseException as error:
        connection.close()
        if isinstance(error, duckdb.Error):
            raise failure_of(lake, error) or explain(str(lake), error) from error
        raise
    return connection


def look_up(lake: Lake, *, may_fork: bool = True) -> Snapshot:
    """Look up the files of a lake, by a process of its own where the lake is in a folder.

    Raises what `read_snapshot` raises.
    """
    terms = Terms(None, is_apart=may_fork and lake.is_local)
    [snapshot] = apart(_read, lake, what=str(lake), terms=terms)
    return snapshot


def _read(lake: Lake) -> Iterator[Snapshot]:
    yield read_snapshot(lake)


def _seal(connection: duckdb.DuckDBPyConnection, root: str) -> None:
    """Keep the connection from all files but those below a folder, and its settings as they are."""
    connection.execute(
        f"SET allowed_directories = [{literal(root)}]; SET enable_external_access = false;"
        " SET lock_configuration = true"
    )
