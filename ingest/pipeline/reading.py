"""Read the planned dump sets into the staging folder, and keep count of what becomes of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ingest.database.refusals import explain
from ingest.errors import XbufError
from ingest.events import Event, SetRejected
from ingest.pipeline.journal import Journal, staging_folder
from ingest.pipeline.summary import Progress
from ingest.staging.workers import stage_tasks

if TYPE_CHECKING:
    from ingest.staging.stage import Rejected, Staged, Task

__all__ = ["Outcome", "read_tasks", "reading_failed", "set_names", "set_rejected"]

RETRY_SECONDS: Final = 1.5
"""Pause before a set that was still being written is read again."""


@dataclass(slots=True)
class Outcome:
    """Sums over the calls of the workers, and what the plan counted before them."""

    found: int = 0
    loaded: int = 0
    unchanged: int = 0
    rows: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    unfinished: list[Task] = field(default_factory=list)
    touched: list[tuple[int, tuple[str, str, int, int]]] = field(default_factory=list)

    def add(self, staged: Staged) -> None:
        """Add what one call of a worker did."""
        self.loaded += staged.loaded
        self.unchanged += staged.unchanged
        self.rows += staged.rows
        self.rejected += staged.rejected
        self.unfinished += staged.unfinished
        self.touched += [(touch.run_id, file) for touch in staged.touched for file in touch.files]


def read_tasks(
    tasks: Sequence[Task],
    journal: Journal,
    jobs: int,
    outcome: Outcome,
    report: Callable[[Progress], None],
    tell: Callable[[Event], None],
    meanwhile: Callable[[], None],
) -> None:
    """Stage all tasks; those still being written are tried once more after a pause."""
    done = 0
    for round_ in range(2):
        if round_:
            if not outcome.unfinished:
                return
            time.sleep(RETRY_SECONDS)
            tasks, outcome.unfinished = [_found_again(task) for task in outcome.unfinished], []
            done -= len(tasks)
        for count, staged in stage_tasks(tasks, journal, jobs, round_, meanwhile):
            outcome.add(staged)
            for one in staged.rejected:
                tell(set_rejected(one))
            done += count
            report(Progress("read", done, len(tasks) if not round_ else done))


def _found_again(task: Task) -> Task:
    """Return the task with the sizes and times that its files have now."""
    members = []
    for member in task.dump_set.members:
        try:
            status = os.stat(task.dump_set.path(member), follow_symlinks=False)
            members.append(member._replace(size=status.st_size, mtime_ns=status.st_mtime_ns))
        except OSError:
            members.append(member)  # gone: staging it again will say so
    return replace(task, dump_set=task.dump_set._replace(members=tuple(members)))


def reading_failed(target: str, error: OSError | BrokenExecutor) -> XbufError:
    """Return what ends an import whose reading ended early, in words with a remedy."""
    if isinstance(error, BrokenExecutor):
        return XbufError(
            f"{target}: a worker process was killed, probably for want of memory; run again with --jobs 1:"
            " what was read until then is kept"
        )
    return explain(f"{staging_folder(target)}", error)


def set_rejected(one: Rejected) -> SetRejected:
    """Return the event that tells of a reject."""
    return SetRejected(one.file, one.line, one.kind, one.message)


def set_names(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Return the sets of tasks as paths, as the file system has them."""
    return tuple(os.path.join(task.dump_set.directory, task.dump_set.stem) for task in tasks)
