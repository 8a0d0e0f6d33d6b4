"""What goes to the workers of a cluster and what comes back, without a cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import ingest.staging.child as child_module
import ingest.staging.cluster as cluster_module
from ingest import import_dumps
from ingest.cli.ingest import ingest
from ingest.dump.sets import DumpSet, InProfile, Member, ModuleCopy
from ingest.errors import SchedulerError
from ingest.events import Event, WaitingForWorkers
from ingest.source.local import source_of
from ingest.staging.at_hand import AtHand, Reading
from ingest.staging.child import Child, WorkerLost
from ingest.staging.cluster import Cluster, _address_in, _with_module
from ingest.staging.parts import Parts, is_whole, put_parts, seal, take_parts
from ingest.staging.task import Task
from ingest.staging.workers import CLUSTER_CHUNK_BYTES, _cluster_chunks


def attempt(parts: Parts) -> str:
    """Write two parts of one attempt; return its name."""
    part = parts.new(7)
    for name in (part, f"{part}-0000009"):
        os.mkdir(f"{name}.tmp")
        Path(f"{name}.tmp/runs.parquet").write_bytes(name.encode())
        seal(f"{name}.tmp", name)
    return part


def test_parts_arrive_as_they_were_sealed(tmp_path: Path) -> None:
    """Under the name of another attempt; nothing stays where they were made."""
    there, here = Parts(tmp_path / "there"), Parts(tmp_path / "here")
    for one in (there, here):
        one.directory.mkdir()
    part = here.new(7)
    put_parts(part, take_parts(attempt(there)))
    assert list(there.directory.iterdir()) == []
    assert here.complete() == [part, f"{part}-0000009"]
    assert all(map(is_whole, here.complete()))


def test_a_part_that_is_damaged_on_its_way_is_never_complete(tmp_path: Path) -> None:
    """Nor is another one of its attempt."""
    parts = take_parts(attempt(Parts(tmp_path)))
    parts["-0000009"]["runs.parquet"] += b"x"
    with pytest.raises(OSError, match="damaged on its way"):
        put_parts(Parts(tmp_path).new(7), parts)
    assert Parts(tmp_path).complete() == []


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    """A child that is a Python of its own, looked at often."""
    monkeypatch.setattr(child_module, "_LOOK_SECONDS", 0.05)
    child = Child.fresh(AtHand.create(tmp_path / "at-hand", 1), 0)
    yield child
    child.end()


def test_a_fresh_child_runs_calls_until_nobody_wants_the_result(child: Child) -> None:
    """Values and errors come back; then it is killed, whatever it is at."""
    assert child.call(divmod, (7, 2), {}) == (True, (3, 1))
    is_value, error = child.call(divmod, (1, 0), {})
    assert not is_value
    assert isinstance(error, ZeroDivisionError)
    seen: list[Reading | None] = []

    def look(at_hand: Reading | None) -> bool:
        seen.append(at_hand)
        return False

    with pytest.raises(WorkerLost, match="was killed"):
        child.call(time.sleep, (600,), {}, look)
    assert seen == [None]


def test_large_sets_go_to_a_cluster_one_by_one_and_first() -> None:
    """Small ones in as many chunks as there are workers, if they have enough text."""
    sizes = [100, 40 << 20, *[CLUSTER_CHUNK_BYTES // 2] * 6]
    tasks = [
        Task(number, DumpSet("/d", f"m{number}", (Member("primary", "m-buffer-assignment.txt", size, 0),)))
        for number, size in enumerate(sizes)
    ]
    [large, *small] = _cluster_chunks(tasks, 100)
    assert [task.run_no for task in large] == [1]
    assert [task.run_no for chunk in small for task in chunk] == [0, 2, 3, 4, 5, 6, 7]
    assert len(small) == 3
    assert len(_cluster_chunks(tasks, 2)) == 1 + 2


def test_a_module_out_of_a_profile_goes_along(tmp_path: Path) -> None:
    """Its copy lies in a file that only the import sees."""
    copies = tmp_path / "copies"
    copies.write_bytes(b"before|module|after")
    place = InProfile(0, 6, "m", None, None, None, None, ModuleCopy(str(copies), 7))
    [sent] = [_with_module(Task(0, DumpSet("/d", "m", (Member("proto", "x.pb", 1, 1),), (), place)))]
    copies.unlink()
    assert sent.dump_set.in_profile is not None
    assert sent.dump_set.in_profile.copy is not None
    path, offset = sent.dump_set.in_profile.copy
    assert source_of(path).read_range(path, offset, 6) == b"module"


def test_a_cluster_without_workers_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while; and once more when all that came are lost."""
    now, workers = [1000.0], {"a": 0}
    events: list[Event] = []
    client = SimpleNamespace(
        nthreads=lambda: {name: count for name, count in workers.items() if count},
        subscribe_topic=lambda *_: None,
        close=lambda timeout: None,
    )
    monkeypatch.setattr(Cluster, "_connect", lambda *_: client)
    monkeypatch.setattr(cluster_module, "require_distributed", lambda: None)
    monkeypatch.setattr("ingest.staging.cluster.time.monotonic", lambda: now[0])
    with closing(Cluster("tcp://s", 1, events.append)) as cluster:

        def widths(count: int) -> set[int]:
            workers["a"] = count
            found = set()
            for _ in range(10):
                found.add(cluster.width)
                now[0] += 3
            return found

        assert (widths(0), len(events)) == ({1}, 1)
        assert (widths(4), len(events)) == ({4}, 1)
        assert (widths(0), events) == ({1}, [WaitingForWorkers("tcp://s")] * 2)


def test_a_missing_dask_is_reported_with_the_line_that_installs_it(
    tmp_path: Path, bare_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m-buffer-assignment.txt").write_text("BufferAssignment:\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SchedulerError, match=r"which is not installed: .* -m pip install 'distributed"):
        import_dumps([tmp_path], bare_database, scheduler=cluster_module.LOCAL)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"address": 5}'])
def test_a_file_that_is_of_no_scheduler_names_none(content: str, tmp_path: Path) -> None:
    """Dask itself would wait for an empty one, and for a missing one, without end."""
    path = tmp_path / "scheduler.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"no address|Expecting value"):
        _address_in(str(path))


def test_jobs_are_of_this_machine(tmp_path: Path) -> None:
    done = CliRunner().invoke(ingest, [str(tmp_path), "--jobs", "2", "--scheduler", "tcp://host:8786"])
    assert done.exit_code == 2
    assert "--jobs is about this machine" in done.output
