"""Stage dump sets on a Dask cluster: chunks go out to its workers, and finished parts come back.

Workers need no folder that they share with the import, only the dumps: `ingest.staging.on_cluster` says what
they do. One part at a time is fetched, written next to the others, and forgotten by the cluster.
"""

from __future__ import annotations

import logging
import os
import pickle
import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from ingest.display import display
from ingest.dump.sets import ModuleCopy
from ingest.errors import SchedulerError, SourceError
from ingest.source.archive import Packed, PackedFiles
from ingest.source.local import source_of
from ingest.source.source import PathIn
from ingest.staging.at_hand import Reading
from ingest.staging.child import WorkerLost
from ingest.staging.on_cluster import VERSIONS, Delivery, Lost, Refusal, Unseen, dismiss, is_seen, stage_chunk
from ingest.staging.parts import put_parts
from ingest.staging.task import Staged, Task

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["LOCAL", "Cluster", "require_distributed"]

LOCAL: Final = "local"
"""In the place of an address: a cluster of this machine, for as long as the import lasts."""
INSTALL: Final = f"{shlex.quote(sys.executable)} -m pip install 'distributed>=2026.3,<2027'"
"""As the extra `dask` has it, and into the environment of xbuf."""
CONNECT_SECONDS: Final = 10
CLOSE_SECONDS: Final = 5
_COUNT_SECONDS: Final = 2.0
"""For which the number of workers is taken to be what it was."""


def require_distributed() -> None:
    """Raise SchedulerError, with the line that installs it, where Dask is missing; nothing is imported."""
    from importlib.util import find_spec

    if find_spec("distributed") is None:
        raise SchedulerError(f"clusters are used by Dask, which is not installed: {INSTALL}")


class Cluster:
    """The workers of a cluster, to be used with `with`, again and again; `close` ends the connection.

    It is made and used by one thread.
    """

    def __init__(self, scheduler: str, jobs: int) -> None:
        """Connect.

        Args:
            scheduler: its address, the path of a file of it (`.json`), or LOCAL.
            jobs: processes that stage for a cluster of this machine.

        Raises:
            SchedulerError: it does not answer.
        """
        require_distributed()
        self._name = scheduler
        self._under_way: dict[Future[Staged], Any] = {}
        """What was asked for, and the future of Dask by which it was."""
        self._counted = (0.0, 0)
        self._fetching = ThreadPoolExecutor(1)
        self._own: Any = None
        """The cluster, if it is of this machine."""
        self._client: Any = None
        try:
            self._client = self._connect(scheduler, jobs)
        except (OSError, ValueError) as error:
            self.close()
            raise SchedulerError(
                f"{scheduler}: the scheduler cannot be reached: {error}; is it the address that"
                " `dask scheduler` prints?"
            ) from error

    def _connect(self, scheduler: str, jobs: int) -> Client:
        from distributed import Client, LocalCluster  # 0.7 s

        if scheduler == LOCAL:
            # Within this process: it needs no port, by which others of this machine could run anything.
            self._own = LocalCluster(
                processes=False,
                n_workers=1,
                threads_per_worker=jobs,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
            return Client(self._own, set_as_default=False)
        if scheduler.endswith(".json"):
            with open(scheduler, encoding="utf-8"):
                pass  # Dask waits for a file that is missing, for ever
            return Client(scheduler_file=scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        return Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)

    @property
    def width(self) -> int:
        """Chunks that the workers stage at the same time; 1 while there are none."""
        moment, count = self._counted
        if time.monotonic() - moment > _COUNT_SECONDS:
            try:
                count = sum(self._client.nthreads().values())
            except Exception as error:  # whatever the connection fails with
                raise self._is_away() from error
            self._counted = time.monotonic(), count
        return max(count, 1)

    def stage(self, tasks: Sequence[Task], part: str) -> Future[Staged]:
        """Let the next worker that is free stage sets; the future raises as `_answer` and `_staged`."""
        future: Future[Staged] = Future()
        self._send(future, [_with_module(task) for task in tasks], part, is_checked=False)
        return future

    def revive(self) -> None:
        """Do nothing: the cluster replaces its workers."""

    def close(self) -> None:
        """End the connection, and a cluster that was made for it."""
        self._stop()
        for one in (self._client, self._own):
            if one is not None:
                one.close(timeout=CLOSE_SECONDS)
        if self._own is not None:
            dismiss()
        self._fetching.shutdown()  # without a connection nothing is waited for

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._stop()

    def _stop(self) -> None:
        """Take back what is under way."""
        under_way, self._under_way = self._under_way, {}
        for future in under_way:
            future.cancel()
        if under_way:
            self._client.cancel(list(under_way.values()))

    def _send(self, future: Future[Staged], tasks: list[Task], part: str, *, is_checked: bool) -> None:
        chunk, key = pickle.dumps(tasks), f"xbuf-{token_hex(8)}"
        sent = self._client.submit(stage_chunk, VERSIONS, chunk, is_checked, key=key, pure=False)
        self._under_way[future] = sent

        def fetch(done: Any) -> None:
            if not future.cancelled():
                self._fetching.submit(self._fetch, future, tasks, part, done)

        sent.add_done_callback(fetch)

    def _fetch(self, future: Future[Staged], tasks: list[Task], part: str, sent: Any) -> None:
        """Let a future come to what a worker has answered; runs in the thread that fetches."""
        staged: Staged | BaseException
        try:
            answer = self._answer(sent)
            if isinstance(answer, Unseen) and not is_seen(answer.task):
                # It was removed: the worker will find so, and say it as of any other.
                if not future.cancelled():
                    self._send(future, tasks, part, is_checked=True)
                return
            staged = self._staged(answer, part)
        except Exception as error:
            staged = error
        self._under_way.pop(future, None)
        if not future.set_running_or_notify_cancel():
            return
        if isinstance(staged, BaseException):
            future.set_exception(staged)
        else:
            future.set_result(staged)

    def _answer(self, sent: Any) -> Any:
        """Return what a worker has answered; the cluster forgets it."""
        from distributed import CancelledError, KilledWorker

        try:
            return sent.result()
        except CancelledError as error:
            raise self._is_away() from error
        except KilledWorker as error:
            raise WorkerLost(None, overdue=False) from error
        except Exception as error:
            raise SchedulerError(
                f"{self._name}: the cluster cannot stage dumps ({type(error).__name__}: {error}); install"
                f" {' and '.join(VERSIONS)} where its scheduler and workers run"
            ) from error

    def _staged(self, answer: Any, part: str) -> Staged:
        """Put parts where they belong.

        Raises:
            WorkerLost: the process that read the chunk was lost.
            SourceError: what the sets are read from is of no use any more.
            SchedulerError: a worker cannot do it.
            OSError: the staging folder cannot be written.
        """
        match answer:
            case Delivery(staged, parts):
                put_parts(part, parts)
                return replace(staged, part=part if parts else None)
            case Lost(place, seconds, overdue):
                raise WorkerLost(Reading(place, seconds) if place else None, overdue=overdue)
            case Unseen(host, task):
                path = display(task.dump_set.path(task.dump_set.members[0]))
                raise SchedulerError(
                    f"{path}: is there, but not for the worker on {host}; let all workers see the dumps at"
                    " the same path, or give a URL"
                )
            case Refusal(host, reason, is_source):
                raise (SourceError if is_source else SchedulerError)(f"the worker on {host}: {reason}")
        raise AssertionError(answer)

    def _is_away(self) -> SchedulerError:
        return SchedulerError(
            f"{self._name}: the connection to the scheduler is lost; run again when it is back: what was read"
            " until then is kept"
        )


def _with_module(task: Task) -> Task:
    """Return a task with its module in memory, if that was copied out of a profile to this machine."""
    place = task.dump_set.in_profile
    if place is None or place.copy is None:
        return task
    path, offset = place.copy
    data = source_of(path).read_range(path, offset, place.length)
    name = os.path.basename(path)
    copy = ModuleCopy(PathIn(name, PackedFiles({name: Packed(data, len(data))})), 0)
    return replace(task, dump_set=task.dump_set._replace(in_profile=place._replace(copy=copy)))
