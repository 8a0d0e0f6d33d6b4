"""One importer at a time: a lock file next to the database, which readers and shells never meet.

It is taken for the whole of an import, of which DuckDB's own lock on the database is held for a small part
only, and by everything else that changes the database or its staging folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ingest.database.refusals import command_line, explain
from ingest.errors import DatabaseError, DatabaseLocked

_RETRY_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 0.02

_LONGEST_ENDING: Final = ".staging"

OnWait = Callable[[DatabaseLocked], None]
"""Called once, when waiting for another process begins."""


def lock_file(database: str) -> str:
    """Return the path of the lock file of a database; it stays when the lock is released."""
    return f"{os.path.realpath(database)}.lock"


@contextmanager
def import_lock(database: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None) -> Iterator[None]:
    """Keep other importers out, and all else that changes the database.

    The lock is the kernel's (flock): it ends with the process and the workers that it forked, so nothing
    has to be cleaned up after a kill.

    Raises:
        DatabaseLocked: another importer held it longer than `wait_seconds`.
        DatabaseError: the lock cannot be made, or the names of files next to the database would be too long.
    """
    _require_room(database)
    deadline = time.monotonic() + wait_seconds
    is_reported = False
    try:
        descriptor = _open(database, os.O_RDWR | os.O_CREAT)
    except (OSError, ValueError) as error:
        raise explain(database, error) from error
    try:
        while not _try(descriptor):
            # A look at who holds the lock takes it for a moment, too: never give up at the first try.
            time.sleep(_LOOK_SECONDS)
            if _try(descriptor):
                break
            refusal = _refusal(database, descriptor)
            left = deadline - time.monotonic()
            if left <= 0:
                raise refusal
            if on_wait and not is_reported:
                on_wait(refusal)
                is_reported = True
            time.sleep(min(_RETRY_SECONDS, left))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def lock_holder(database: str) -> DatabaseLocked | None:
    """Return who holds the lock now, as the error that an importer would get; None when nobody does.

    None also where the lock must not be looked at: it is the importer's user who needs to know.
    """
    try:
        descriptor = _open(database, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return None
    except (OSError, ValueError) as error:
        raise explain(database, error) from error
    try:
        return None if _try(descriptor) else _refusal(database, descriptor)
    finally:
        os.close(descriptor)


def _open(database: str, flags: int) -> int:
    """Open the lock; neither through a link that somebody put there, nor waiting at a FIFO."""
    place = lock_file(database)
    descriptor = os.open(place, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DatabaseError(f"{place}: is no regular file, as the import lock must be; remove it")
    return descriptor


def _require_room(database: str) -> None:
    """Refuse a database whose name leaves no room for the longest of the names next to it."""
    folder, name = os.path.split(os.path.realpath(database))
    try:
        longest = os.pathconf(folder, "PC_NAME_MAX") - len(_LONGEST_ENDING)
    except OSError as error:
        raise explain(database, error) from error
    if len(os.fsencode(name)) > longest:
        raise DatabaseError(
            f"{database}: the name has {len(os.fsencode(name))} bytes; xbuf keeps files near it whose names"
            f" are longer, and has room for {longest}: rename it, or name another with --db"
        )


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def _refusal(database: str, descriptor: int) -> DatabaseLocked:
    """Name the importer that holds the lock, by the number that it wrote into it."""
    text = os.pread(descriptor, 20, 0).strip()
    if not text.isdigit():
        return DatabaseLocked(database)
    pid = int(text)
    return DatabaseLocked(database, pid, command_line(pid) or "an import")
