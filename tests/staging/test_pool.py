"""Workers that die, hang or cannot be had cost what they were at, never the import."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import duckdb
import pytest

import ingest.database.writer as writer_module
import ingest.pipeline.loading as loading_module
import ingest.staging.child as child_module
import ingest.staging.stage as stage_module
import ingest.staging.workers as workers_module
from ingest import import_dumps
from ingest.database.import_lock import lock_holder
from ingest.dump.parsed import ParsedDump
from ingest.dump.sets import DumpSet, Member
from ingest.errors import XbufError
from ingest.pipeline.journal import open_journal
from ingest.pipeline.labels import Labelling
from ingest.staging.at_hand import AtHand, reading
from ingest.staging.child import WorkerLost
from ingest.staging.pool import Workers
from ingest.staging.sidecars import Sidecars
from tests.support.dump_sets import PAST, SEEDS, settled_seeds
from tests.support.waiting import HANGING_SECONDS

POISON = SEEDS[2].name
_parse_whole = stage_module._parse_whole
ONE = DumpSet("/dumps", "one", (Member("primary", "one-buffer-assignment.txt", 1, 1),))


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Workers]:
    """One worker."""
    with Workers(1, AtHand.create(tmp_path / "at-hand", 2)) as pool:
        yield pool


def die(dump_set: DumpSet | None) -> None:
    if dump_set is None:
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        with reading(dump_set):
            die(None)


def hang(dump_set: DumpSet) -> None:
    with reading(dump_set):
        time.sleep(3600)


def lost(future: Future[None]) -> WorkerLost:
    with pytest.raises(WorkerLost) as caught:
        future.result(timeout=HANGING_SECONDS)
    return caught.value


def test_a_killed_worker_fails_its_own_call_alone(pool: Workers) -> None:
    """What it was reading is known; the calls that wait are run by its successor."""
    first, second, third = pool.submit(die, ONE), pool.submit(die, None), pool.submit(os.getpid)
    error = lost(first)
    assert error.at_hand is not None
    assert (error.at_hand.place, error.overdue) == ("/dumps/one", False)
    pool.revive()
    assert lost(second).at_hand is None
    pool.revive()
    assert third.result(timeout=HANGING_SECONDS) != os.getpid()


def test_a_worker_that_takes_too_long_is_killed(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "LIMIT_SECONDS", 0.1)
    monkeypatch.setattr(child_module, "_LOOK_SECONDS", 0.05)
    error = lost(pool.submit(hang, ONE))
    assert error.overdue
    assert error.at_hand is not None
    assert error.at_hand.place == "/dumps/one"


def test_an_error_of_a_call_is_its_own(pool: Workers) -> None:
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result(timeout=HANGING_SECONDS)
    assert pool.submit(divmod, 7, 2).result(timeout=HANGING_SECONDS) == (3, 1)


def test_ending_with_an_error_waits_for_nobody(tmp_path: Path) -> None:
    """Ctrl-C while a worker hangs: it is killed, and what waits is cancelled."""
    pool = Workers(1, AtHand.create(tmp_path / "at-hand", 2))
    first, second = pool.submit(hang, ONE), pool.submit(hang, ONE)
    pool.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert second.cancelled()
    assert first.cancelled() or not lost(first).overdue


# --- imports ---------------------------------------------------------------------------------------------


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """The five seeds, long finished; workers are used however few they are, and each has one dump."""
    return settled_seeds(tmp_path / "dumps")


def poisoned(how: str) -> object:
    """Return a parser that one dump is poison for."""

    def parse(dump_set: DumpSet) -> tuple[ParsedDump, Sidecars]:
        if dump_set.members[0].file_name == POISON:
            if how == "kills":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(3600)
        return _parse_whole(dump_set)

    return parse


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chunks for two workers, and a limit of a second."""
    monkeypatch.setattr(workers_module, "INLINE_BYTES", 0)
    monkeypatch.setattr(child_module, "LIMIT_SECONDS", 1.0)
    monkeypatch.setattr(child_module, "_LOOK_SECONDS", 0.1)


def rejects(database: Path) -> list[tuple[str, str]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        rows = connection.execute(
            "SELECT parse_filename(file), kind FROM rejects ORDER BY import_id"
        ).fetchall()
    return [(str(file), str(kind)) for file, kind in rows]


@pytest.mark.slow
@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("how", ["kills", "hangs"])
def test_one_poisoned_dump_is_rejected_and_the_others_load(
    how: str, dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried last, alone, then rejected; the next import does not even try."""
    if how == "kills":  # no machine is that slow, but then the limit must not be what ends it
        monkeypatch.setattr(child_module, "LIMIT_SECONDS", 600.0)
    monkeypatch.setattr(stage_module, "_parse_whole", poisoned(how))
    first = import_dumps([dumps], database, jobs=2)
    assert (first.status, first.loaded, first.rejected) == ("rejects", 4, 1)
    assert rejects(database) == [(POISON, "worker-lost")]
    monkeypatch.setattr(workers_module, "stage_alone", None)
    second = import_dumps([dumps], database, jobs=2)
    assert (second.loaded, second.unchanged, second.rejected) == (0, 4, 1)
    # Another chance for another file, and with --rehash.
    monkeypatch.undo()
    third = import_dumps([dumps], database, rehash=True)
    assert (third.status, third.loaded, third.unchanged) == ("ok", 1, 4)
    assert import_dumps([dumps], database).unchanged == 5


@pytest.mark.slow
def test_a_dump_that_kills_the_import_is_tried_last(
    dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed as a whole, workers or none: the next import loads all others before it tries that one."""
    script = (
        "import os, signal, sys, ingest.staging.stage as stage\n"
        "from ingest import import_dumps\n"
        "parse = stage._parse_whole\n"
        "def poisoned(dump_set):\n"
        "    if dump_set.members[0].file_name == sys.argv[3]:\n"
        "        import multiprocessing\n"
        "        parent = multiprocessing.parent_process()\n"
        "        os.kill(os.getpid() if parent is None else parent.pid, signal.SIGKILL)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return parse(dump_set)\n"
        "stage._parse_whole = poisoned\n"
        "import_dumps([sys.argv[1]], sys.argv[2], jobs=1)\n"
    )
    loaded = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script, dumps, database, POISON], check=False)
        assert done.returncode == -signal.SIGKILL
        with duckdb.connect(str(database), read_only=True) as connection:
            loaded += connection.execute("SELECT count(*) FROM runs").fetchall()
    assert loaded == [(0,), (4,)]
    summary = import_dumps([dumps], database, jobs=1)
    assert (summary.status, summary.rejected) == ("rejects", 1)
    assert rejects(database) == [(POISON, "worker-lost")]


@pytest.mark.slow
@pytest.mark.usefixtures("workers")
def test_what_is_read_is_loaded_in_steps(
    dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that loads after every chunk equals one that loads once, down to its row in `imports`."""
    monkeypatch.setattr(workers_module, "CHUNK_SETS", 1)
    (dumps / "bad-buffer-assignment.txt").write_text("BufferAssignment:\nnonsense\n")
    os.utime(dumps / "bad-buffer-assignment.txt", (PAST, PAST))
    found = []
    windows: list[int] = []
    open_writer = writer_module.open_writer

    def counted(*arguments: object, **options: object) -> object:
        windows.append(1)
        return open_writer(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(loading_module, "open_writer", counted)
    for name, seconds in (("once", 1e9), ("steps", 0.0)):
        monkeypatch.setattr(loading_module, "STEP_SECONDS", seconds)
        database = tmp_path / f"{name}.duckdb"
        windows.clear()
        summary = import_dumps([dumps], database, jobs=2)
        with duckdb.connect(str(database), read_only=True) as connection:
            found.append(
                (
                    len(windows) > 1,
                    summary.loaded,
                    connection.execute(
                        "SELECT import_id, status, found, loaded, unchanged, rejected, unfinished,"
                        " finished_at IS NOT NULL FROM imports"
                    ).fetchall(),
                    connection.execute('SELECT count(*), sum(size_bytes) FROM "values"').fetchall(),
                    connection.execute("SELECT kind FROM rejects").fetchall(),
                )
            )
        assert import_dumps([dumps], database).unchanged == 5
    assert [one[0] for one in found] == [False, True]
    assert found[0][1:] == found[1][1:]


def test_imports_are_numbered_in_the_order_in_which_they_began(
    dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was killed before it had read anything comes first, also where the next loads in steps."""
    open_journal(str(database), ["killed"], Labelling(), replace_runs=False, version="0")
    monkeypatch.setattr(loading_module, "STEP_SECONDS", 0.0)
    import_dumps([dumps], database, jobs=1)
    with duckdb.connect(str(database), read_only=True) as connection:
        began = connection.execute("SELECT sources FROM imports ORDER BY import_id").fetchall()
    assert began == [(["killed"],), ([str(dumps)],)]


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("refused", ["processes", pytest.param("threads", marks=pytest.mark.slow)])
def test_a_system_that_refuses_is_no_hang(
    refused: str, dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two is refused: an end that says so, nobody holds the lock, and nothing is lost."""
    allowed = [1]

    def fork() -> int:
        if not allowed:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        allowed.pop()
        return real_fork()

    def start(thread: threading.Thread) -> None:
        if not allowed:
            raise RuntimeError("can't start new thread")
        if multiprocessing.parent_process() is None:
            allowed.pop()
        real_start(thread)

    real_fork, real_start = os.fork, threading.Thread.start
    if refused == "processes":
        monkeypatch.setattr(os, "fork", fork)
    else:
        monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(XbufError, match="no more processes, threads or open files"):
        import_dumps([dumps], database, jobs=2)
    monkeypatch.undo()
    assert multiprocessing.active_children() == []
    assert lock_holder(str(database)) is None
    assert import_dumps([dumps], database).loaded == 5


@pytest.mark.slow
def test_too_few_open_files_is_no_hang(dumps: Path, tmp_path: Path) -> None:
    """Whatever meets the limit, the process ends."""
    script = (
        "import ingest.staging.workers as workers; workers.INLINE_BYTES = 0\n"
        "from ingest.cli.entry import xbuf_ingest; xbuf_ingest()\n"
    )
    command = [sys.executable, "-c", script, str(dumps), "--db", str(tmp_path / "x.duckdb"), "--jobs", "4"]
    for limit in (10, 14, 18):
        shell = ["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *command]
        done = subprocess.run(shell, capture_output=True, timeout=HANGING_SECONDS, check=False)
        assert done.returncode >= 0, done.stderr  # none crashed; what hangs meets the timeout
