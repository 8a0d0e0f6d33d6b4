"""Stage dump sets on all cores that this process may use, or on those of a cluster.

Small sets go to the workers in chunks, each of which becomes a part; a large set is cut into pieces that all
workers of this machine share (`ingest.staging.large`), and is read as a whole by one of a cluster.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from ingest.staging.at_hand import place_of, reading, take_slot
from ingest.staging.fetch import is_far, is_remote
from ingest.staging.parts import Parts, remove_attempt
from ingest.staging.task import Staged, Task

if TYPE_CHECKING:
    from ingest.dump.sets import DumpSet
    from ingest.staging.child import WorkerLost
    from ingest.staging.cluster import Cluster
    from ingest.staging.pool import Workers

CHUNK_BYTES: Final = 16 << 20
"""Text in one call of a worker: some 60 MB of rows, and large enough for good Parquet."""
CHUNK_SETS: Final = 4000
SET_BYTES: Final = 4 << 10
"""What a set costs besides its text, as text."""
INLINE_BYTES: Final = 4 << 20
"""Up to this much text, starting workers costs more than they save."""
CLUSTER_CHUNK_BYTES: Final = 1 << 20
"""Least text in a chunk for a cluster, however many workers it has: each makes 20 files to load."""
_TICK_SECONDS: Final = 1.0


class Stagers(Protocol):
    """Who stages sets of tasks: as many at a time as there are, each set of tasks as a part."""

    @property
    def width(self) -> int:
        """How many they are."""

    def stage(self, tasks: Sequence[Task], part: str) -> Future[Staged]:
        """Let the next that is free do what `ingest.staging.stage.stage_sets` does.

        The future raises `ingest.staging.child.WorkerLost` when that one is lost; the others go on.
        """

    def revive(self) -> None:
        """Replace those that were lost.

        Raises:
            OSError: the system refuses it.
        """


def default_jobs() -> int:
    """Return the cores that this process may really use: affinity and cgroup quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as quota:
            limit, period = quota.read().split()
        if limit != "max":
            cores = min(cores, max(1, round(int(limit) / int(period))))
    except (OSError, ValueError):
        pass  # no cgroup v2: the affinity is all that limits us
    return cores


def stage_tasks(
    tasks: Sequence[Task],
    parts: Parts,
    jobs: int,
    meanwhile: Callable[[], None] = lambda: None,
    cluster: Cluster | None = None,
) -> Iterator[tuple[int, Staged]]:
    """Stage dump sets into a journal, in worker processes when that pays; yield (sets done, result).

    A set that killed its worker, or took too long, is among the `lost` of a result; the others of its chunk
    are staged again.

    Args:
        tasks: the sets to stage.
        parts: where the parts go.
        jobs: worker processes; 0 for none, where this process must not be forked.
        meanwhile: called once in a thread, while the workers stage.
        cluster: stages in the place of processes of this machine.

    Raises:
        OSError: the staging folder cannot be written, or the system refuses a process or a thread.
        SchedulerError: the cluster cannot be used any more.
        SourceError: what sets are read from is of no use any more.
    """
    if not tasks:
        return
    from ingest.staging.stage import is_large, stage_sets  # 100 ms: most imports find nothing new

    if cluster is not None:
        with cluster, ThreadPoolExecutor(1) as thread:
            made = thread.submit(meanwhile)
            yield from _stage_chunks(_cluster_chunks(tasks, cluster.width), parts, cluster)
            made.result()
        return
    take_slot(parts.at_hand, 0)
    # What is far away is read by workers only, and a large set in an archive there by one.
    far = bool(jobs) and any(is_far(task.dump_set) for task in tasks)
    large = [task for task in tasks if jobs and is_large(task.dump_set) and _is_in_ranges(task.dump_set)]
    if not large and (not jobs or (not far and sum(map(_size, tasks)) <= INLINE_BYTES)):
        jobs = 1
    small = _without(tasks, large)
    chunks = list(_chunks(small, jobs))
    if not large and not far and (jobs == 1 or len(chunks) == 1):
        # DuckDB works without Python's lock: 0.1 s of a new database cost nothing on a second core.
        with ThreadPoolExecutor(1) as thread:
            made = thread.submit(meanwhile)
            for chunk in chunks:
                yield len(chunk), stage_sets(chunk, parts.new(chunk[0].run_no))
            made.result()
        return
    import ingest.staging.arrow_rows
    from ingest.staging.pool import Workers, no_threads  # 8 ms

    roles = {member.role for task in tasks for member in task.dump_set.members}
    if "hlo" in roles:
        import ingest.hlo.text
    if "proto" in roles:
        import ingest.hlo.proto  # noqa: F401 - as above: 50 ms for each worker

    with Workers(jobs, parts.at_hand) as pool, ThreadPoolExecutor(1) as thread:
        with no_threads():
            made = thread.submit(meanwhile)
        for task in large:
            staged = _stage_large(task, parts, pool, jobs + 1)
            yield 0 if staged.lost else 1, staged
        yield from _stage_chunks(chunks, parts, pool)
        made.result()


def stage_alone(task: Task, parts: Parts, cluster: Cluster | None = None) -> Staged:
    """Stage a set that a worker was lost with, in a worker that has nothing else to do.

    Raises:
        OSError, SchedulerError, SourceError: as `stage_tasks`.
    """
    import ingest.staging.arrow_rows  # noqa: F401
    from ingest.staging.pool import Workers  # 8 ms
    from ingest.staging.stage import is_large  # as in `stage_tasks`

    result = Staged()
    if cluster is None and is_large(task.dump_set) and _is_in_ranges(task.dump_set):
        with Workers(1, parts.at_hand) as pool:
            return _stage_large(task, parts, pool, 2)
    with cluster or Workers(1, parts.at_hand) as stagers:
        for _, staged in _stage_chunks([[task]], parts, stagers):
            result.add(staged)
    return result


def give_up(tasks: Sequence[Task]) -> Staged:
    """Reject sets that something was lost with again and again."""
    from ingest.staging.outcome import lost

    return Staged(rejected=[lost(task.dump_set) for task in tasks])


def _stage_large(task: Task, parts: Parts, pool: Workers, in_flight: int) -> Staged:
    from ingest.staging.child import WorkerLost  # 8 ms
    from ingest.staging.large import stage_large  # 185 ms, with Arrow and NumPy

    part = parts.new(task.run_no)
    try:
        with reading(task.dump_set):
            if not is_far(task.dump_set):
                return stage_large(task, part, pool, in_flight)
            from ingest.staging.by_workers import read_by_workers  # 20 ms

            by_workers = replace(task, dump_set=read_by_workers(task.dump_set, pool, in_flight))
            staged = stage_large(by_workers, part, pool, in_flight)
            staged.unfinished = [task for _ in staged.unfinished]
            return staged
    except WorkerLost as error:
        remove_attempt(part)
        pool.revive()
        return Staged(lost=[(task, str(error))])


def _is_in_ranges(dump_set: DumpSet) -> bool:
    """Say whether any part of a set's files can be read without those before it."""
    return is_remote(dump_set) or not is_far(dump_set)


def _stage_chunks(
    chunks: Sequence[list[Task]], parts: Parts, stagers: Stagers
) -> Iterator[tuple[int, Staged]]:
    """Stage chunks, each as a part; one whose worker is lost again without the set that was at hand."""
    from ingest.staging.child import WorkerLost  # 8 ms

    todo = deque(chunks)
    waiting: dict[Future[Staged], tuple[list[Task], str]] = {}
    while todo or waiting:
        while todo and len(waiting) <= 2 * stagers.width:
            chunk = todo.popleft()
            part = parts.new(chunk[0].run_no)
            waiting[stagers.stage(chunk, part)] = chunk, part
        done, _ = wait(waiting, timeout=_TICK_SECONDS, return_when=FIRST_COMPLETED)
        if not done:
            yield 0, Staged()  # for what the caller does by the clock
        for future in done:
            chunk, part = waiting.pop(future)
            try:
                yield len(chunk), future.result()
            except WorkerLost as error:
                remove_attempt(part)
                suspect, rest = _part_with(chunk, error)
                if suspect is not None:
                    yield 0, Staged(lost=[(suspect, str(error))])
                todo.extendleft(rest)
                stagers.revive()


def _part_with(chunk: list[Task], error: WorkerLost) -> tuple[Task | None, list[list[Task]]]:
    """Return the set that was at hand, and the rest of the chunk; halves where it was none."""
    if error.at_hand is not None:
        for task in chunk:
            if place_of(task.dump_set) == error.at_hand.place:
                return task, [rest] if (rest := [one for one in chunk if one is not task]) else []
    if len(chunk) == 1:
        return chunk[0], []
    middle = len(chunk) // 2
    return None, [chunk[:middle], chunk[middle:]]


def _chunks(tasks: Sequence[Task], jobs: int) -> Iterator[list[Task]]:
    """Cut the tasks into chunks of like cost, as many for each worker as for the others.

    Cut at a fixed size, 5,900 small sets made three chunks, and one of two workers had nothing to do for a
    third of the time.
    """
    costs = [_size(task) + SET_BYTES for task in tasks]
    total = sum(costs)
    count = max(math.ceil(total / CHUNK_BYTES), math.ceil(len(tasks) / CHUNK_SETS))
    count = math.ceil(count / jobs) * jobs
    chunk: list[Task] = []
    done = cut = 0
    for task, cost in zip(tasks, costs, strict=True):
        chunk.append(task)
        done += cost
        if done * count >= total * (cut + 1):
            yield chunk
            chunk = []
            cut = done * count // total
    if chunk:
        yield chunk


def _cluster_chunks(tasks: Sequence[Task], workers: int) -> list[list[Task]]:
    """Cut the tasks into chunks for workers that read a large set by themselves: these come first."""
    from ingest.staging.stage import is_large  # as in `stage_tasks`

    large = [task for task in tasks if is_large(task.dump_set)]
    small = _without(tasks, large)
    most = sum(_size(task) + SET_BYTES for task in small) // CLUSTER_CHUNK_BYTES
    return [*([task] for task in large), *_chunks(small, max(1, min(workers, most)))]


def _without(tasks: Sequence[Task], large: Sequence[Task]) -> Sequence[Task]:
    if not large:
        return tasks
    left_out = set(map(id, large))
    return [task for task in tasks if id(task) not in left_out]


def _size(task: Task) -> int:
    dump_set = task.dump_set
    if dump_set.in_profile is not None:
        return dump_set.in_profile.length
    return sum(member.size for member in dump_set.members)
