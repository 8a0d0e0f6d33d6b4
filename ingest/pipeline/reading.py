"""Read the planned dump sets into the staging folder, and keep count of what becomes of them."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from ingest.database.refusals import explain
from ingest.errors import XbufError
from ingest.events import Event, SetRejected, StagedApart
from ingest.pipeline.journal import ImportRecord, Journal, staging_folder
from ingest.pipeline.summary import Progress
from ingest.pipeline.suspects import Suspects
from ingest.source.local import source_of, status_of
from ingest.staging.at_hand import AtHand
from ingest.staging.task import Rejected, Staged, Task
from ingest.staging.workers import give_up, stage_alone, stage_tasks

if TYPE_CHECKING:
    from ingest.dump.sets import Member
    from ingest.source.source import Status
    from ingest.staging.cluster import Cluster

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
    touched: list[tuple[int, Member]] = field(default_factory=list)

    def put_on(self, record: ImportRecord) -> ImportRecord:
        """Return the record of an import with these sums."""
        return replace(
            record,
            found=self.found,
            unchanged=self.unchanged,
            rejected=len(self.rejected),
            unfinished=len(self.unfinished),
            rejects=tuple(self.rejected),
        )

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
    suspects: Suspects,
    *,
    rehash: bool,
    report: Callable[[Progress], None],
    emit: Callable[[Event], None],
    meanwhile: Callable[[], None],
    load_step: Callable[[bool], None],
    cluster: Cluster | None = None,
) -> None:
    """Stage all tasks; those still being written once more after a pause, suspects alone at the end.

    Args:
        tasks: sets to read.
        journal: of this import.
        jobs: worker processes, or 0.
        outcome: what becomes of the sets is added.
        suspects: sets that something was lost with, in this import and those before.
        rehash: try suspects again that were to be rejected.
        report: called now and then.
        emit: called with events.
        meanwhile: called once, in a thread.
        load_step: called again and again, to load what is staged when it is time; with True when it is.
        cluster: stages in the place of processes of this machine.
    """
    if not tasks:
        return
    parts = journal.folder
    AtHand.create(parts.at_hand.path, jobs + 1)
    plain, alone, hopeless = suspects.part(tasks, rehash=rehash)
    total, done = len(tasks), 0

    def take(count: int, staged: Staged) -> None:
        nonlocal done
        for task, _ in staged.lost:
            suspects.lost(task.dump_set)
            alone.append(task)
        outcome.add(staged)
        for one in staged.rejected:
            emit(set_rejected(one))
        for sets, message in staged.apart:
            emit(StagedApart(sets, message))
        done += count
        report(Progress("read", done, total))
        if done < total:  # the last ones are loaded at the end, when no worker takes memory any more
            load_step(False)

    if hopeless:
        take(len(hopeless), give_up(hopeless))
    for group in _groups(plain):
        for count, staged in stage_tasks(group, parts, jobs, meanwhile, cluster):
            take(count, staged)
        meanwhile = _nothing
    if outcome.unfinished:
        time.sleep(RETRY_SECONDS)
        again, outcome.unfinished = _found_again(outcome.unfinished), []
        done -= len(again)
        for group in _groups(again):
            for count, staged in stage_tasks(group, parts, jobs, cluster=cluster):
                take(count, staged)
    if alone:
        load_step(True)
    for task in list(alone):
        staged = stage_alone(task, parts, cluster)
        if staged.lost:
            suspects.lost(task.dump_set)
            staged = give_up([task])
        else:
            suspects.read(task.dump_set)
        take(1, staged)


def _groups(tasks: Sequence[Task]) -> Iterable[Sequence[Task]]:
    """Return the tasks in groups: those in archives with their content, as much as there is room for."""
    if all(task.dump_set.source is None for task in tasks):
        return [tasks]
    from ingest.pipeline.unpack import unpacked  # 25 ms

    return unpacked(tasks)


def _nothing() -> None:
    pass


def _found_again(tasks: Sequence[Task]) -> list[Task]:
    """Return tasks with their files as they are now."""
    paths = [[task.dump_set.path(member) for member in task.dump_set.members] for task in tasks]
    flat = list(chain.from_iterable(paths))
    far = [path for path in flat if source_of(path).is_far]
    found = {path: _status(path) for path in flat if not source_of(path).is_far}
    if far:
        from ingest.source.apart import apart

        statuses = apart(_statuses, far, what=far[0], terms=source_of(far[0]).terms)
        found |= dict(zip(far, statuses, strict=True))
    again = []
    for task, its_paths in zip(tasks, paths, strict=True):
        members = []
        for member, path in zip(task.dump_set.members, its_paths, strict=True):
            status = found[path]
            # Where it is gone, or must not be looked at, staging it again will say so.
            members.append(member if status is None else member._replace(**status._asdict()))
        again.append(replace(task, dump_set=task.dump_set._replace(members=tuple(members))))
    return again


def _statuses(paths: Sequence[str]) -> Iterator[Status | None]:
    yield from map(_status, paths)


def _status(path: str) -> Status | None:
    try:
        return status_of(path)
    except OSError:
        return None


def reading_failed(target: str, error: OSError) -> XbufError:
    """Return what ends an import whose reading ended early, in words with a remedy."""
    if error.errno in (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM) and error.filename is None:
        return XbufError(
            f"{target}: the system allows no more processes, threads or open files ({error.strerror}); raise"
            " the limits of ulimit, or run again with --jobs 1: what was read until then is kept"
        )
    return explain(f"{staging_folder(target)}", error)


def set_rejected(one: Rejected) -> SetRejected:
    """Return the event of a reject."""
    return SetRejected(one.file, one.line, one.kind, one.message)


def set_names(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Return the sets of tasks as paths, as the file system has them."""
    return tuple(os.path.join(task.dump_set.directory, task.dump_set.stem) for task in tasks)
