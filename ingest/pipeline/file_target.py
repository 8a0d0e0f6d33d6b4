"""A database file as the place where an import puts its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ingest.database.connect import check_path, open_database
from ingest.database.import_lock import OnWait, import_lock
from ingest.database.writer import finish_replacements, open_writer
from ingest.errors import DatabaseError, DatabaseLocked, DatabaseTooNew, NotADatabase
from ingest.pipeline.journal import staging_folder
from ingest.pipeline.loading import FileLoading
from ingest.pipeline.records import FileRecords
from ingest.pipeline.summary import Progress

if TYPE_CHECKING:
    import duckdb


class FileTarget:
    """A DuckDB file; see `ingest.pipeline.target.Target`.

    Attributes:
        name: its path.
        place: the same.
    """

    def __init__(self, path: str, wait_seconds: float, on_wait: OnWait) -> None:
        self.name = self.place = path
        self._wait_seconds = wait_seconds
        self._on_wait = on_wait

    def check(self) -> None:
        """Refuse what can be no database."""
        check_path(self.place)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other imports out; finish what a kill has left."""
        with import_lock(self.place, wait_seconds=self._wait_seconds, on_wait=self._on_wait):
            finish_replacements(self.place, str(staging_folder(self.place)))
            yield

    def records(self, parts: Sequence[str] = (), *, may_change: bool) -> FileRecords:
        """Return what is recorded."""
        return FileRecords(self.place, parts, self._open_to_read if may_change else None)

    def loading(self, report: Callable[[Progress], None]) -> FileLoading:
        """Return what loads."""
        return FileLoading(self.place, self._wait_seconds, self._on_wait, report)

    def _open_to_read(self, database: str) -> duckdb.DuckDBPyConnection:
        try:
            return open_database(database, read_only=True)
        except (DatabaseLocked, DatabaseTooNew, NotADatabase):
            raise
        except DatabaseError:
            # Of an older schema. If it is anything else, the writer says so too.
            staging = str(staging_folder(database))
            with open_writer(database, staging, wait_seconds=self._wait_seconds, on_wait=self._on_wait):
                pass
            return open_database(database, read_only=True)
