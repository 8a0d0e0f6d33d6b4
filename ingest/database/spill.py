"""Where DuckDB puts what does not fit in memory: a directory of this process alone.

DuckDB's own choice is `DATABASE.tmp`, which all processes with that database share. Two that spill at once
overwrite each other's blocks and crash, a killed one leaves its files to nobody, and other users can read
them. A spill directory has a random name and mode 0700, goes when the process ends, and is locked as long as
it lives: one that can be locked is left over.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from ingest.database.file import CONFIG, Config
from ingest.errors import DatabaseError

_PREFIX: Final = "xbuf-spill-"
_own: dict[int, str] = {}
"""The spill directory of this process, by its id: a forked one makes its own."""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A spill directory whose process was killed, and the bytes that it held."""

    path: str
    file_bytes: int


def spill_root() -> str:
    """Return the folder of spill directories: $TMPDIR, or /var/tmp, which is on a disk, or the system's."""
    for folder in (os.environ.get("TMPDIR", ""), "/var/tmp"):
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.path.abspath(folder)
    return tempfile.gettempdir()


def spill_directory(database: str) -> str:
    """Return where this process spills what belongs to a database: a folder in its spill directory.

    Made at the first call, removed at the end. Two databases do not share one: DuckDB names its files alike.

    Raises:
        OSError: no directory can be made.
    """
    own = _own.get(os.getpid())
    if own is None or not os.path.isdir(own):
        own = _own[os.getpid()] = _make()
    place = os.path.join(own, hashlib.sha256(os.fsencode(os.path.realpath(database))).hexdigest()[:16])
    with suppress(FileExistsError):
        os.mkdir(place, 0o700)
    return place


def spilling(database: str) -> Config:
    """Return the configuration of a connection that spills where this process spills what is of a database.

    Raises:
        DatabaseError: no directory can be made.
    """
    try:
        return {**CONFIG, "temp_directory": spill_directory(database)}
    except OSError as error:
        raise DatabaseError(
            f"{spill_root()}: no directory can be made for what DuckDB cannot keep in memory"
            f" ({error.strerror}); name another folder with TMPDIR"
        ) from error


def remove_own() -> None:
    """Remove the spill directory of this process, which ends now."""
    if path := _own.get(os.getpid()):
        shutil.rmtree(path, ignore_errors=True)


def remove_left_over() -> list[LeftOver]:
    """Remove the spill directories of this user whose processes are gone; return them."""
    removed = []
    try:
        with os.scandir(spill_root()) as entries:
            paths = [entry.path for entry in entries if entry.name.startswith(_PREFIX)]
    except OSError:
        return []
    for path in paths:
        with suppress(OSError), _locked(path) as is_ours:
            if is_ours:
                size = sum(
                    os.lstat(os.path.join(folder, name)).st_size
                    for folder, _, names in os.walk(path)
                    for name in names
                )
                shutil.rmtree(path)
                removed.append(LeftOver(path, size))
    return removed


def _make() -> str:
    while True:
        path = tempfile.mkdtemp(prefix=_PREFIX, dir=spill_root())
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            # Before it was locked, another process may have taken it for left over.
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                atexit.register(remove_own)
                return path  # the descriptor stays open, and with it the lock
        except FileNotFoundError:
            pass
        os.close(descriptor)


@contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Lock a directory; yield whether it was free and belongs to this user alone."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != 0o700:
            yield False
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)
