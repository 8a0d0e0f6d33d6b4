"""Where DuckDB puts what does not fit in memory: a directory of this process alone.

DuckDB's own choice is `DATABASE.tmp`, which all processes with that database share. Two that spill at once
overwrite each other's blocks and crash, a killed one leaves its files to nobody, and other users can read
them. A spill directory has a random name and mode 0700, goes when the process ends, and is locked as long as
it lives: one that can be locked is left over.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

__all__ = ["LeftOver", "remove_left_over", "spill_directory", "spill_root"]

_PREFIX: Final = "xbuf-spill-"
_live: dict[tuple[int, str], str] = {}
"""Directories of this process, by its id and the database that they are for."""


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
    """Return this process's spill directory for a database; made at the first call, removed at the end.

    Raises:
        OSError: no directory can be made.
    """
    key = os.getpid(), os.path.realpath(database)
    path = _live.get(key)
    if path is None or not os.path.isdir(path):
        path = _live[key] = _make()
    return path


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
                size = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(path))
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
                atexit.register(_remove, os.getpid(), path)
                return path  # the descriptor stays open, and with it the lock
        except FileNotFoundError:
            pass
        os.close(descriptor)


def _remove(pid: int, path: str) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)


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
