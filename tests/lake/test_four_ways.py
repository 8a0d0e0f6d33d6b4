"""The same dumps by four ways, each with something that goes wrong, answer every question alike.

A file from a folder; a file from an archive in a failing S3 store; a lake by two writers at once, of which
one is killed in the middle of its commit; a lake by a Dask cluster that loses a worker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest import import_dumps
from ingest.database.connect import open_database
from ingest.lake.opened import open_lake
from ingest.lake.store import Lake
from ingest.lake.transactions import add_once
from ingest.lake.transfer import export_lake
from tests.support.content import content, differences
from tests.support.dump_sets import DATA
from tests.support.extras import require_library
from tests.support.lakes import begin, die, end
from tests.support.query_databases import answers
from tests.support.s3 import ENVIRONMENT, put, s3_server
from tests.support.waiting import wait_until
from tests.support.web import web_server

Counted = dict[str, Counter[str]]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(False, id="committed", marks=pytest.mark.slow),
        pytest.param(True, id="corpus", marks=pytest.mark.long),
    ],
)
def dumps(request: pytest.FixtureRequest) -> Path:
    """The committed dumps, of every release that there is; or all of the corpus."""
    return Path(request.getfixturevalue("shared_corpus")) if request.param else DATA / "dumps"


@pytest.fixture(scope="module")
def from_folder(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first way, to which the others are held."""
    database = tmp_path_factory.mktemp("folder") / "xbuf.duckdb"
    assert import_dumps(dumps, database).status == "ok"
    return database


@pytest.fixture(scope="module")
def expected(from_folder: Path) -> Counted:
    with open_database(from_folder, read_only=True) as connection:
        found = counted(connection)
    assert sum(map(len, found.values())) > 1_000
    return found


def counted(connection: duckdb.DuckDBPyConnection) -> Counted:
    """Return how often each row is in the answer to each saved query; see `answers`."""
    return {name: Counter(map(repr, rows)) for name, rows in answers(connection).items()}


def check(database: Path, from_folder: Path, expected: Counted, root: str | None = None) -> None:
    """Hold a file to the one from a folder.

    Args:
        root: what its dumps are said to lie in.
    """
    with duckdb.connect(str(from_folder), read_only=True) as connection:
        [(folder,)] = connection.execute("SELECT sources[1] FROM imports").fetchall()
    _number_alike(database, from_folder, root or folder, folder)
    if root is None:
        assert differences(content(from_folder), content(database)) == {}
    with open_database(database, read_only=True) as connection:
        found = counted(connection)
    for name, rows in expected.items():
        assert found[name] == rows, name


def _number_alike(database: Path, like: Path, root: str, new_root: str) -> None:
    """Give runs the numbers and places that they have in another file: answers show them and sort by them."""
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"ATTACH '{like}' AS other (READ_ONLY)")
        connection.execute("UPDATE runs SET dump_dir = replace(dump_dir, $1, $2)", [root, new_root])
        connection.execute(
            "CREATE TEMP TABLE numbers AS SELECT m.run_id AS old, o.run_id AS new"
            " FROM runs AS m JOIN other.runs AS o USING (dump_dir, stem, content_sha256)"
        )
        tables = connection.execute(
            "SELECT table_name FROM duckdb_columns()"
            " SEMI JOIN duckdb_tables() USING (database_name, schema_name, table_name)"
            " WHERE column_name = 'run_id' AND NOT internal AND database_name = current_database()"
        ).fetchall()
        for (table,) in tables:
            if table != "numbers":
                # A key that is there for a moment twice is refused: apart first.
                connection.execute(f'UPDATE "{table}" SET run_id = -run_id')
                connection.execute(f'UPDATE "{table}" SET run_id = new FROM numbers WHERE run_id = -old')
        connection.execute("UPDATE runs SET import_id = 1")
        connection.execute("DELETE FROM imports WHERE import_id <> (SELECT min(import_id) FROM imports)")
        connection.execute("UPDATE imports SET import_id = 1")


def check_lake(lake: Lake, from_folder: Path, expected: Counted, folder: Path) -> None:
    """Hold a lake to the file from a folder, by way of a file with the lake's rows and numbers."""
    exported = folder / "exported.duckdb"
    assert end(begin(lambda: export_lake(lake, str(exported)))) == 0
    with open_lake(lake) as in_lake, open_database(exported, read_only=True) as in_file:
        assert counted(in_lake) == counted(in_file)
    check(exported, from_folder, expected)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A real store; one request in ten to the address in the environment fails."""
    require_library("obstore")
    (tmp_path / "s3").mkdir()
    faults = ",".join(fault for kind in ("503", "reset", "cut") for fault in [*["ok"] * 9, kind])
    with s3_server(tmp_path / "s3") as url, web_server(url, faults, tmp_path / "log") as proxy:
        for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": proxy}.items():
            monkeypatch.setenv(name, value)
        yield url


def test_a_zip_archive_in_a_failing_store(
    dumps: Path, store: str, from_folder: Path, expected: Counted, tmp_path: Path
) -> None:
    packed = tmp_path / "dumps.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(path for path in dumps.rglob("*") if path.is_file()):
            out.write(path, path.relative_to(dumps))
    put(f"{store}/dumps/dumps.zip", packed.read_bytes())
    database = tmp_path / "xbuf.duckdb"
    assert import_dumps("s3://dumps/dumps.zip", database).status == "ok"
    check(database, from_folder, expected, "s3://dumps/dumps.zip")


def test_a_lake_by_two_writers_of_which_one_is_killed(
    dumps: Path,
    from_folder: Path,
    expected: Counted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both import all; one dies when a few tables have its rows. Who comes next completes it."""
    lake = Lake(str(tmp_path / "lake"), True)

    def write(staging: str, *, dies: bool) -> None:
        if dies:
            importer, calls = os.getpid(), count()

            def dying(*arguments: Any) -> None:
                if next(calls) == 4:
                    os.kill(importer, signal.SIGKILL)
                    die()  # the process that has opened the lake
                add_once(*arguments)

            monkeypatch.setattr("ingest.lake.commit.add_once", dying)
        import_dumps(dumps, lake=lake.root, staging=tmp_path / staging)

    writers = [begin(lambda: write("first", dies=True)), begin(lambda: write("second", dies=False))]
    codes = [end(writer) for writer in writers]
    assert codes[1] == 0
    assert codes[0] == -signal.SIGKILL
    assert end(begin(lambda: write("first", dies=False))) == 0
    assert list(Path(lake.root, "_batches").glob("*")) == []
    check_lake(lake, from_folder, expected, tmp_path)


@pytest.mark.parametrize("dumps", [pytest.param(True, id="corpus", marks=pytest.mark.long)], indirect=True)
def test_a_lake_by_a_cluster_that_loses_a_worker(
    dumps: Path, from_folder: Path, expected: Counted, tmp_path: Path
) -> None:
    """Nobody starts it again: the other worker reads its dumps."""
    pytest.importorskip("distributed")
    lake = Lake(str(tmp_path / "lake"), True)
    address = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    words = ["--scheduler-file", str(address), "--no-dashboard"]
    scheduler = [*dask, "scheduler", *words, "--host", "127.0.0.1", "--port", "0"]
    worker = [*dask, "worker", *words, "--nthreads", "1", "--no-nanny", "--local-directory", str(tmp_path)]
    command = [sys.executable, "-c", "from ingest.cli.entry import xbuf_ingest; xbuf_ingest()"]
    command += [str(dumps), "--lake", lake.root, "--staging", str(tmp_path / "staging")]
    with ExitStack() as stack:

        def start(words: list[str]) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            )
            stack.callback(process.kill)
            return process

        start(scheduler)
        wait_until(address.exists, "the scheduler")
        workers = [start(worker) for _ in range(2)]
        importer = start([*command, "--scheduler", str(address)])
        # A worker has a process that reads the dumps from the moment on when it is given some.
        wait_until(lambda: any(map(children, workers)) or importer.poll() is not None, "work")
        assert importer.poll() is None
        next(filter(children, workers)).kill()
        output, _ = importer.communicate()
    assert importer.returncode == 0, output
    assert " 0 rejected" in output
    check_lake(lake, from_folder, expected, tmp_path)


def children(process: subprocess.Popen[str]) -> list[str]:
    """Return the process ids of the children of a process."""
    tasks = Path("/proc", str(process.pid), "task").glob("*/children")
    return [child for task in tasks for child in task.read_text().split()]
