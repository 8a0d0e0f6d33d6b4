"""Dumps at URLs: what is read, what is tried again, what is never shown; against a web server on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ingest.check.baseline import as_json
from ingest.check.gate import Gate, measure_baseline
from ingest.database.refusals import command_line
from ingest.dump.find import discover
from ingest.errors import SourceError, UsageError
from ingest.pipeline.importer import import_dumps
from ingest.source.address import parse_url, place_of
from ingest.source.apart import apart
from ingest.source.kinds import without_secrets
from ingest.source.objects import AtUrl, version_of
from ingest.source.source import Terms, Unreachable
from tests.source.test_archives import DUMP, PRIMARY, VALUES, as_tar, as_zip
from tests.support.extras import require_library
from tests.support.waiting import HANGING_SECONDS
from tests.support.web import web_server

SECRET = "S3CR3T"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("S3A://Bucket/Key", "s3://Bucket/Key"),
        ("gs://bucket", "gs://bucket"),
        ("abfs://box@account.dfs.core.windows.net/a", "az://box/a"),
        (f"s3://key:{SECRET}@bucket/a", "s3://bucket/a"),
        (
            f"https://user:{SECRET}@host:8443/a%20b.zip?X-Amz-Signature={SECRET}#x",
            "https://host:8443/a b.zip",
        ),
        (f"https://{SECRET}@host/a.zip", "https://host/a.zip"),
        (f"https://user:a b@{SECRET}@host/a.zip", "https://host/a.zip"),
        (f"az://box/a?sv=2026&sig={SECRET}", "az://box/a"),
    ],
)
def test_what_is_shown_of_a_url_opens_nothing(url: str, shown: str) -> None:
    """User, password, query and fragment stay out of what is stored and printed, and of its repr."""
    address = parse_url(url)
    assert address.shown == place_of(url) == shown
    assert SECRET not in repr(address) + repr(AtUrl(address)) + without_secrets(url)
    assert " " in url or SECRET not in without_secrets(f"xbuf-ingest {url} --x")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/a.zip",
        "s3://",
        "https:///a.zip",
        "http://host:port/a",
        f"https://user:pass/{SECRET}@host/a.zip",
        f"https://user:12#{SECRET}@host/a.zip",
        f"ftp://user:{SECRET}@host/a.zip",
    ],
)
def test_a_url_of_nothing_that_is_read_is_wrong_usage(url: str) -> None:
    """It says what is; where its parts cannot be told from each other, none of them is shown."""
    with pytest.raises(UsageError) as caught:
        parse_url(url)
    assert SECRET not in str(caught.value) + without_secrets(url)


def test_the_command_of_a_process_is_shown_without_secrets() -> None:
    """Also where only its first bytes are read, which may end within a password."""
    code = "import time; time.sleep(3600)"
    left = 4096 - len(f"{sys.executable} -c {code}  https://user:S3")
    for filling in ("x", "x" * left):
        words = [sys.executable, "-c", code, filling, f"https://user:{SECRET}@host/a.zip"]
        with subprocess.Popen(words) as process:
            try:
                while "sleep" not in (command := command_line(process.pid) or ""):
                    time.sleep(0.01)
            finally:
                process.kill()
        assert SECRET[:2] not in command


def test_a_local_import_imports_nothing_for_urls(tmp_path: Path) -> None:
    """Neither obstore nor what reads archives."""
    code = (
        "import sys; import ingest.pipeline.importer; from ingest.dump.find import discover;"
        " discover(sys.argv[1]); print([m for m in sys.modules if m in ('obstore', 'tarfile') or"
        " m.startswith('ingest.source')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "obstore" not in done.stdout
    assert "objects" not in done.stdout
    assert "archive" not in done.stdout


def test_without_the_extra_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the versions that the extra names; and nothing of the URL that is secret."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SourceError, match=r"-m pip install 'obstore>=0\.12,<0\.13'"):
        discover(f"https://host/a.zip?sig={SECRET}")


def _numbers(count: int, seconds: float) -> Iterator[int]:
    for number in range(count):
        yield number
        time.sleep(seconds)
    raise PermissionError(13, "no")


def test_a_process_apart_hands_on_items_and_errors_and_ends_in_time() -> None:
    """Whatever it waits for."""
    numbers = apart(_numbers, 3, 0, what="x", terms=Terms())
    assert [next(numbers) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(PermissionError):
        next(numbers)
    with pytest.raises(SourceError, match="x: was not read in time"):
        list(apart(_numbers, 2, 3600, what="x", terms=Terms(time.time() + 0.1)))


def _import_here(url: str, database: Path) -> Iterator[object]:
    """Import in this process, which must not fork; then say what a child of it meets."""
    fork = os.fork

    def refuse() -> int:
        raise AssertionError("forked")

    os.fork = refuse
    yield import_dumps([f"{url}/dumps.zip", f"{url}/{PRIMARY}"], database, jobs=0).loaded
    reading, writing = os.pipe()
    if not fork():
        with os.fdopen(writing, "w") as out:
            try:
                AtUrl(parse_url(url)).status(url)
            except SourceError as error:
                out.write(str(error))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        yield answer.read()


def _import_after_reading(url: str, database: Path) -> Iterator[object]:
    """Import by workers in a process that has read a store, as one does that has opened a lake there."""

    def refuse() -> int:
        raise AssertionError("forked")

    os.fork = refuse
    yield AtUrl(parse_url(url)).status(f"{url}/{PRIMARY}") is not None
    yield import_dumps([f"{url}/dumps.zip", f"{url}/{PRIMARY}"], database, jobs=2).loaded


@pytest.mark.slow
def test_the_workers_of_a_process_that_has_read_a_store_are_new_programs(
    folder: Path, tmp_path: Path
) -> None:
    """One that it forks would wait for ever for threads that it has not."""
    require_library("obstore")
    with web_server(folder) as url:
        terms = Terms(time.time() + HANGING_SECONDS)
        read = apart(_import_after_reading, url, tmp_path / "xbuf.duckdb", what="", terms=terms)
        assert list(read) == [True, 2]


def test_without_workers_nothing_is_forked(folder: Path, tmp_path: Path) -> None:
    """A program whose threads are not Python's must not be. Its children cannot read URLs, and say so."""
    require_library("obstore")
    with web_server(folder) as url:
        loaded, of_child = apart(_import_here, url, tmp_path / "xbuf.duckdb", what="", terms=Terms())
    assert loaded == 2
    assert "import with jobs=0" in str(of_child)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("web")
    (folder / "dumps.zip").write_bytes(as_zip([(f"n/{PRIMARY}", DUMP)]))
    (folder / "dumps.tar").write_bytes(as_tar([(f"n/{PRIMARY}", DUMP)]))
    (folder / PRIMARY).write_bytes(DUMP)
    return folder


def _read(url: str, trials: int) -> Iterator[object]:
    from ingest.source import objects, streams

    objects.FIRST_PAUSE, objects.TRIALS, streams.RANGE_BYTES = 0.01, trials, 3000  # type: ignore[misc]
    address = parse_url(url)
    source = AtUrl(address._replace(key=""))
    path = address.shown
    found = source.status(path)
    assert found is not None
    yield found
    with source.open(path, found).stream as stream:
        yield stream.read()
        stream.seek(5000)
        yield stream.read(10)


def read(url: str, trials: int = 6) -> list[object]:
    return list(apart(_read, url, trials, what=url, terms=Terms(time.time() + HANGING_SECONDS)))


@pytest.mark.parametrize(
    "faults",
    [
        *("ok", "slow", "503,reset,cut,ok"),
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("503,ok", "reset,ok", "cut,ok")),
    ],
)
def test_a_file_is_read_whole_whatever_fails_in_between(faults: str, folder: Path) -> None:
    """In ranges, each tried again; the content is that of the file."""
    require_library("obstore")
    with web_server(folder, faults) as url:
        status, content, part = read(f"{url}/{PRIMARY}")
    assert content == DUMP
    assert part == DUMP[5000:5010]
    assert isinstance(status, tuple)
    assert status[:2] == (len(DUMP), 1_600_000_000_000_000_000)


@pytest.mark.parametrize(
    ("faults", "error", "message"),
    [
        ("ok,503", SourceError, "the server answers 503; .* does not answer either"),
        ("ok,cut", Unreachable, "cannot be read after 2 trials: the connection is cut off"),
        pytest.param("ok,400", Unreachable, "cannot be read: the server answers 400", marks=pytest.mark.slow),
        ("ok,403", PermissionError, "Permission denied"),
        pytest.param("ok,stale", OSError, "another version than was listed", marks=pytest.mark.slow),
    ],
)
def test_what_keeps_failing_is_said_in_a_line_without_secrets(
    faults: str, error: type[Exception], message: str, folder: Path
) -> None:
    """The library's own messages quote the URL."""
    require_library("obstore")
    with web_server(folder, ",".join([faults, *[faults.split(",")[1]] * 20])) as url:
        where = f"{url.replace('//', f'//user:{SECRET}@')}/{PRIMARY}?sig={SECRET}"
        with pytest.raises(error, match=message) as caught:
            read(where, trials=2)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have two trials and no pause between them, also in the processes that read."""
    monkeypatch.setattr("ingest.source.objects.FIRST_PAUSE", 0.001)
    monkeypatch.setattr("ingest.source.objects.TRIALS", 2)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_files_that_fail_for_good_are_rejects_and_the_next_import_loads_them(tmp_path: Path) -> None:
    """The store answers otherwise. A sidecar file is no reason to load its dump without it for ever."""
    require_library("obstore")
    name = "module_{:04}.jit_f.cpu_after_optimizations"
    faults = {"0001": "500:2", "0002": "cut:2", "0003": "reset:2", "0004": "403:1"}
    for number in range(6):
        (tmp_path / f"{name.format(number)}-buffer-assignment.txt").write_bytes(DUMP)
    hlo = f"{name.format(5)}.txt"
    (tmp_path / hlo).write_bytes(b"HloModule jit_f\n")
    faults[hlo] = "500:4"
    given = ",".join(f"{part}={fault}" for part, fault in faults.items())
    database = tmp_path / "xbuf.duckdb"
    with web_server(tmp_path, given) as url:
        where = url.replace("//", f"//user:{SECRET}@")
        urls = [f"{where}/{path.name}?sig={SECRET}" for path in sorted(tmp_path.glob("module*"))]
        summary = import_dumps(urls, database, jobs=1)
        assert (summary.status, summary.loaded, summary.rejected) == ("rejects", 1, 5)
        why = {one.file.removeprefix(f"{url}/")[:11]: one.message for one in summary.rejects}
        again = "the next import tries again"
        assert why.pop("module_0003").startswith("cannot be read after 2 trials: ")  # as the kernel says it
        assert why == {
            "module_0001": f"cannot be read after 2 trials: the server answers 500; {again}",
            "module_0002": f"cannot be read after 2 trials: the connection is cut off; {again}",
            "module_0004": "cannot be read: Permission denied; change its permissions or leave it out",
            "module_0005": f"cannot be read after 2 trials: the server answers 500; {again}",
        }
        assert hlo in next(one.file for one in summary.rejects if "_0005" in one.file)
        failed = repr(summary)
        summary = import_dumps(urls, database, jobs=1)
        assert (summary.status, summary.loaded, summary.unchanged) == ("ok", 5, 1)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept + failed.encode()


def test_a_version_is_the_same_from_a_listing_as_from_an_answer() -> None:
    """Azure lists etags without their quotes, Google milliseconds."""
    modified = datetime(2026, 11, 22, 2, 27, 4, tzinfo=UTC)
    answer = {"size": 11, "e_tag": '"0x1C"', "last_modified": modified}
    listed = {"size": 11, "e_tag": "0x1C", "last_modified": modified + timedelta(milliseconds=631)}
    assert version_of(listed) == version_of(answer)
    assert version_of({**answer, "e_tag": 'W/"1C"'}).etag == 'W/"1C"'


def test_an_archive_at_a_url_is_imported_once_and_its_secret_kept_nowhere(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The second import asks for its version and downloads nothing."""
    require_library("obstore")
    database, log = tmp_path / "xbuf.duckdb", tmp_path / "log"
    events: list[object] = []
    with web_server(folder, "ok", log) as url:
        where = f"{url.replace('//', f'//user:{SECRET}@')}/dumps.zip?sig={SECRET}"
        summary = import_dumps(where, database, jobs=1, on_event=events.append)
        assert (summary.loaded, summary.rejected) == (1, 0)
        log.write_text("")
        assert import_dumps(where, database, jobs=1, on_event=events.append).unchanged == 1
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["HEAD"]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != log)
    assert SECRET.encode() not in kept
    assert url.encode() in kept
    assert SECRET not in repr(events) + repr(summary) + "".join(capfd.readouterr())


def test_files_at_urls_that_lie_together_are_one_set(folder: Path) -> None:
    """A web server lists nothing, so each is named; another key of the same place is another file."""
    require_library("obstore")
    (folder / VALUES).write_bytes(DUMP)
    with web_server(folder) as url:
        found = discover([f"{url}/{PRIMARY}", f"{url}/{VALUES}"])
        assert [[member.role for member in one.members] for one in found.sets] == [["primary", "values"]]
        assert found.sets[0].directory == url
        with pytest.raises(UsageError, match="there is no such file"):
            discover(f"{url}/missing.zip")
        with pytest.raises(SourceError, match="lists no files"):
            discover(f"{url}/")


@pytest.mark.slow
def test_the_gate_names_a_url_without_its_secret(folder: Path) -> None:
    """Nor does the baseline hold it, which goes into a repository."""
    require_library("obstore")
    with web_server(folder) as url:
        baseline = measure_baseline(Gate((f"{url}/dumps.zip?sig={SECRET}",), "none.duckdb", jobs=1))
    assert f"{url}/dumps.zip" in repr(baseline)
    assert SECRET not in repr(baseline) + as_json(baseline)
