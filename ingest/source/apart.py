"""Run a generator in a process of its own.

What reads object stores keeps threads, and a process with these cannot be forked: its child waits for ever
for threads that it has not. So the process of an import, whose workers are forked, never reads there itself.
And a process can be ended when its time is up, whatever it waits for.

An import without workers (`jobs=0`) runs where nobody may fork, as in a program with JAX's threads, and reads
stores itself. So does what opens a lake, in a store or a folder, and a program that uses the libraries for
something of its own. From then on no process that it forks can, and workers are new programs
(`ingest.staging.child.Child.fresh`).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

from ingest.errors import SourceError
from ingest.source.source import Terms

_T = TypeVar("_T")
_LOOK_SECONDS: Final = 0.5
_WITH_THREADS: Final = ("deltalake", "obstore")

_reader: int | None = None
"""The process that has read a store or opened a lake, here or in a parent of this one."""


def has_read() -> bool:
    """Say whether this process may have read a store or opened a lake, so that a child of it cannot."""
    return _reader == os.getpid() or not sys.modules.keys().isdisjoint(_WITH_THREADS)


def require_own() -> None:
    """Note that this process reads a store or opens a lake.

    Raises:
        SourceError: a parent of it has, so that it would wait for ever.
    """
    global _reader
    if _reader not in (None, os.getpid()):
        raise SourceError(
            "the process that forked this one has read a store or opened a lake itself, so that this one"
            " would wait for ever; import with jobs=0, or by a program of its own"
        )
    _reader = os.getpid()


def apart(make: Callable[..., Iterator[_T]], *arguments: Any, what: str, terms: Terms) -> Iterator[_T]:
    """Yield what a generator yields that another process runs; its errors are raised here.

    Args:
        make: makes the generator; it and the arguments are sent to the process where that is not forked.
        arguments: for `make`.
        what: what is read, for messages.
        terms: of reading; where they say so, or `has_read`, this process runs the generator.

    Raises:
        SourceError: the time is up, or the process was killed.
    """
    if not terms.is_apart or has_read():
        yield from make(*arguments)
        return
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pipe, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, make, arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        while True:
            while not pipe.poll(_LOOK_SECONDS):
                if terms.deadline is not None and time.time() > terms.deadline:
                    raise late(what)
            try:
                kind, value = pipe.recv()
            except EOFError:
                raise SourceError(f"{what}: the process that read it was killed; run again") from None
            if kind == "item":
                yield value
            elif kind == "error":
                raise value
            else:
                return
    finally:
        process.kill()
        process.join()
        pipe.close()


def late(what: str) -> SourceError:
    """Return the error of what was not read in time."""
    return SourceError(f"{what}: was not read in time; run again, or give it more with --source-timeout")


def _run(pipe: Connection, make: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for item in make(*arguments):
            pipe.send(("item", item))
        pipe.send(("end", None))
    except BrokenPipeError:
        pass  # nobody wants more
    except Exception as error:
        pipe.send(("error", error))
