"""A Dask cluster stages as the processes of this machine do, also when workers or the scheduler die."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import ingest.staging.cluster as cluster_module
import ingest.staging.workers as workers_module
from ingest import ImportSummary, import_dumps
from ingest.dump.find import discover
from ingest.errors import SchedulerError
from ingest.events import Event, WaitingForWorkers
from ingest.lake.store import Lake
from ingest.staging.cluster import Cluster
from ingest.staging.parts import Parts, is_whole, put_parts
from ingest.staging.task import Task
from tests.support.content import differences
from tests.support.dump_sets import DATA, SEEDS, settled_seeds
from tests.support.lakes import in_process, visible
from tests.support.poison import Poison
from tests.support.waiting import HANGING_SECONDS
from tests.support.web import web_server

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

pytestmark = [
    pytest.mark.slow,
    # What Dask leaves to the end of its processes, and sockets of workers that were killed.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

POISON = SEEDS[2].name


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A cluster of two processes; the first death is enough for Dask to give a task up."""
    import dask  # 0.7 s with distributed, which the default run need not have
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def scheduler(cluster: LocalCluster) -> str:
    """Its address; there is a worker, whatever a test has killed."""
    while True:
        try:
            cluster.wait_for_workers(1, timeout=20)
        except TimeoutError:  # what restarts a worker gives up when that is killed before it has begun
            cluster.scale(len(cluster.worker_spec) + 1)
        else:
            return str(cluster.scheduler_address)


@pytest.fixture
def load(cluster: LocalCluster, scheduler: str, dumps: Path) -> Callable[..., ImportSummary]:
    """Import the seeds by a cluster that gets a worker when it has none: what restarts them may give up."""

    def help(event: Event) -> None:
        if isinstance(event, WaitingForWorkers):
            cluster.scale(len(cluster.worker_spec) + 1)

    return partial(import_dumps, [dumps], scheduler=scheduler, on_event=help)


@pytest.fixture
def client(scheduler: str) -> Iterator[Client]:
    """Looks at the workers."""
    from distributed import Client

    with Client(scheduler, set_as_default=False) as client:
        yield client


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """The five seeds, long finished."""
    return settled_seeds(tmp_path / "dumps")


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk for each worker, however little there is to read."""
    monkeypatch.setattr(workers_module, "CLUSTER_CHUNK_BYTES", 1)


def poison(monkeypatch: pytest.MonkeyPatch, how: Any, note: Path) -> None:
    """Let one of the seeds do harm to its reader."""
    stage = Cluster.stage

    def poisoned(self: Cluster, tasks: list[Task], part: str) -> object:
        source = Poison(how, str(note))
        bad = [
            replace(task, dump_set=task.dump_set._replace(source=source))
            if task.dump_set.members[0].file_name == POISON
            else task
            for task in tasks
        ]
        return stage(self, bad, part)

    monkeypatch.setattr(Cluster, "stage", poisoned)


def runs(database: Path) -> int:
    with duckdb.connect(str(database), read_only=True) as connection:
        [(count,)] = connection.execute("SELECT count(DISTINCT stem) FROM runs").fetchall()
    return int(count)


def outcome(summary: ImportSummary) -> tuple[object, ...]:
    return summary.status, summary.loaded, [one.kind for one in summary.rejects]


def test_the_rows_are_those_of_the_local_pool(scheduler: str, tmp_path: Path) -> None:
    """Over all committed dumps, an archive and a dump at URLs among them; then there is nothing to read."""
    web = tmp_path / "web"
    web.mkdir()
    shutil.make_archive(str(web / "more"), "gztar", DATA / "seeds")
    shutil.copy(SEEDS[0], web / "far-buffer-assignment.txt")
    with web_server(web) as url:
        sources: list[str | Path] = [DATA, f"{url}/more.tar.gz", f"{url}/far-buffer-assignment.txt"]
        for name, options in (("local", {"jobs": 2}), ("dask", {"scheduler": scheduler})):
            summary = import_dumps(sources, tmp_path / f"{name}.duckdb", **options)
            assert summary.loaded > 70
        assert differences(tmp_path / "local.duckdb", tmp_path / "dask.duckdb") == {}
        again = import_dumps(sources, tmp_path / "dask.duckdb", scheduler="tcp://nobody.invalid:1")
        assert again.unchanged == summary.found


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("how", ["kills", "kills-worker"])
def test_a_poisoned_dump_is_rejected_and_the_others_load(
    how: str,
    load: Callable[..., ImportSummary],
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether it kills the process that reads it, or that and the worker of the cluster, as containers do."""
    poison(monkeypatch, how, tmp_path / "note")
    assert outcome(load(database)) == ("rejects", 4, ["worker-lost"])
    assert runs(database) == 4


@pytest.mark.usefixtures("chunks")
def test_a_killed_worker_costs_its_chunk_again(
    load: Callable[..., ImportSummary], dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is loaded, into a lake this time, is what processes of this machine load."""
    local, lake = Lake(str(tmp_path / "local"), True), Lake(str(tmp_path / "dask"), True)
    import_dumps([dumps], lake=local.root, staging=tmp_path / "1", jobs=1)
    poison(monkeypatch, "kills-worker-once", tmp_path / "note")
    assert outcome(load(lake=lake.root, staging=tmp_path / "2")) == ("ok", 5, [])
    assert in_process(visible, lake) == in_process(visible, local)
    assert load(lake=lake.root, staging=tmp_path / "2").unchanged == 5


@pytest.mark.usefixtures("chunks")
def test_all_workers_killed_cost_what_has_not_come_back(
    load: Callable[..., ImportSummary], client: Client, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import waits for others."""
    alive = set(client.run(os.getpid).values())

    def put_and_kill(*arguments: Any) -> None:
        put_parts(*arguments)
        while alive:
            os.kill(alive.pop(), signal.SIGKILL)

    monkeypatch.setattr(cluster_module, "put_parts", put_and_kill)
    assert outcome(load(database)) == ("ok", 5, [])
    assert runs(database) == 5


def test_a_worker_keeps_its_settings_and_its_disk(
    scheduler: str, client: Client, dumps: Path, database: Path
) -> None:
    """Its garbage collector is as it was, and of the import nothing is left but an idle process."""
    before = set(client.run(gc.get_threshold).values())
    import_dumps([dumps], database, scheduler=scheduler)
    assert set(client.run(gc.get_threshold).values()) == before
    assert set(client.run(gc.get_freeze_count).values()) == {0}
    folders = client.run(scratch)
    assert set().union(*folders.values()) <= {"at-hand"}


def scratch(dask_worker: Any) -> set[str]:
    """Return the names of what imports have in a worker's folder."""
    return {path.name for path in Path(dask_worker.local_directory).glob("xbuf-*/*")}


def test_ctrl_c_ends_what_the_workers_do(
    scheduler: str, dumps: Path, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader on the worker is killed within seconds, not after the chunk; the worker lives on."""
    note = tmp_path / "note"
    poison(monkeypatch, "hangs", note)

    def strike() -> None:
        while not note.exists() or not note.read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        import_dumps([dumps], database, scheduler=scheduler)
    reader = int(note.read_text())
    with suppress(ProcessLookupError):
        while True:  # a reader that goes on meets the timeout of the test
            os.kill(reader, 0)
            time.sleep(0.1)
    monkeypatch.undo()
    assert outcome(import_dumps([dumps], database, scheduler=scheduler)) == ("ok", 5, [])


@contextmanager
def cut_at_will(address: str) -> Iterator[tuple[str, threading.Event]]:
    """Stand between a client and its scheduler; once the event is set, the connection is cut off."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    cut = threading.Event()
    pairs: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                ours, _ = listener.accept()
                theirs = socket.create_connection((host, int(port)))
                pairs.extend((ours, theirs))
                for pair in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    def end() -> None:
        cut.wait()
        listener.shutdown(socket.SHUT_RDWR)
        for one in pairs:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        for work in (serve, end):
            threading.Thread(target=work, daemon=True).start()
        try:
            yield f"tcp://127.0.0.1:{listener.getsockname()[1]}", cut
        finally:
            cut.set()


@pytest.mark.usefixtures("chunks")
def test_what_was_read_is_loaded_when_the_scheduler_goes(
    scheduler: str, dumps: Path, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two chunks has come back, the other hangs: one line, and the next import goes on."""
    poison(monkeypatch, "hangs", tmp_path / "note")
    with cut_at_will(scheduler) as (address, cut):

        def put_and_cut(*arguments: Any) -> None:
            put_parts(*arguments)
            cut.set()

        monkeypatch.setattr(cluster_module, "put_parts", put_and_cut)
        with pytest.raises(SchedulerError, match="connection to the scheduler is lost") as caught:
            import_dumps([dumps], database, scheduler=address)
    assert "\n" not in str(caught.value)
    loaded = runs(database)
    assert 0 < loaded < 5
    monkeypatch.undo()
    again = import_dumps([dumps], database, scheduler=scheduler)
    assert (again.loaded, again.unchanged) == (5 - loaded, loaded)


def test_a_scheduler_that_is_away_is_reported_in_a_line(
    dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 0.2)
    with pytest.raises(SchedulerError, match="the scheduler cannot be reached: ") as caught:
        import_dumps([dumps], database, scheduler="tcp://127.0.0.1:9")
    assert "\n" not in str(caught.value)


def test_other_versions_on_a_worker_are_refused(
    scheduler: str, dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_module, "VERSIONS", ("xbuf 99.0", "Python 2.7"))
    expected = rf"on {socket.gethostname()}: has xbuf .*, and this import xbuf 99.0 and Python 2.7; install"
    with pytest.raises(SchedulerError, match=expected):
        import_dumps([dumps], database, scheduler=scheduler)


def test_dumps_that_a_worker_does_not_see_are_an_error_not_rejects(
    scheduler: str, dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has another working directory; what is not there for the import either is staged as ever."""
    [found, gone] = discover([dumps]).sets[:2]
    tasks = [Task(0, found), Task(1, gone._replace(directory=str(tmp_path / "gone")))]
    with Cluster(scheduler, 1) as cluster:
        staged = cluster.stage(tasks, Parts(tmp_path).new(0)).result(timeout=HANGING_SECONDS)
        assert (staged.loaded, [one.file for one in staged.rejected]) == (
            1,
            [str(tmp_path / "gone" / gone.members[0].file_name)],
        )
        [part] = Parts(tmp_path).complete()
        assert is_whole(part)
        monkeypatch.chdir(dumps)
        here = Task(0, found._replace(directory="."))
        with pytest.raises(SchedulerError, match="is there, but not for the worker on"):
            cluster.stage([here], Parts(tmp_path).new(0)).result(timeout=HANGING_SECONDS)
        cluster.close()
