"""Where runs are recorded: the database, what stands in for it while a writer has it, and staged parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ingest.database.connect import CONFIG, open_database
from ingest.errors import DatabaseLocked
from ingest.pipeline.history import last_rejects
from ingest.pipeline.journal import staging_folder
from ingest.pipeline.manifest import open_manifest
from ingest.pipeline.recorded import staged_runs
from ingest.query.digest import installed_digest

if TYPE_CHECKING:
    import duckdb

__all__ = ["DatabaseState", "Records"]


class DatabaseState(NamedTuple):
    """What the database holds, besides runs, when an import begins.

    Attributes:
        rejects: (file, line, kind) of what the last import rejected; None while a writer has the database.
        queries: SHA-256 of the installed queries.
    """

    rejects: frozenset[tuple[str, int | None, str]] | None = None
    queries: str | None = None


class Records:
    """Opens what must be asked of a dump set.

    Attributes:
        locked: a writer has the database, so that what the last write noted stands in for it.
        staging: the staging folder of the database.
    """

    def __init__(
        self,
        database: str,
        parts: Sequence[str] = (),
        open_to_read: Callable[[str], duckdb.DuckDBPyConnection] | None = None,
    ) -> None:
        """Name the places.

        Args:
            database: may be missing.
            parts: staged and not loaded.
            open_to_read: opens the database in place of `open_database(read_only=True)`.
        """
        self.locked = False
        self.staging = staging_folder(database)
        self._database = database
        self._parts = parts
        self._open_to_read = open_to_read or _open_to_read

    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield connections with `runs` and `run_files`; whoever takes one closes it.

        Once locked out, the database is not asked again: all answers of an import come from one source.

        Raises:
            DatabaseError: the database cannot be read, other than for a writer.
        """
        if os.path.exists(self._database):
            if (connection := self.open_database()) is not None:
                yield connection
            elif (manifest := open_manifest(self.staging)) is not None:
                yield manifest
        if self._parts:
            import duckdb  # 70 ms

            connection = duckdb.connect(":memory:", config=CONFIG)
            staged_runs(connection, self._parts)
            yield connection

    def state(self) -> DatabaseState:
        """Look at the database; raises as `open`."""
        if not os.path.exists(self._database):
            return DatabaseState(frozenset())  # the load makes it
        connection = self.open_database()
        if connection is None:
            return DatabaseState()
        with connection:
            return DatabaseState(last_rejects(connection), installed_digest(connection))

    def open_database(self) -> duckdb.DuckDBPyConnection | None:
        """Open the database to be read; None while a writer has it."""
        if not self.locked:
            try:
                return self._open_to_read(self._database)
            except DatabaseLocked:
                self.locked = True
        return None


def _open_to_read(database: str) -> duckdb.DuckDBPyConnection:
    return open_database(database, read_only=True)
