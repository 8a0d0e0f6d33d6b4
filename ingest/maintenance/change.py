"""Change an existing database outside an import: the same locks, the same window, the same records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ingest.database.import_lock import OnWait, import_lock
from ingest.database.window import Window, finish_replacements, write_window
from ingest.errors import DatabaseError
from ingest.pipeline.journal import staging_folder
from ingest.pipeline.manifest import note_runs, take_in

__all__ = ["change_database", "exclusive"]


@contextmanager
def exclusive(database: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None) -> Iterator[str]:
    """Keep imports out of an existing database and tidy up after a killed one; yield its staging folder.

    Raises:
        DatabaseLocked: an import ran for longer than `wait_seconds`.
        DatabaseError: there is no such database.
    """
    if not os.path.exists(database):
        raise DatabaseError(f"{database}: no such database; name another with --db")
    with import_lock(database, wait_seconds=wait_seconds, on_wait=on_wait):
        staging = str(staging_folder(database))
        finish_replacements(database, staging)
        yield staging


@contextmanager
def change_database(
    database: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None
) -> Iterator[Window]:
    """Open a database for a change beside its readers, with `write_window`.

    Raises what `write_window` and `exclusive` raise.
    """
    with exclusive(database, wait_seconds=wait_seconds, on_wait=on_wait) as staging:
        with write_window(database, staging, wait_seconds=wait_seconds, on_wait=on_wait) as window:
            yield window
            note_runs(window.connection, staging_folder(database))
        take_in(staging_folder(database), anew=True)
