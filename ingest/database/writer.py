"""The writer: change a database that others have open, and never behind the back of another writer.

    nobody has it open      open it, change it, close it: others wait for that long
    only readers have it    change a copy and rename it over; open readers keep the file that they have
    a writer has it         wait, then DatabaseLocked; nothing is changed
    it has another name     DatabaseError: a hard link would keep the old content, or hide the log

The way by copy keeps the file locked against writers from before the copy until after the renaming
(`ingest.database.read_lock`), so that no change made elsewhere can get lost with the file that is replaced.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import duckdb

from ingest.database.connect import check_links, open_database
from ingest.database.file import UNBORN, sync
from ingest.database.import_lock import OnWait
from ingest.database.private import is_own_folder, make_private_folder, require_private_folder
from ingest.database.read_lock import ReadLock
from ingest.database.refusals import explain
from ingest.database.spill import remove_left_over
from ingest.errors import DatabaseError, DatabaseLocked

if TYPE_CHECKING:
    from os import stat_result

COPY_BYTES_PER_SECOND: Final = 500e6
"""What a copy may be expected to do, for the choice between copying and waiting for short readers."""
LINGER_SECONDS: Final = 0.2
"""How long the old file stays locked after the renaming: a process that had opened it just before, but not
locked it yet, would otherwise write to a file without a name."""
_RETRY_SECONDS: Final = 0.1
_FOLDER: Final = "copy-"
_MARKER: Final = "replaces.json"


@dataclass(frozen=True, slots=True)
class Writer:
    """A database that is open for writing.

    Attributes:
        connection: the database, or its copy, open for writing.
        by_copy: readers have the database open; they see the changes when they open it anew.
    """

    connection: duckdb.DuckDBPyConnection
    by_copy: bool


@dataclass(frozen=True, slots=True)
class Replacement:
    """A file about to take the database's place.

    Attributes:
        file: the new file, in a private folder on the same file system.
        folder: that folder.
    """

    file: str
    folder: str


@contextmanager
def open_writer(
    database: str,
    staging: str,
    *,
    wait_seconds: float = 0.0,
    on_wait: OnWait | None = None,
    in_place_only: bool = False,
) -> Iterator[Writer]:
    """Open a database at head for writing, while others read it; the caller has the import lock.

    When the block ends well, what it committed is in the file, checkpointed. When it raises, transactions
    that it committed in place stay, and a copy is thrown away as a whole.

    Args:
        database: the database file; it is created or upgraded like `open_database` does.
        staging: private folder next to it, for the copy.
        wait_seconds: how long to wait for a process that has it open for writing.
        on_wait: called once, when waiting begins.
        in_place_only: readers are waited for too.

    Raises:
        DatabaseLocked: a process kept it locked for longer than `wait_seconds`.
        DatabaseError: as `open_database`; also when there is no space for the copy.
    """
    connection, lock = _enter(database, wait_seconds, on_wait, in_place_only)
    if lock is None:
        assert connection is not None
        yield from _use(Writer(connection, False), database)
        return
    with lock, replace_database(database, staging, lock) as new:
        try:
            lock.copy(os.path.realpath(database), new.file)
            if _exists(f"{os.path.realpath(database)}.wal"):
                lock.copy(f"{os.path.realpath(database)}.wal", f"{new.file}.wal")
        except OSError as error:
            raise explain(database, error) from error
        try:
            connection = open_database(new.file)
        except DatabaseError as error:
            raise type(error)(str(error).replace(new.file, database)) from error
        yield from _use(Writer(connection, True), database)


@contextmanager
def read_locked(
    database: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None
) -> Iterator[ReadLock]:
    """Keep writers away from a database with a shared read lock, for a copy of it.

    Raises:
        DatabaseLocked: a process had it open for writing for longer than `wait_seconds`.
        DatabaseError: it cannot be opened.
    """
    patience = _Patience(wait_seconds, on_wait)
    while (lock := _take(database)) is None:
        patience.wait(_writer_of(database))
    with lock:
        yield lock


@contextmanager
def replace_database(database: str, staging: str, lock: ReadLock) -> Iterator[Replacement]:
    """Yield the place for a new file and, when the block ends well, rename that file over the database.

    The database is locked by `lock`. The block leaves a checkpointed, closed file without a WAL. A kill at
    any moment leaves the old file or the new one.

    Raises:
        DatabaseError: the new file cannot take the place.
    """
    place = os.path.realpath(database)
    check_links(place)
    try:
        make_private_folder(staging)
        folder = tempfile.mkdtemp(prefix=_FOLDER, dir=staging)
    except OSError as error:
        raise explain(database, error) from error
    new = Replacement(os.path.join(folder, os.path.basename(place)), folder)
    try:
        yield new
        if _exists(f"{new.file}.wal"):
            raise DatabaseError(f"{database}: DuckDB left a write-ahead log next to the new file; run again")
        try:
            _take_over(place, new, lock)
        except OSError as error:
            raise explain(database, error) from error
        time.sleep(LINGER_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def finish_replacements(database: str, staging: str) -> None:
    """Tidy up after a replacement that was killed; the caller has the import lock.

    A kill between the renaming and the removal of the old file's WAL leaves a WAL that DuckDB refuses. What
    it held is in the new file, as the marker says, so it is removed.

    Raises:
        DatabaseError: the staging folder is not this user's alone; nothing in it was touched.
    """
    place = os.path.realpath(database)
    _remove_unborn(place)
    remove_left_over()
    require_private_folder(staging)
    try:
        folders = [entry.path for entry in os.scandir(staging) if entry.name.startswith(_FOLDER)]
    except (FileNotFoundError, NotADirectoryError):
        return
    for folder in folders:
        with suppress(OSError, ValueError, KeyError):
            with open(os.path.join(folder, _MARKER), encoding="ascii") as file:
                marker = json.load(file)
            if _identity(os.stat(place))[:2] == marker["file"] and (
                _identity(os.stat(f"{place}.wal")) == marker["wal"]
            ):
                os.unlink(f"{place}.wal")
                sync(os.path.dirname(place))
        shutil.rmtree(folder, ignore_errors=True)


def _remove_unborn(place: str) -> None:
    """Remove what is left of a database that was killed while it was made; a live one takes a second."""
    folder, name = os.path.split(place)
    for path in filter(is_own_folder, glob.glob(os.path.join(glob.escape(folder), f"{UNBORN}*"))):
        with suppress(OSError):
            made = os.path.join(path, name)
            is_born = os.path.lexists(made) and os.path.lexists(place) and os.path.samefile(made, place)
            if is_born or time.time() - os.stat(path).st_mtime > 3600:
                shutil.rmtree(path)


def _enter(
    database: str, wait_seconds: float, on_wait: OnWait | None, in_place_only: bool
) -> tuple[duckdb.DuckDBPyConnection | None, ReadLock | None]:
    """Open the database in place, or take a read lock for a copy."""
    started = time.monotonic()
    patience = _Patience(wait_seconds, on_wait)
    only_readers = False
    while True:
        try:
            return open_database(database), None
        except DatabaseLocked as refusal:
            file = os.stat(database)
            by_copy_at = started + min(wait_seconds, file.st_size / COPY_BYTES_PER_SECOND)
            if not in_place_only:
                if (left := by_copy_at - time.monotonic()) > 0:
                    time.sleep(min(_RETRY_SECONDS, left))
                    continue
                lock = _take(database)
                if lock is not None:
                    if only_readers:
                        return None, lock
                    # It may have been a writer who has just left: then the file can be had without a copy.
                    lock.release()
                    only_readers = True
                    continue
            only_readers = False
            patience.wait(refusal)


class _Patience:
    """Waits for a process that has the database, for some seconds from when waiting begins.

    Not from when the work began: starting the process of a read lock takes longer than a short wait on a busy
    machine, and then nobody would hear of the waiting.
    """

    def __init__(self, seconds: float, on_wait: OnWait | None) -> None:
        self._seconds, self._on_wait = seconds, on_wait
        self._deadline: float | None = None

    def wait(self, refusal: DatabaseLocked) -> None:
        """Wait a moment before another try; raise the refusal when there is no time left."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._seconds
            if self._seconds > 0 and self._on_wait:
                self._on_wait(refusal)
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise refusal
        time.sleep(min(_RETRY_SECONDS, left))


def _take(database: str) -> ReadLock | None:
    try:
        return ReadLock.take(os.path.realpath(database))
    except OSError as error:
        raise explain(database, error) from error


def _writer_of(database: str) -> DatabaseLocked:
    """Return who has the database open for writing, as DuckDB reports it."""
    try:
        open_database(database, read_only=True).close()
    except DatabaseLocked as refusal:
        return refusal
    except DatabaseError:
        pass  # it can be opened now; what is wrong with it is for the caller to find out
    return DatabaseLocked(database)


def _use(writer: Writer, database: str) -> Iterator[Writer]:
    """Lend the writer, bring everything from the WAL into the file, and close it."""
    try:
        yield writer
        # Not left to close(), where a failure goes unnoticed.
        writer.connection.execute("CHECKPOINT")
    except duckdb.Error as error:
        raise explain(database, error) from error
    finally:
        writer.connection.close()


def _take_over(place: str, new: Replacement, lock: ReadLock) -> None:
    """Give the new file the owner, the permissions and the name of the old one."""
    shutil.copystat(place, new.file)
    os.utime(new.file)
    old = os.stat(place)
    with suppress(PermissionError):
        os.chown(new.file, old.st_uid, old.st_gid)
    os.chmod(new.file, old.st_mode & 0o7777)  # after chown, which drops bits
    sync(new.file)
    wal = f"{place}.wal"
    has_wal = _exists(wal)
    if has_wal:
        marker = {"file": _identity(os.stat(new.file))[:2], "wal": _identity(os.stat(wal))}
        path = os.path.join(new.folder, _MARKER)
        with open(path, "x", encoding="ascii") as file:
            json.dump(marker, file)
        sync(path)
        sync(new.folder)
    lock.replace(new.file, place)
    if has_wal:
        os.unlink(wal)
    sync(os.path.dirname(place))


def _identity(status: stat_result) -> list[int]:
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


def _exists(path: str) -> bool:
    return os.path.lexists(path)
