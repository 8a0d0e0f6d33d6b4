"""A process that runs one call after another, and may die: what it was at is known then."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import ForkContext, SpawnContext
from typing import Any, Final, NamedTuple

from ingest.staging.at_hand import AtHand, Reading, take_slot

__all__ = ["Answer", "Child", "WorkerLost"]

LIMIT_SECONDS: Final = 300.0
"""For one dump, or one piece of a large one: 300 times what 8 MiB of text take."""
_LOOK_SECONDS: Final = 1.0


class WorkerLost(BrokenExecutor):
    """A worker was killed, or took too long.

    Attributes:
        at_hand: what it was reading; None when it was between dumps, or at a piece of one, or nobody knows.
        overdue: it took longer than the limit.
    """

    def __init__(self, at_hand: Reading | None, *, overdue: bool) -> None:
        self.at_hand, self.overdue = at_hand, overdue
        super().__init__("took too long" if overdue else "was killed")


class Answer(NamedTuple):
    """What a call came to: its value, or the exception that it raised."""

    is_value: bool
    value: Any


class Child:
    """A process that runs calls, for one thread at a time.

    It is forked by the thread that makes this object: one that knows that no lock of DuckDB's or Arrow's is
    held.
    """

    def __init__(self, at_hand: AtHand, slot: int) -> None:
        """Start the process, which notes what it reads in a slot.

        Raises:
            OSError: the system refuses it.
        """
        self._at_hand, self._slot = at_hand, slot
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = _context().Process(target=_work, args=(theirs, at_hand, slot), daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()  # the child's copy is the last one: its end is the end of the pipe

    def call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        """Run a call in the process, and wait for what it comes to.

        Raises:
            WorkerLost: the process is gone; it can only be ended.
            Exception: the call cannot be sent.
        """
        try:
            self._pipe.send((fn, args, kwargs))
            return self._await()
        except (EOFError, OSError):
            raise WorkerLost(self._reading(), overdue=False) from None

    def kill(self) -> None:
        """End the process, whatever it is at."""
        self._process.kill()

    def end(self) -> None:
        """End the process, and wait for its end."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _await(self) -> Answer:
        waited = 0.0
        while not self._pipe.poll(_LOOK_SECONDS):
            waited += _LOOK_SECONDS
            if waited < LIMIT_SECONDS:
                continue
            # A call may have many dumps, each with a time of its own.
            at_hand = self._reading()
            if at_hand is None or at_hand.seconds >= LIMIT_SECONDS:
                self._process.kill()
                raise WorkerLost(at_hand, overdue=True)
        return Answer(*self._pipe.recv())

    def _reading(self) -> Reading | None:
        slots = self._at_hand.read()
        return slots[self._slot] if self._slot < len(slots) else None


def _work(pipe: Connection, at_hand: AtHand, slot: int) -> None:
    """Be a child: run what comes, send back what it came to."""
    _prepare()
    take_slot(at_hand, slot)
    while True:
        try:
            fn, args, kwargs = pipe.recv()
        except EOFError:
            return
        try:
            answer = True, fn(*args, **kwargs)
        except Exception as error:
            answer = False, error
        pipe.send(answer)


def _context() -> ForkContext | SpawnContext:
    """Fork where that is safe: a child starts with all modules loaded, and no lock is held."""
    if sys.platform == "linux":
        return multiprocessing.get_context("fork")
    return multiprocessing.get_context("spawn")


def _prepare() -> None:
    """Leave Ctrl-C to the parent, and SIGTERM that goes to all processes of a service; end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Rows are lists and tuples by the million, none of them in a cycle: to look for cycles took a tenth of
    # a worker's time.
    gc.freeze()
    gc.set_threshold(1_000_000, 20, 20)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
