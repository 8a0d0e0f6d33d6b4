"""Make a new database at head without Alembic, which takes a third of a second to import and run."""

from __future__ import annotations

import errno
import os
import tempfile

import duckdb

from ingest.database.ddl import creation
from ingest.database.file import NEW_FILE, UNBORN, sync
from ingest.database.refusals import explain
from ingest.database.revision import HEAD
from ingest.errors import DatabaseError


def create_at_head(path: str, *, with_queries: bool = False) -> None:
    """Create a database file at head and checkpoint it.

    Args:
        path: the new file.
        with_queries: it gets the saved queries at once; without, they come with the first load, which looks
            what users have made meanwhile.

    Raises:
        duckdb.Error: it cannot be written.
    """
    with duckdb.connect(path, config=NEW_FILE) as connection:
        connection.execute(f"BEGIN;\n{creation(HEAD)}")
        if with_queries:
            from ingest.query.install import install_in_new  # 40 ms

            install_in_new(connection)
        connection.execute("COMMIT")
        connection.execute("CHECKPOINT")


def make_database(path: str, *, with_queries: bool = False) -> None:
    """Create a database at head in one step: a kill leaves no file or a whole one.

    The file is made in a private folder next to its place and linked there, so of two processes that create
    it at once one wins and the other opens what it finds.

    Args:
        path: where it is to be.
        with_queries: as `create_at_head`.

    Raises:
        DatabaseError: the file system refuses, or a WAL without its database is there.
    """
    place = os.path.realpath(path)
    folder, name = os.path.split(place)
    if os.path.exists(f"{place}.wal") and not os.path.exists(place):
        raise DatabaseError(
            f"{path}: is gone, but its write-ahead log {path}.wal is there; bring the database back, or move"
            " the .wal away to begin a new one"
        )
    try:
        with tempfile.TemporaryDirectory(prefix=UNBORN, dir=folder) as scratch:
            new = os.path.join(scratch, name)
            create_at_head(new, with_queries=with_queries)
            sync(new)
            _put(new, place)
        sync(folder)
    except (duckdb.Error, OSError, UnicodeError) as error:
        raise explain(path, error) from error


def _put(new: str, place: str) -> None:
    """Give a finished file its name, unless somebody else was faster."""
    try:
        os.link(new, place)
        os.unlink(new)
    except FileExistsError:
        return
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # FAT and some network file systems have no links. Renaming could replace a faster process's file,
        # a moment after the check that there is none.
        if not os.path.exists(place):
            os.rename(new, place)
