"""Exclusive access to an existing database outside an import: same locks, same writer, same manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ingest.database.import_lock import OnWait, import_lock
from ingest.database.writer import Writer, finish_replacements, open_writer
from ingest.errors import DatabaseError
from ingest.pipeline.journal import staging_folder
from ingest.pipeline.manifest import note_runs, take_in


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
) -> Iterator[Writer]:
    """Open a database for a change while others read it, with `open_writer`.

    Raises what `open_writer` and `exclusive` raise.
    """
    with exclusive(database, wait_seconds=wait_seconds, on_wait=on_wait) as staging:
        with open_writer(database, staging, wait_seconds=wait_seconds, on_wait=on_wait) as writer:
            yield writer
            note_runs(writer.connection, staging_folder(database))
        take_in(staging_folder(database), anew=True)
