"""Worker processes of which each may die: a killed or overdue one costs what it was at, never the import.

`concurrent.futures.ProcessPoolExecutor` ends as a whole with the first worker, does not say what that one was
at, and waits forever where the system refuses a process. Here a thread stands for each worker: it hands the
work over, and watches.
"""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import ForkContext, SpawnContext
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from ingest.staging.at_hand import AtHand, Reading, take_slot

__all__ = ["WorkerLost", "Workers", "no_threads"]

_T = TypeVar("_T")
LIMIT_SECONDS: Final = 300.0
"""For one dump, or one piece of a large one: 300 times what 8 MiB of text take."""
_LOOK_SECONDS: Final = 1.0

_Job = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class WorkerLost(BrokenExecutor):
    """A worker was killed, or took too long.

    Attributes:
        at_hand: what it was reading; None when it was between dumps, or at a piece of one.
        overdue: it took longer than the limit.
    """

    def __init__(self, at_hand: Reading | None, *, overdue: bool) -> None:
        self.at_hand, self.overdue = at_hand, overdue
        super().__init__("took too long" if overdue else "was killed")


class Workers(Executor):
    """Processes that run calls; to be used with `with`.

    Processes are forked by the thread that makes this object and calls `revive`, and by no other: it knows
    when no lock of DuckDB's or Arrow's is held.
    """

    def __init__(self, jobs: int, at_hand: AtHand) -> None:
        """Start the processes.

        Raises:
            OSError: the system refuses one.
        """
        self._at_hand = at_hand
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._workers: list[_Worker] = []
        try:
            for slot in range(1, jobs + 1):
                self._workers.append(_Worker(slot, self._at_hand, self._queue))
            for worker in self._workers:
                worker.watch()
        except BaseException:
            self.shutdown(cancel_futures=True)
            raise

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Run a call in the next worker that is free.

        The future raises WorkerLost when that worker is lost; the others go on.
        """
        future: Future[_T] = Future()
        self._queue.put((future, fn, args, kwargs))
        return future

    def revive(self) -> None:
        """Put new processes in the place of lost ones.

        Raises:
            OSError: the system refuses one.
        """
        for number, worker in enumerate(self._workers):
            if worker.is_lost:
                worker.end()
                self._workers[number] = _Worker(worker.slot, self._at_hand, self._queue)
                self._workers[number].watch()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers: once all is done, or at once with `cancel_futures`."""
        if cancel_futures:
            self._cancel()
            for worker in self._workers:
                worker.kill()
        for _ in self._workers:
            self._queue.put(None)
        for worker in self._workers:
            worker.end()
        self._cancel()  # where the last worker was lost

    def _cancel(self) -> None:
        while not self._queue.empty():
            job = self._queue.get()
            if job is not None:
                job[0].cancel()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.shutdown(cancel_futures=kind is not None)


class _Worker:
    """One process, and the thread that stands for it."""

    def __init__(self, slot: int, at_hand: AtHand, queue: SimpleQueue[_Job | None]) -> None:
        self.slot = slot
        self.is_lost = False
        self._at_hand = at_hand
        self._queue = queue
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = _context().Process(target=_work, args=(theirs, at_hand, slot), daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()  # the worker's copy is the last one: its end is the end of the pipe

    def watch(self) -> None:
        """Start the thread.

        Raises:
            OSError: the system refuses one.
        """
        with no_threads():
            self._thread.start()

    def kill(self) -> None:
        """End the process, whatever it is at."""
        self._process.kill()

    def end(self) -> None:
        """Wait for the thread, which ends with its process or with the queue, and end the process."""
        if self._thread.ident is not None:
            self._thread.join()
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            future, *call = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                self._pipe.send(call)
                result = self._await()
            except (EOFError, OSError):
                self.is_lost = True
                future.set_exception(WorkerLost(self._reading(), overdue=False))
                return
            except WorkerLost as error:
                self.is_lost = True
                future.set_exception(error)
                return
            except Exception as error:  # a call that cannot be sent is its caller's
                future.set_exception(error)
                continue
            done, value = result
            if done:
                future.set_result(value)
            else:
                future.set_exception(value)

    def _await(self) -> tuple[bool, Any]:
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
        answer: tuple[bool, Any] = self._pipe.recv()
        return answer

    def _reading(self) -> Reading | None:
        slots = self._at_hand.read()
        return slots[self.slot] if self.slot < len(slots) else None


@contextmanager
def no_threads() -> Iterator[None]:
    """Turn the refusal of a thread into the error that it is."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, "the system allows no more threads") from error


def _work(pipe: Connection, at_hand: AtHand, slot: int) -> None:
    """Be a worker: run what comes, send back what it came to."""
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
