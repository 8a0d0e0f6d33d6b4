"""Stage dump sets on all cores that this process may use.

Small sets go to the workers in chunks, each of which becomes a part; a large set is cut into pieces that all
workers share (`ingest.staging.large`).
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ingest.pipeline.journal import Journal
    from ingest.staging.stage import Staged, Task

CHUNK_BYTES: Final = 16 << 20
"""Text in one call of a worker: some 60 MB of rows, and large enough for good Parquet."""
CHUNK_SETS: Final = 4000
SET_BYTES: Final = 4 << 10
"""What a set costs besides its text, as text."""
INLINE_BYTES: Final = 4 << 20
"""Up to this much text, starting workers costs more than they save."""


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
    journal: Journal,
    jobs: int,
    round_: int,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Staged]]:
    """Stage dump sets into a journal, in worker processes when that pays; yield (sets, result).

    Args:
        tasks: the sets to stage.
        journal: where the parts go.
        jobs: worker processes.
        round_: 0, or 1 when sets are tried again; parts are named by it.
        meanwhile: called once in a thread, beside the staging.
    """
    if not tasks:
        return
    from ingest.staging.stage import is_large, stage_sets

    large = [task for task in tasks if is_large(task.dump_set)]
    chunks = list(_chunks([task for task in tasks if not is_large(task.dump_set)], jobs))
    named = [(chunk, journal.part(chunk[0].run_no, round_)) for chunk in chunks]
    if not large and (jobs == 1 or len(chunks) <= 1 or sum(map(_size, tasks)) <= INLINE_BYTES):
        # DuckDB works without Python's lock: 0.1 s of a new database cost nothing on a second core.
        with ThreadPoolExecutor(1) as beside:
            made = beside.submit(meanwhile)
            for chunk, part in named:
                yield len(chunk), stage_sets(chunk, part)
            made.result()
        return
    from concurrent.futures import ProcessPoolExecutor  # imports multiprocessing's queues: 10 ms

    import ingest.staging.arrow_rows  # noqa: F401 - Arrow, once for all workers, who share its memory

    if large:
        from ingest.staging.large import stage_large

    with (
        ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_prepare_worker) as pool,
        ThreadPoolExecutor(1) as beside,
    ):
        waiting: dict[Future[Staged], int] = {}
        try:
            pool.submit(_nothing)  # forks all workers: from here on a thread may run
            made = beside.submit(meanwhile)
            for task in large:
                yield 1, stage_large(task, journal.part(task.run_no, round_), pool, jobs + 1)
            for chunk, part in named:
                waiting[pool.submit(stage_sets, chunk, part)] = len(chunk)
                if len(waiting) > 2 * jobs:
                    yield from _finished(waiting)
            while waiting:
                yield from _finished(waiting)
            made.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _nothing() -> None:
    """Do nothing, in a worker."""


def _finished(waiting: dict[Future[Staged], int]) -> Iterator[tuple[int, Staged]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future.result()


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


def _size(task: Task) -> int:
    return sum(member.size for member in task.dump_set.members)


def _context() -> multiprocessing.context.BaseContext:
    """Fork where that is safe: no thread runs yet, and a child starts with all modules loaded."""
    return multiprocessing.get_context("fork" if os.uname().sysname == "Linux" else "spawn")


def _prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and end when it is gone."""
    import signal
    import threading
    from multiprocessing.connection import wait as wait_for

    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
