"""A process that runs one call after another, and may die: what it was at is known then."""

from __future__ import annotations

import gc
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import ForkContext, SpawnContext
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from ingest.staging.at_hand import AtHand, Reading, take_slot

LIMIT_SECONDS: Final = 300.0
"""For one dump, or one piece of a large one: 300 times what 8 MiB of text take."""
IDLE_SECONDS: Final = 30.0
"""After which a child without a call ends, if it was started to."""
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


class _Process(Protocol):
    """What a child needs of the process that it is."""

    def kill(self) -> None: ...

    def join(self) -> None: ...


class _Program(subprocess.Popen[bytes]):
    """A process that runs another program, as a `_Process`."""

    def join(self) -> None:
        self.wait()


class Child:
    """A process that runs calls, for one thread at a time; it notes what it reads in a slot."""

    def __init__(self, at_hand: AtHand, slot: int, pipe: Connection, process: _Process) -> None:
        """Take a process that was started: see `forked` and `fresh`."""
        self._at_hand, self._slot = at_hand, slot
        self._pipe, self._process = pipe, process

    @classmethod
    def forked(cls, at_hand: AtHand, slot: int) -> Child:
        """Fork this process, whose modules the child has then.

        For the thread that knows that no lock of DuckDB's or Arrow's is held.

        Raises:
            OSError: the system refuses it.
        """
        pipe, theirs = multiprocessing.Pipe()
        process = _context().Process(target=_work, args=(theirs, at_hand, slot), daemon=True)
        try:
            process.start()
        except BaseException:
            pipe.close()
            raise
        finally:
            theirs.close()  # the child's copy is the last one: its end is the end of the pipe
        return cls(at_hand, slot, pipe, process)

    @classmethod
    def fresh(cls, at_hand: AtHand, slot: int, idle_seconds: float | None = IDLE_SECONDS) -> Child:
        """Start a new Python, 0.5 s with what staging imports.

        For a process that has threads, or is a daemon and may not have children of `multiprocessing`.

        Args:
            at_hand: where it notes what it reads.
            slot: its place there.
            idle_seconds: it ends by itself when it has had nothing to do for so long; None for never.

        Raises:
            OSError: the system refuses it.
        """
        pipe, theirs = multiprocessing.Pipe()
        program = "import sys; from ingest.staging.child import serve; serve(*sys.argv[1:])"
        arguments = (str(theirs.fileno()), str(at_hand.path), str(slot), str(idle_seconds or ""))
        try:
            process = _Program(
                [sys.executable, "-P", "-c", program, *arguments],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C goes to all processes of a session
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        except BaseException:
            pipe.close()
            raise
        finally:
            theirs.close()
        return cls(at_hand, slot, pipe, process)

    def call(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        look: Callable[[Reading | None], bool] = lambda _: True,
    ) -> Answer:
        """Run a call in the process, and wait for what it comes to.

        Args:
            fn: what to call; it and the arguments are sent.
            args: for `fn`.
            kwargs: for `fn`.
            look: called each second with what is being read; once it returns False, the process is killed.

        Raises:
            WorkerLost: the process is gone; it can only be ended.
            Exception: the call cannot be sent.
        """
        try:
            self._pipe.send((fn, args, kwargs))
            return self._await(look)
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

    def _await(self, look: Callable[[Reading | None], bool]) -> Answer:
        waited = 0.0
        while not self._pipe.poll(_LOOK_SECONDS):
            at_hand = self._reading()
            if not look(at_hand):
                self._process.kill()
                raise WorkerLost(at_hand, overdue=False)
            waited += _LOOK_SECONDS
            if waited < LIMIT_SECONDS:
                continue
            # A call may have many dumps, each with a time of its own.
            if at_hand is None or at_hand.seconds >= LIMIT_SECONDS:
                self._process.kill()
                raise WorkerLost(at_hand, overdue=True)
        return Answer(*self._pipe.recv())

    def _reading(self) -> Reading | None:
        slots = self._at_hand.read()
        return slots[self._slot] if self._slot < len(slots) else None


def serve(descriptor: str, at_hand: str, slot: str, idle_seconds: str) -> None:
    """Be a child that was started as a new Python; the arguments are those of its command line."""
    pipe = Connection(int(descriptor))
    hung_up = select.poll()
    hung_up.register(pipe.fileno(), 0)  # no event but the end of the other side
    _prepare(hung_up.poll)
    take_slot(AtHand(Path(at_hand)), int(slot))
    while pipe.poll(float(idle_seconds) if idle_seconds else None):
        try:
            _answer(pipe)
        except EOFError:
            return


def _work(pipe: Connection, at_hand: AtHand, slot: int) -> None:
    """Be a child that was forked: run what comes, until the parent closes the pipe."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    _prepare(lambda: wait_for([parent.sentinel]))
    take_slot(at_hand, slot)
    while True:
        try:
            _answer(pipe)
        except EOFError:
            return


def _answer(pipe: Connection) -> None:
    """Run the next call, and send back what it came to."""
    fn, args, kwargs = pipe.recv()
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


def _prepare(wait_for_parents_end: Callable[[], object]) -> None:
    """Leave Ctrl-C to the parent, and SIGTERM that goes to all processes of a service; end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Rows are lists and tuples by the million, none of them in a cycle: to look for cycles took a tenth of
    # a worker's time.
    gc.freeze()
    gc.set_threshold(1_000_000, 20, 20)

    def end_with_parent() -> None:
        wait_for_parents_end()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
