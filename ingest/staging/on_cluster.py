"""What a worker of a Dask cluster does for an import: stage a chunk of sets, and hand their rows over.

A process of its own reads the dumps, as on the machine of the import: it may die, or be killed when it takes
too long, and nothing that staging needs is changed in the life of the worker. It is kept for the next chunk.
"""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from ingest.errors import SourceError
from ingest.source.local import status_of
from ingest.staging.at_hand import AtHand, Reading
from ingest.staging.child import IDLE_SECONDS, Child, WorkerLost
from ingest.staging.parts import take_parts
from ingest.staging.task import Staged, Task
from ingest.version import VERSION

VERSIONS: Final = (f"xbuf {VERSION}", f"Python {sys.version_info.major}.{sys.version_info.minor}")
"""What must be the same where sets are found and where they are staged."""
TOPIC: Final = "xbuf"
"""Of the events by which workers report a chunk that they begin, (key, None), and what is at hand for more
than a second, (key, place)."""
_PART: Final = "part"


class Delivery(NamedTuple):
    """What became of a chunk.

    Attributes:
        staged: as of `stage_sets`.
        parts: content of the files of each part, by what its name has more than that of the first.
    """

    staged: Staged
    parts: dict[str, dict[str, bytes]]


class Lost(NamedTuple):
    """The process that read the chunk was killed, or took too long; `place` is the set that it was at."""

    place: str | None
    seconds: float
    overdue: bool


class Refusal(NamedTuple):
    """This worker cannot stage anything.

    Attributes:
        reason: in words.
        is_source: what the sets are read from is of no use any more.
    """

    host: str
    reason: str
    is_source: bool = False


class Unseen(NamedTuple):
    """A set of the chunk is not there, where this worker runs."""

    host: str
    task: Task


def stage_chunk(
    versions: tuple[str, ...], chunk: bytes, is_checked: bool
) -> Delivery | Lost | Refusal | Unseen:
    """Stage the sets of a chunk; called by Dask.

    Args:
        versions: `VERSIONS` of the import.
        chunk: its tasks, pickled.
        is_checked: the import knows of files that are not there.
    """
    from distributed import get_worker

    host = socket.gethostname()
    if versions != VERSIONS:
        return Refusal(
            host,
            f"has {' and '.join(VERSIONS)}, and this import {' and '.join(versions)}; install the same there",
        )
    worker = get_worker()
    key = worker.get_current_task()
    reported: bytes | None = None
    worker.log_event(TOPIC, (key, reported))

    def look(at_hand: Reading | None) -> bool:
        """Report what is at hand, for when this worker dies as a whole; stop what nobody waits for."""
        nonlocal reported
        if at_hand is not None and (place := os.fsencode(at_hand.place)) != reported:
            reported = place
            worker.log_event(TOPIC, (key, place))
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    try:
        with _hand(worker.local_directory) as hand:
            part = str(hand.folder / _PART)
            answer = hand.child.call(_stage, (chunk, part, is_checked), {}, look)
            if not answer.is_value:
                raise answer.value
            outcome: Staged | Task = answer.value
            if isinstance(outcome, Task):
                return Unseen(host, outcome)
            return Delivery(outcome, take_parts(part))
    except WorkerLost as error:
        at_hand = error.at_hand
        if at_hand is None:
            return Lost(None, 0.0, error.overdue)
        return Lost(at_hand.place, at_hand.seconds, error.overdue)
    except SourceError as error:
        return Refusal(host, str(error), is_source=True)
    except OSError as error:
        return Refusal(host, f"fails: {error}")


def dismiss() -> None:
    """End the processes that wait for another chunk, at the end of a cluster within this process."""
    while _idle:
        _idle.pop().end()


def is_seen(task: Task) -> bool:
    """Return whether there are files of a set where this is asked."""
    dump_set = task.dump_set
    with suppress(OSError):
        return status_of(dump_set.path(dump_set.members[0])) is not None
    return False


def _stage(chunk: bytes, part: str, is_checked: bool) -> Staged | Task:
    """Stage a chunk, in the process of its own; return a set of which nothing is there."""
    tasks: list[Task] = pickle.loads(chunk)
    if not is_checked:
        # One of each folder: a folder is mounted here or is not.
        folders = {task.dump_set.directory: task for task in tasks if task.dump_set.source is None}
        for task in folders.values():
            if not is_seen(task):
                return task
    from ingest.staging.stage import stage_sets  # 0.4 s, which the worker has no need of

    return stage_sets(tasks, part)


@dataclass(frozen=True, slots=True)
class _Hand:
    """A process that stages, and the folder that it works in."""

    child: Child
    folder: Path
    idle_since: float = 0.0

    @classmethod
    def start(cls, scratch: str) -> _Hand:
        folder = Path(tempfile.mkdtemp(prefix="xbuf-", dir=scratch))
        try:
            return cls(Child.fresh(AtHand.create(folder / "at-hand", 1), 0), folder)
        except BaseException:
            shutil.rmtree(folder)
            raise

    def end(self) -> None:
        self.child.end()
        shutil.rmtree(self.folder, ignore_errors=True)  # a worker that ends has removed it


_idle: Final[list[_Hand]] = []
"""Processes that wait for another chunk; a list is safe for threads that only append and pop."""


@contextmanager
def _hand(scratch: str) -> Iterator[_Hand]:
    """Give a process for one chunk: one that waits, or a new one. It is kept unless it fails."""
    hand = None
    while hand is None and _idle:
        hand = _idle.pop()
        # Long before it ends by itself: it must not end while it is given the next chunk.
        if time.monotonic() - hand.idle_since > IDLE_SECONDS / 2:
            hand.end()
            hand = None
    hand = hand or _Hand.start(scratch)
    try:
        yield hand
    except BaseException:
        hand.end()
        raise
    _idle.append(replace(hand, idle_since=time.monotonic()))
