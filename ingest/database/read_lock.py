"""Keep writers away from a database file, and copy it meanwhile, from a process of its own.

DuckDB locks a database with POSIX record locks: a shared one on the whole file for a read-only open, an
exclusive one for a read-write open. `ReadLock` is the same shared lock: readers come and go, nobody can
write.

The lock lives in a child process because the kernel drops all locks of a process on a file as soon as
that process closes *any* descriptor of it. Copying the file here would end the locks of every read-only
connection that this process has, such as those of a notebook that calls `import_dumps`. The child has one
descriptor of the file, locks it, copies through it, and closes it by ending. It ends when its standard
input does, so a killed parent leaves no lock behind.

It also renames the new file over the locked one. Whoever renames must have the lock: were it the parent, a
child that was killed meanwhile would have let a writer in, whose rows would go with the old file.

This file is the child's program too (`python -I -S read_lock.py PATH`, some 15 ms): it imports nothing of
ours.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import Final

_BLOCK: Final = 64 << 20
_BUSY: Final = (errno.EACCES, errno.EAGAIN)


class ReadLock:
    """A shared lock on a database file; release it with `release` or by leaving its `with`."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    @classmethod
    def take(cls, path: str) -> ReadLock | None:
        """Take the lock; return None while a process has the file open for writing.

        Raises:
            OSError: the file cannot be opened.
        """
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="ascii",
            start_new_session=True,  # Ctrl-C is for the parent, which may still need the lock
        )
        lock = cls(child)
        try:
            answer = lock._answer(path)
        except BaseException:
            lock.release()
            raise
        if answer == "locked":
            return lock
        lock.release()
        return None

    def copy(self, source: str, target: str) -> int:
        """Copy the locked file, or one next to it such as its WAL, to a new file; return its size, bytes.

        Blocks are shared where the file system can do that, and the copy is readable by its owner alone.

        Raises:
            OSError: it cannot be read or written; the target may be there in part.
        """
        assert self._child.stdin is not None
        return int(self._ask("copy", source, target))

    def replace(self, new: str, place: str) -> None:
        """Rename a file over the locked one.

        Raises:
            OSError: it cannot be renamed, or the lock is lost; then `place` is what it was.
        """
        status = os.stat(new)
        try:
            self._ask("rename", new, place)
        except OSError:
            # The child may have ended between the renaming and its answer.
            if not os.path.samestat(status, os.stat(place)):
                raise

    def release(self) -> None:
        """Let writers in again, and end a copy that is under way."""
        child = self._child
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # a request that the child did not live to read
                    stream.close()

    def __enter__(self) -> ReadLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _ask(self, verb: str, source: str, target: str) -> str:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps([verb, source, target]) + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            raise self._ended(target) from None
        return self._answer(target)

    def _ended(self, path: str) -> OSError:
        code = self._child.wait()
        return OSError(errno.EIO, f"the process that keeps the file locked ended ({code}); run again", path)

    def _answer(self, path: str) -> str:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise self._ended(path)
        answer = json.loads(line)
        if isinstance(answer, list):
            number, text = answer
            raise OSError(number, text, path)
        return str(answer)


def _serve(path: str) -> None:
    """Lock the file, then copy and rename what is asked for until the standard input ends."""
    try:
        locked = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.lockf(locked, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(locked), os.stat(path)):
            # Another file took this place between the two: the lock guards nothing.
            raise OSError(errno.EAGAIN, "replaced")
    except OSError as error:
        _say("busy" if error.errno in _BUSY else [error.errno, error.strerror])
        return
    _say("locked")
    for line in sys.stdin:
        verb, source, target = json.loads(line)
        try:
            if verb == "rename":
                os.replace(source, target)
                _say("renamed")
            else:
                # The locked file is read through its one descriptor: closing a second one would end the lock.
                _say(_copy(locked, target) if source == path else _copy_other(source, target))
        except OSError as error:
            _say([error.errno, error.strerror])


def _copy_other(source: str, target: str) -> int:
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _copy(descriptor, target)
    finally:
        os.close(descriptor)


def _copy(source: int, target: str) -> int:
    """Copy all that is behind a descriptor; its position is not used."""
    copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    done = 0
    by_kernel = hasattr(os, "copy_file_range")
    try:
        while True:
            if by_kernel:
                try:
                    count = os.copy_file_range(source, copy, _BLOCK, done, done)
                except OSError as error:
                    if done or error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO):
                        raise
                    by_kernel = False  # another file system, or one that cannot do it
                    continue
            else:
                block = os.pread(source, 1 << 20, done)
                count = 0
                while count < len(block):
                    count += os.pwrite(copy, block[count:], done + count)
            if not count:
                return done
            done += count
    finally:
        os.close(copy)


def _say(answer: object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
