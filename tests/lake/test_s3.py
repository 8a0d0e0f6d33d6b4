"""A lake in an S3 server on loopback."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ingest.pipeline.importer as importer
from ingest import ImportSummary, import_dumps
from ingest.errors import DatabaseError
from ingest.events import Event, ImportFailed
from ingest.lake.batch import open_batches
from ingest.lake.commit import complete_all
from ingest.lake.compact import compact_lake
from ingest.lake.create import create_lake
from ingest.lake.store import Lake
from ingest.lake.vacuum import vacuum_lake
from ingest.lake.verify import verify_lake
from tests.lake.conftest import TWO_RUNS
from tests.support.lakes import Content, begin, end, in_process, load, steps, visible
from tests.support.s3 import ENVIRONMENT, put, s3_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with two buckets."""
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        put(f"{url}/lakes")
        put(f"{url}/sources")
        yield url


@pytest.fixture
def lake(server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake in a folder of its own."""
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT": server, "AWS_ENDPOINT_URL": server}.items():
        monkeypatch.setenv(name, value)
    lake = Lake(f"s3://lakes/{abs(hash(request.node.name))}/lake", False)
    assert in_process(create_lake, lake) is True
    assert in_process(create_lake, lake) is False
    return lake


def test_imports_from_the_store_into_the_store(lake: Lake, server: str, tmp_path: Path) -> None:
    """Dumps of a bucket, a lake in another; again nothing is new, and a label is put on what is there."""
    for path in TWO_RUNS.iterdir():
        put(f"{server}/sources/dumps/{path.name}", path.read_bytes())

    def run(**labels: str) -> tuple[int, int, int | None]:
        done = import_dumps(
            ["s3://sources/dumps"], lake=f"{lake}", staging=tmp_path / "staging", labels=labels, jobs=2
        )
        return done.loaded, done.unchanged, done.import_id

    assert run() == (2, 0, 1)
    assert run() == (0, 2, None)
    assert run(team="a")[:2] == (0, 2)
    seen = in_process(visible, lake)
    assert seen["runs"].total() == 2
    assert seen["run_labels"].total() == 2
    assert in_process(verify_lake, lake) == []


def test_a_race_of_writers_one_of_which_is_killed(lake: Lake, part: str, whole: Content) -> None:
    """All load the same runs; in the end each is there once, also after a compaction and a vacuum."""
    codes = [
        end(child)
        for child in [
            begin(lambda: (steps(9, "after")(), load(lake, part, team="a"))),
            *(begin(lambda: load(lake, part, team="a")) for _ in range(2)),
        ]
    ]
    assert codes[1:] == [0, 0]

    def look() -> tuple[Content, Content]:
        complete_all(lake)
        before = visible(lake)
        compact_lake(lake)
        vacuum_lake(lake, keep_hours=0)
        assert verify_lake(lake) == []
        assert open_batches(lake) == []
        return before, visible(lake)

    assert in_process(look) == (whole, whole)


@pytest.mark.parametrize("number", [2, 12])
def test_a_writer_killed_at_a_step(lake: Lake, part: str, whole: Content, number: int) -> None:
    """The next one completes what it began."""
    assert end(begin(lambda: (steps(number, "after")(), load(lake, part, team="a")))) == -9

    def look() -> Content:
        assert visible(lake)["runs"].total() in (0, 2)
        assert complete_all(lake) == 1
        return visible(lake)

    assert in_process(look) == whole


def test_a_store_that_goes_away(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read is kept on this machine, and loaded when the store is there again."""
    dumps = shutil.copytree(TWO_RUNS, tmp_path / "dumps")
    read = vars(importer)["read_tasks"]
    events: list[Event] = []

    def run() -> ImportSummary:
        return import_dumps(
            dumps, lake=f"{lake}", staging=tmp_path / "staging", jobs=1, on_event=events.append
        )

    with monkeypatch.context() as patch, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))

        def read_then_lose(*arguments: Any, **options: Any) -> None:
            read(*arguments, **options)
            for name in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL"):
                patch.setenv(name, f"http://127.0.0.1:{taken.getsockname()[1]}")

        patch.setattr("ingest.lake.store.RETRIES", 0)
        patch.setattr(importer, "read_tasks", read_then_lose)
        with pytest.raises(DatabaseError, match="refused"):
            run()
    [failed] = [one for one in events if isinstance(one, ImportFailed)]
    assert (failed.kept, failed.exit_code) == (2, 3)
    assert in_process(visible, lake)["runs"].total() == 0
    done = run()
    assert (done.loaded, done.unchanged, done.resumed) == (0, 2, 2)
    assert in_process(visible, lake)["runs"].total() == 2
