"""Import dump sets into a database: find, plan, stage, load.

    discover ──► plan ──► stage (workers; no database open) ──► load (one short write window)

Staging writes whole parsed runs as Parquet beside the database; the load puts them in within
transactions. A killed import leaves its staging folder, and the next import goes on with it.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ingest.discover import DumpSet, Problem, discover, display
from ingest.store.database import open_database
from ingest.store.journal import ImportRecord, Journal, left_behind, open_journal, timestamp
from ingest.store.known import Known, is_unchanged, read_known
from ingest.version import VERSION

if TYPE_CHECKING:
    import duckdb

    from ingest.store.stage import Rejected, Staged, Task

CHUNK_BYTES: Final = 16 << 20
"""Text in one call of a worker: some 60 MB of rows, and large enough for good Parquet."""
CHUNK_SETS: Final = 400
INLINE_BYTES: Final = 4 << 20
"""Up to this much text, starting workers costs more than they save."""
RETRY_SECONDS: Final = 1.5
"""Pause before a set that was still being written is read again."""
LOAD_ROWS: Final = 4_000_000
"""Rows of one transaction; a transaction of this size commits in a few seconds."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is."""

    step: str
    """'read' or 'load'."""
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import did."""

    database: str
    import_id: int | None
    status: str
    found: int
    loaded: int
    unchanged: int
    rejected: int
    unfinished: int
    rows: int
    seconds: float
    rejects: tuple[Rejected, ...] = ()
    unfinished_sets: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(slots=True)
class _Outcome:
    """Sums over the calls of the workers."""

    loaded: int = 0
    unchanged: int = 0
    rows: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    unfinished: list[Task] = field(default_factory=list)
    touched: list[tuple[int, tuple[str, str, int, int]]] = field(default_factory=list)

    def add(self, staged: Staged) -> None:
        self.loaded += staged.loaded
        self.unchanged += staged.unchanged
        self.rows += staged.rows
        self.rejected += staged.rejected
        self.unfinished += staged.unfinished
        self.touched += [(touch.run_id, file) for touch in staged.touched for file in touch.files]


def import_dumps(
    paths: Sequence[str | os.PathLike[str]],
    database: str | os.PathLike[str],
    *,
    labels: Sequence[tuple[str, str]] = (),
    jobs: int | None = None,
    rehash: bool = False,
    replace_runs: bool = False,
    dry_run: bool = False,
    wait_seconds: float = 5.0,
    progress: Callable[[Progress], None] | None = None,
) -> ImportSummary:
    """Import every dump set under `paths` that the database does not hold yet.

    Args:
        paths: directories, searched whole, and files.
        database: DuckDB file; made when it is not there.
        labels: key and value pairs put on every new run.
        jobs: worker processes; by default one for each core that this process may use.
        rehash: read sets also when sizes and times are as recorded.
        replace_runs: a set with new content replaces the older runs of its place.
        dry_run: only tell what would be read; nothing is written.
        wait_seconds: how long to wait for a database that another process holds.
        progress: called now and then.

    Raises:
        UsageError: a path does not exist.
        DatabaseError: the database cannot be used; nothing is lost.
        KeyboardInterrupt: after what was staged has been loaded.
    """
    started = time.monotonic()
    target = os.path.abspath(os.fspath(database))
    report = progress or (lambda _: None)
    if not dry_run or os.path.exists(target):
        with open_database(target, read_only=dry_run, wait_seconds=wait_seconds) as connection:
            known = read_known(connection)
    else:
        known = {}
    found = discover([os.fspath(path) for path in paths], known=_known_files(known))
    tasks, unchanged = _plan(found.sets, known, rehash=rehash)
    if dry_run:
        return ImportSummary(
            target,
            None,
            "ok",
            len(found.sets),
            len(tasks),
            unchanged,
            len(found.problems),
            0,
            0,
            time.monotonic() - started,
            tuple(map(_problem, found.problems)),
            dry_run=True,
        )
    journal = open_journal(
        target,
        [display(os.fspath(path)) for path in paths],
        labels,
        replace_runs=replace_runs,
        version=VERSION,
    )
    outcome = _Outcome(unchanged=unchanged, rejected=[_problem(problem) for problem in found.problems])
    status = "interrupted"
    try:
        _stage(tasks, journal, jobs or default_jobs(), outcome, report)
        status = "rejects" if outcome.rejected else "ok"
    finally:
        record = replace(
            journal.record,
            finished_at=timestamp(datetime.now(UTC)),
            status=status,
            found=len(found.sets),
            loaded=outcome.loaded,
            unchanged=outcome.unchanged,
            rejected=len(outcome.rejected),
            unfinished=len(outcome.unfinished),
        )
        journal = journal.write(record)
        with open_database(target, wait_seconds=wait_seconds) as connection:
            import_id = _load(connection, target, journal, outcome, report)
    return ImportSummary(
        target,
        import_id,
        status,
        len(found.sets),
        outcome.loaded,
        outcome.unchanged,
        len(outcome.rejected),
        len(outcome.unfinished),
        outcome.rows,
        time.monotonic() - started,
        tuple(outcome.rejected),
        tuple(os.path.join(t.dump_set.directory, t.dump_set.stem) for t in outcome.unfinished),
    )


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


def _plan(sets: Sequence[DumpSet], known: Known, *, rehash: bool) -> tuple[list[Task], int]:
    """Return a task for each set that must be read, and how many need not be."""
    from ingest.dump.parse import START
    from ingest.store.stage import Task

    tasks: list[Task] = []
    unchanged = 0
    for number, one in enumerate(sets):
        dump_set = one._replace(members=tuple(member for member in one.members if member.role in START))
        runs = known.get((display(dump_set.directory), display(dump_set.stem)), [])
        if runs and not rehash and is_unchanged(dump_set, runs):
            unchanged += 1
        else:
            tasks.append(Task(number, dump_set, tuple(runs)))
    return tasks, unchanged


def _known_files(known: Known) -> set[tuple[str, str]]:
    return {
        (directory, file[1]) for (directory, _), runs in known.items() for run in runs for file in run.files
    }


def _problem(problem: Problem) -> Rejected:
    from ingest.store.stage import Rejected

    return Rejected(display(problem.path), None, None, None, "unreadable", display(problem.message), None)


def _stage(
    tasks: Sequence[Task], journal: Journal, jobs: int, outcome: _Outcome, report: Callable[[Progress], None]
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
        for count, staged in _run(tasks, journal, jobs, round_):
            outcome.add(staged)
            done += count
            report(Progress("read", done, len(tasks) if not round_ else done))


def _found_again(task: Task) -> Task:
    """Return the task with the sizes and times that its files have now."""
    members = []
    for member in task.dump_set.members:
        try:
            status = os.stat(os.path.join(task.dump_set.directory, member.file_name))
            members.append(member._replace(size=status.st_size, mtime_ns=status.st_mtime_ns))
        except OSError:
            members.append(member)  # gone: staging it again will say so
    return replace(task, dump_set=task.dump_set._replace(members=tuple(members)))


def _run(tasks: Sequence[Task], journal: Journal, jobs: int, round_: int) -> Iterator[tuple[int, Staged]]:
    """Stage the tasks, in workers when that pays; yield (sets, result)."""
    from ingest.store.large import is_large, stage_large
    from ingest.store.stage import stage_sets

    large = [task for task in tasks if is_large(task.dump_set)]
    chunks = list(_chunks([task for task in tasks if not is_large(task.dump_set)], jobs))
    named = [(chunk, journal.part(chunk[0].run_no, round_)) for chunk in chunks]
    if not large and (jobs == 1 or len(chunks) <= 1 or sum(map(_size, tasks)) <= INLINE_BYTES):
        for chunk, part in named:
            yield len(chunk), stage_sets(chunk, part)
        return
    with ProcessPoolExecutor(jobs, mp_context=_context(), initializer=_prepare_worker) as pool:
        waiting: dict[Future[Staged], int] = {}
        try:
            for task in large:
                yield 1, stage_large(task, journal.part(task.run_no, round_), pool, jobs + 1)
            for chunk, part in named:
                waiting[pool.submit(stage_sets, chunk, part)] = len(chunk)
                if len(waiting) > 2 * jobs:
                    yield from _finished(waiting)
            while waiting:
                yield from _finished(waiting)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _finished(waiting: dict[Future[Staged], int]) -> Iterator[tuple[int, Staged]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future.result()


def _chunks(tasks: Sequence[Task], jobs: int) -> Iterator[list[Task]]:
    """Cut the tasks into chunks of like size, at least as many as workers."""
    limit = min(CHUNK_BYTES, sum(map(_size, tasks)) // jobs + 1)
    chunk: list[Task] = []
    size = 0
    for task in tasks:
        chunk.append(task)
        size += _size(task)
        if size >= limit or len(chunk) >= CHUNK_SETS:
            yield chunk
            chunk, size = [], 0
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
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _load(
    connection: duckdb.DuckDBPyConnection,
    target: str,
    journal: Journal,
    outcome: _Outcome,
    report: Callable[[Progress], None],
) -> int:
    """Load what is staged, also by earlier imports that were cut off; return the number of this import."""
    connection.execute("UPDATE imports SET status = 'interrupted' WHERE status = 'running'")
    import_id = 0
    for one in left_behind(target):
        rejected = outcome.rejected if one.directory == journal.directory else []
        import_id = _load_journal(connection, one, rejected, report)
        one.remove()
    if outcome.touched:
        connection.executemany(
            "UPDATE run_files SET file_bytes = $4, mtime_ns = $5"
            " WHERE run_id = $1 AND role = $2 AND file_name = $3",
            [(run_id, *file) for run_id, file in outcome.touched],
        )
    return import_id


def _load_journal(
    connection: duckdb.DuckDBPyConnection,
    journal: Journal,
    rejected: Sequence[Rejected],
    report: Callable[[Progress], None],
) -> int:
    """Load one staging folder; the first transaction makes its row in `imports`, the last one ends it."""
    import pyarrow.parquet as pq

    from ingest.store.load import load_parts

    record = journal.record
    groups: list[list[str]] = [[]]
    rows = 0
    for part in journal.parts:
        size = sum(
            pq.read_metadata(f"{part}/{name}").num_rows
            for name in os.listdir(part)
            if name.endswith(".parquet")
        )
        if groups[-1] and rows + size > LOAD_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(part)
        rows += size
    import_id = 0
    loaded = 0
    for number, group in enumerate(groups):
        connection.begin()
        try:
            if not number:
                import_id = _begin_import(connection, record, rejected)
            loaded += load_parts(
                connection, group, import_id, labels=record.labels, replace=record.replace
            ).runs
            if number == len(groups) - 1:
                connection.execute(
                    "UPDATE imports SET status = ?, finished_at = ?, loaded = ? WHERE import_id = ?",
                    [record.status, record.finished_at, loaded, import_id],
                )
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        report(Progress("load", number + 1, len(groups)))
    return import_id


def _begin_import(
    connection: duckdb.DuckDBPyConnection, record: ImportRecord, rejected: Sequence[Rejected]
) -> int:
    row = connection.execute(
        "INSERT INTO imports BY NAME SELECT"
        " (SELECT coalesce(max(import_id), 0) + 1 FROM imports) AS import_id,"
        " $started_at::TIMESTAMP AS started_at, 'running' AS status, $version AS tool_version, $host AS host,"
        " $sources AS sources, $found AS found, 0 AS loaded, $unchanged AS unchanged, $rejected AS rejected,"
        " $unfinished AS unfinished RETURNING import_id",
        {
            "started_at": record.started_at,
            "version": record.tool_version,
            "host": record.host,
            "sources": list(record.sources),
            "found": record.found,
            "unchanged": record.unchanged,
            "rejected": record.rejected,
            "unfinished": record.unfinished,
        },
    ).fetchone()
    assert row is not None
    import_id = int(row[0])
    for one in rejected:
        connection.execute(
            "INSERT INTO rejects BY NAME SELECT $1 AS import_id, $2 AS file, $3 AS line, $4 AS byte_offset,"
            " $5 AS section, $6 AS kind, $7 AS message, $8 AS text",
            [import_id, one.file, one.line, one.byte_offset, one.section, one.kind, one.message, one.text],
        )
    return import_id


__all__ = ["BrokenProcessPool", "ImportSummary", "Progress", "default_jobs", "import_dumps"]
