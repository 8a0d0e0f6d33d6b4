"""Stage dump sets on a Dask cluster: chunks go out to its workers, and finished parts come back.

Workers need no folder that they share with the import, only the dumps: `ingest.staging.on_cluster` says what
they do. One part at a time is fetched, written next to the others, and forgotten by the cluster.
"""

from __future__ import annotations

import json
import logging
import math
import os
import pickle
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from ingest.display import display
from ingest.dump.sets import ModuleCopy
from ingest.errors import SchedulerError, SourceError
from ingest.events import Event, WaitingForWorkers
from ingest.source.archive import Packed, PackedFiles
from ingest.source.local import source_of
from ingest.source.source import PathIn
from ingest.staging.at_hand import Reading
from ingest.staging.child import WorkerLost
from ingest.staging.on_cluster import (
    TOPIC,
    VERSIONS,
    Delivery,
    Lost,
    Refusal,
    Unseen,
    dismiss,
    is_seen,
    stage_chunk,
)
from ingest.staging.parts import put_parts
from ingest.staging.task import Staged, Task

if TYPE_CHECKING:
    from distributed import Client

LOCAL: Final = "local"
"""In the place of an address: a cluster of this machine, for as long as the import lasts."""
INSTALL: Final = f"{shlex.quote(sys.executable)} -m pip install 'distributed>=2026.3,<2027'"
"""As the extra `dask` has it, and into the environment of xbuf."""
CONNECT_SECONDS: Final = 10
CLOSE_SECONDS: Final = 5
TRIALS: Final = 4
"""Of a chunk that Dask gives up before a worker has begun with it: others were lost with their workers."""
PATIENCE_SECONDS: Final = 10.0
"""Without workers, before it is reported."""
_COUNT_SECONDS: Final = 2.0
"""For which the number of workers is taken to be what it was."""


def require_distributed() -> None:
    """Raise SchedulerError, with the line that installs it, where Dask is missing; nothing is imported."""
    from importlib.util import find_spec

    if find_spec("distributed") is None:
        raise SchedulerError(f"clusters are used by Dask, which is not installed: {INSTALL}")


@dataclass(slots=True)
class _Errand:
    """A chunk that is under way."""

    chunk: bytes
    """Its tasks, pickled."""
    part: str
    future: Future[Staged]
    is_checked: bool = False
    """It is known that files of it are not there."""
    trials: int = 0
    begun: bool = False
    """A worker has begun with it."""
    place: str | None = None
    """What that reported to be at hand last."""
    is_lost: bool = False
    """Another worker began with it, so the first one was lost."""
    sent: Any = None
    """The future of Dask."""


class Cluster:
    """The workers of a cluster, to be used with `with`, again and again; `close` ends the connection.

    It is made and used by one thread.
    """

    def __init__(self, scheduler: str, jobs: int, emit: Callable[[Event], None] = lambda _: None) -> None:
        """Connect.

        Args:
            scheduler: its address, the path of a file of it (`.json`), or LOCAL.
            jobs: processes that stage for a cluster of this machine.
            emit: called when there are no workers.

        Raises:
            SchedulerError: it does not answer.
        """
        require_distributed()
        self._name = scheduler
        self._emit = emit
        self._errands: dict[str, _Errand] = {}
        """By their keys."""
        self._width = 0
        self._counted = -_COUNT_SECONDS
        self._idle_since: float | None = None
        self._fetching = ThreadPoolExecutor(1)
        self._log = logging.getLogger("distributed.client")
        self._log_level = self._log.level
        self._own: Any = None
        """The cluster, if it is of this machine."""
        self._client: Any = None
        try:
            self._client = self._connect(scheduler, jobs)
            self._log.setLevel(logging.CRITICAL)  # what it logs at ERROR is reported in words of ours
        except (OSError, ValueError) as error:
            self.close()
            raise SchedulerError(
                f"{display(scheduler)}: the scheduler cannot be reached: {error}; is it the address that"
                " `dask scheduler` prints?"
            ) from error
        self._client.subscribe_topic(TOPIC, self._hear)

    def _connect(self, scheduler: str, jobs: int) -> Client:
        from distributed import Client, LocalCluster  # 0.7 s

        if scheduler == LOCAL:
            # Within this process: it needs no port, by which others of this machine could run anything.
            self._own = LocalCluster(
                processes=False,
                n_workers=1,
                threads_per_worker=max(jobs, 1),
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
            return Client(self._own, set_as_default=False)
        address = _address_in(scheduler) if scheduler.endswith(".json") else scheduler
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)

    @property
    def width(self) -> int:
        """Chunks that the workers stage at the same time; 1 while there are none."""
        now = time.monotonic()
        if now - self._counted >= _COUNT_SECONDS:
            try:
                self._width = sum(self._client.nthreads().values())
            except Exception as error:  # whatever the connection fails with
                raise self._is_away() from error
            self._counted = now
            if self._width:
                self._idle_since = None
            elif self._idle_since is None:
                self._idle_since = now
            elif now - self._idle_since >= PATIENCE_SECONDS:
                self._idle_since = math.inf  # once is enough
                self._emit(WaitingForWorkers(self._name))
        return max(self._width, 1)

    def stage(self, tasks: Sequence[Task], part: str) -> Future[Staged]:
        """Let the next worker that is free stage sets; the future raises as `_answer` and `_staged`."""
        future: Future[Staged] = Future()
        self._send(_Errand(pickle.dumps([_with_module(task) for task in tasks]), part, future))
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
        self._log.setLevel(self._log_level)
        self._fetching.shutdown()  # without a connection nothing is waited for

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._stop()

    def _stop(self) -> None:
        """Take back what is under way."""
        errands, self._errands = list(self._errands.values()), {}
        for errand in errands:
            errand.future.cancel()
        if errands:
            self._client.cancel([errand.sent for errand in errands])

    def _send(self, errand: _Errand) -> None:
        import dask

        key = f"xbuf-{token_hex(8)}"
        errand.trials += 1
        errand.begun, errand.place = False, None
        self._errands[key] = errand
        # Dask warns of a task of 10 MB, as the content of an archive may be.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            errand.sent = self._client.submit(
                stage_chunk, VERSIONS, errand.chunk, errand.is_checked, key=key, pure=False
            )

        def fetch(_: object) -> None:
            if not errand.future.cancelled():
                self._fetching.submit(self._fetch, key, errand)

        errand.sent.add_done_callback(fetch)

    def _hear(self, event: tuple[float, tuple[str, bytes | None]]) -> None:
        """Note what a worker is at; called by the thread of the connection."""
        key, place = event[1]
        errand = self._errands.get(key)
        if errand is None:  # of another import
            return
        if place is not None:
            errand.place = os.fsdecode(place)
        elif errand.place is not None:
            # Dask gives it to another worker, and would give it to more, each of which may die of it.
            errand.is_lost = True
            self._fetching.submit(errand.sent.cancel)
        errand.begun = True

    def _fetch(self, key: str, errand: _Errand) -> None:
        """Let a future come to what a worker has answered; runs in the thread that fetches."""
        staged: Staged | Exception | None
        future = errand.future
        self._errands.pop(key, None)
        try:
            staged = self._staged(self._answer(errand), errand)
        except Exception as error:
            staged = error
        if staged is None:
            if not future.cancelled():
                self._send(errand)
        elif future.set_running_or_notify_cancel():
            if isinstance(staged, Exception):
                future.set_exception(staged)
            else:
                future.set_result(staged)

    def _answer(self, errand: _Errand) -> Any:
        """Return what a worker has answered, which the cluster forgets; None where none has begun.

        Raises:
            WorkerLost: it was lost.
            SchedulerError: the cluster cannot do it.
        """
        from distributed import CancelledError, KilledWorker

        reading = None if errand.place is None else Reading(errand.place, 0.0)
        try:
            return errand.sent.result()
        except CancelledError as error:
            if errand.is_lost:
                raise WorkerLost(reading, overdue=False) from error
            raise self._is_away() from error
        except KilledWorker as error:
            if errand.begun or errand.trials >= TRIALS:
                raise WorkerLost(reading, overdue=False) from error
            return None
        except Exception as error:
            raise SchedulerError(
                f"{self._name}: the cluster cannot stage dumps ({type(error).__name__}: {error}); install"
                f" {' and '.join(VERSIONS)} where its scheduler and workers run"
            ) from error

    def _staged(self, answer: Any, errand: _Errand) -> Staged | None:
        """Put parts where they belong; return None where the chunk is to be staged again.

        Raises:
            WorkerLost: the process that read the chunk was lost.
            SourceError: what the sets are read from is of no use any more.
            SchedulerError: a worker cannot do it.
            OSError: the staging folder cannot be written.
        """
        match answer:
            case None:
                return None
            case Delivery(staged, parts):
                put_parts(errand.part, parts)
                return replace(staged, part=errand.part if parts else None)
            case Lost(place, seconds, overdue):
                raise WorkerLost(Reading(place, seconds) if place else None, overdue=overdue)
            case Unseen(host, task):
                if not is_seen(task):  # it was removed: the worker finds so then, and says it as of any other
                    errand.is_checked = True
                    return None
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


def _address_in(path: str) -> str:
    """Return the address in a file that `dask scheduler --scheduler-file` has written.

    Raises:
        OSError: it cannot be read.
        ValueError: it is another file.
    """
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    address = content.get("address") if isinstance(content, dict) else None
    if not isinstance(address, str):
        raise ValueError("the file names no address")
    return address


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
