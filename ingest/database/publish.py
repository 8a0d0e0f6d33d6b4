"""Publish a database: a read-only snapshot of it for a team, replaced as a whole.

Readers of the snapshot never meet the importer, and nobody can write to it by accident. A reader that has
it open keeps the file that it opened; the next open, or `ATTACH OR REPLACE`, sees the new one.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ingest.database.connect import check_path, open_database, status
from ingest.database.file import sync
from ingest.database.import_lock import OnWait
from ingest.database.private import is_own_folder
from ingest.database.read_lock import ReadLock
from ingest.database.refusals import explain
from ingest.database.writer import read_locked
from ingest.errors import DatabaseError, DatabaseLocked, NotADatabase, UsageError

_MODE: Final = 0o444
"""Mode of a snapshot, less what the umask takes."""
_CONTENT: Final = """
    SELECT
        (SELECT version_num FROM alembic_version),
        (SELECT (count(*), bit_xor(hash(run_id, import_id, content_sha256))) FROM runs),
        (SELECT (count(*), bit_xor(hash(run_id, role, content_sha256))) FROM run_files),
        (SELECT (count(*), bit_xor(hash(run_id, key, value))) FROM run_labels),
        (SELECT count(*) FROM rejects),
        (SELECT (count(*), bit_xor(hash(name, sha256))) FROM saved_queries)
"""
"""What makes a new snapshot worth its copy; the row in `imports` of an import that found nothing does not."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A published file: its absolute path, its size in bytes, and whether it was written now."""

    path: str
    file_bytes: int
    changed: bool


def publish_snapshot(
    database: str, path: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None
) -> Snapshot:
    """Bring the snapshot at `path` up to date, where it is not; the caller holds the import lock.

    The new file is complete, synced and read-only before it takes the place of the old one, so a kill leaves
    one of the two. Its mode is 0444 less the umask, or that of the old one.

    Raises:
        UsageError: `path` is the database itself.
        NotADatabase: there is a file of something else at `path`; it is left as it is.
        DatabaseLocked: the database or the snapshot is open for writing.
        DatabaseError: the file system refuses, or the snapshot has a write-ahead log.
    """
    place = check_place(database, path)
    folder, name = os.path.split(place)
    left_over = glob.glob(f"{glob.escape(os.path.join(folder, f'.{name}.publish-'))}*")
    for old in filter(is_own_folder, left_over):
        shutil.rmtree(old, ignore_errors=True)  # of a publication that was killed
    with read_locked(database, wait_seconds=wait_seconds, on_wait=on_wait) as lock:
        content = _content(database)
        if os.path.exists(place) and _content(place) == content:
            return Snapshot(os.path.abspath(path), os.stat(place).st_size, False)
        try:
            with tempfile.TemporaryDirectory(prefix=f".{name}.publish-", dir=folder) as scratch:
                new = os.path.join(scratch, name)
                _copy(os.path.realpath(database), new, lock)
                if _content(new) != content:
                    raise DatabaseError(f"{path}: the snapshot does not equal the database; run again")
                _permit(place, new)
                sync(new)
                _put(path, place, new)
            sync(folder)
        except OSError as error:
            raise explain(path, error) from error
    return Snapshot(os.path.abspath(path), os.stat(place).st_size, True)


def check_place(database: str, path: str) -> str:
    """Return the real path of a snapshot, once it is sure that nothing else lies there.

    Raises what `publish_snapshot` raises for a wrong place.
    """
    check_path(path)
    place = os.path.realpath(path)
    is_there = os.path.lexists(place)
    if place == os.path.realpath(database) or (
        is_there and os.path.exists(database) and os.path.samefile(place, database)
    ):
        raise UsageError(f"{path}: is the database itself; publish to another file")
    if not os.path.isdir(os.path.dirname(place)):
        raise UsageError(f"{path}: its folder does not exist; create it, or publish elsewhere")
    if os.path.lexists(f"{place}.wal"):
        raise DatabaseError(
            f"{path}: somebody has written to the snapshot, and {path}.wal holds what they wrote; move both"
            " away, then publish again"
        )
    if is_there and status(place).state == "empty":
        raise NotADatabase(f"{path}: is no snapshot of an xbuf database; it is left untouched")
    return place


def _content(path: str) -> object:
    with open_database(path, read_only=True) as connection:
        return connection.execute(_CONTENT).fetchall()


def _copy(database: str, new: str, lock: ReadLock) -> None:
    lock.copy(database, new)
    if os.path.lexists(f"{database}.wal"):
        lock.copy(f"{database}.wal", f"{new}.wal")
        with open_database(new) as connection:
            connection.execute("CHECKPOINT")


def _permit(place: str, new: str) -> None:
    """Give a new snapshot the owner and mode of the old one, or the mode of a new file; none may write."""
    try:
        old = os.stat(place)
    except FileNotFoundError:
        made = f"{new}.mode"
        os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE))
        os.chmod(new, os.stat(made).st_mode & _MODE)
        return
    with suppress(PermissionError):
        os.chown(new, old.st_uid, old.st_gid)
    os.chmod(new, old.st_mode & _MODE)


def _put(path: str, place: str, new: str) -> None:
    """Rename over the old snapshot, unless somebody has it open for writing or has just written to it."""
    if not os.path.exists(place):
        os.replace(new, place)
        return
    lock = ReadLock.take(place)
    if lock is None:
        raise DatabaseLocked(path)
    with lock:
        if os.path.lexists(f"{place}.wal"):
            raise DatabaseLocked(path)
        lock.replace(new, place)
