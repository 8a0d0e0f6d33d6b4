"""What a database file records: by itself, what stands in for it while a writer has it, and staged parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING

from ingest.database.connect import open_database
from ingest.database.file import CONFIG
from ingest.errors import DatabaseLocked
from ingest.pipeline.history import last_rejects
from ingest.pipeline.journal import staging_folder
from ingest.pipeline.labels import Labelling, lacking_labels
from ingest.pipeline.manifest import open_manifest
from ingest.pipeline.recorded import Recorded, RenamedFiles, find_recorded, renamed_files, staged_runs
from ingest.pipeline.target import Reject
from ingest.query.digest import installed_digest, shipped_digest

if TYPE_CHECKING:
    import duckdb

    from ingest.dump.sets import DumpSet


class FileRecords:
    """Asks a database; see `ingest.pipeline.target.Records`.

    Attributes:
        locked: a writer has the database, so that what the last write noted stands in for it.
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
        self._database = database
        self._parts = parts
        self._open_to_read = open_to_read or _open_to_read
        self._was_opened = False
        self._rejects: frozenset[Reject] = frozenset()
        """What the last import rejected, as the database was first opened."""
        self._queries: str | None = None
        """SHA-256 of the installed queries, likewise."""

    def look(self, *, search_is_long: bool) -> None:
        """Open the database before a long search, to know what keeps it from being used; raises as `open`."""
        if search_is_long:
            self._look()

    def renamed(self, roots: Sequence[str]) -> RenamedFiles:
        """Return the files below some roots that were primary files before."""
        return RenamedFiles(lambda: renamed_files(self.open, roots))

    def recorded(self, sets: Sequence[DumpSet], *, rehash: bool) -> Recorded:
        """Look up dump sets; raises as `open`."""
        found = find_recorded(self.open, sets, rehash=rehash)
        self._look()
        return found

    def lacks(self, places: Sequence[tuple[str, str]], labelling: Labelling) -> bool:
        """Whether a dump that was loaded before lacks a label; true while nobody can look."""
        if not os.path.exists(self._database):
            return False
        connection = self.open_database()
        if connection is None:
            return True
        with connection:
            return bool(lacking_labels(connection, places, labelling))

    def has_news(self, rejects: Set[Reject]) -> bool:
        """Whether rejects that the last import did not have, or other queries, are to be written down."""
        if self.locked and not self._was_opened:
            return False  # nobody can look
        is_new = bool(rejects - self._rejects)
        return is_new or not (self.locked or self._queries == shipped_digest())

    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield connections with `runs` and `run_files`; whoever takes one closes it.

        Once locked out, the database is not asked again: all answers of an import come from one source.

        Raises:
            DatabaseError: the database cannot be read, other than for a writer.
        """
        if os.path.exists(self._database):
            if (connection := self.open_database()) is not None:
                yield connection
            elif (manifest := open_manifest(staging_folder(self._database))) is not None:
                yield manifest
        if self._parts:
            import duckdb  # 70 ms

            connection = duckdb.connect(":memory:", config=CONFIG)
            staged_runs(connection, self._parts)
            yield connection

    def open_database(self) -> duckdb.DuckDBPyConnection | None:
        """Open the database to be read; None while a writer has it."""
        if self.locked:
            return None
        try:
            connection = self._open_to_read(self._database)
        except DatabaseLocked:
            self.locked = True
            return None
        if not self._was_opened:  # on the way: to open a database takes 30 ms of CPU
            try:
                self._rejects, self._queries = last_rejects(connection), installed_digest(connection)
            except BaseException:
                connection.close()
                raise
            self._was_opened = True
        return connection

    def _look(self) -> None:
        """Open the database once, if nobody has."""
        if self._was_opened or not os.path.exists(self._database):  # the load makes it
            return
        if (connection := self.open_database()) is not None:
            connection.close()


def _open_to_read(database: str) -> duckdb.DuckDBPyConnection:
    return open_database(database, read_only=True)
