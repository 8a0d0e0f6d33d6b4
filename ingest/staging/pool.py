"""Worker processes of which each may die: a killed or overdue one costs what it was at, never the import.

`concurrent.futures.ProcessPoolExecutor` ends as a whole with the first worker, does not say what that one was
at, and waits forever where the system refuses a process. Here a thread stands for each worker: it hands the
work over, and watches.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from ingest.source.apart import has_read
from ingest.staging.at_hand import AtHand
from ingest.staging.child import Child, WorkerLost
from ingest.staging.stage import stage_sets
from ingest.staging.task import Staged, Task

_T = TypeVar("_T")

_Job = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Workers(Executor):
    """Processes of this machine that run calls, and stage sets; to be used with `with`.

    They are forked by the thread that makes this object and calls `revive`, and by no other: `Child.forked`
    says why.
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

    @property
    def width(self) -> int:
        """The processes."""
        return len(self._workers)

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Run a call in the next worker that is free.

        The future raises WorkerLost when that worker is lost; the others go on.
        """
        future: Future[_T] = Future()
        self._queue.put((future, fn, args, kwargs))
        return future

    def stage(self, tasks: Sequence[Task], part: str) -> Future[Staged]:
        """Stage sets in the next worker that is free, as `stage_sets` does."""
        return self.submit(stage_sets, tasks, part)

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
        self._queue = queue
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._child = Child.fresh(at_hand, slot, None) if has_read() else Child.forked(at_hand, slot)

    def watch(self) -> None:
        """Start the thread.

        Raises:
            OSError: the system refuses one.
        """
        with no_threads():
            self._thread.start()

    def kill(self) -> None:
        """End the process, whatever it is at."""
        self._child.kill()

    def end(self) -> None:
        """Wait for the thread, which ends with its process or with the queue, and end the process."""
        if self._thread.ident is not None:
            self._thread.join()
        self._child.end()

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            future, fn, args, kwargs = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                answer = self._child.call(fn, args, kwargs)
            except WorkerLost as error:
                self.is_lost = True
                future.set_exception(error)
                return
            except Exception as error:  # a call that cannot be sent is its caller's
                future.set_exception(error)
                continue
            if answer.is_value:
                future.set_result(answer.value)
            else:
                future.set_exception(answer.value)


@contextmanager
def no_threads() -> Iterator[None]:
    """Turn the refusal of a thread into the error that it is."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, "the system allows no more threads") from error
