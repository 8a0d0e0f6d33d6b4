"""Dumps in a real object store, behind a proxy that fails: the same answers as from files, or one line."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.database.connect import open_database
from ingest.errors import SourceError
from ingest.pipeline.importer import import_dumps
from ingest.pipeline.watch import watch
from tests.source.test_archives import DUMP, PRIMARY
from tests.support.dump_sets import DATA
from tests.support.elsewhere import content_of
from tests.support.extras import require_library
from tests.support.query_databases import Answers, answers
from tests.support.s3 import ENVIRONMENT, put, s3_server
from tests.support.web import web_server


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_library("obstore")
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        yield url


@pytest.fixture
def endpoint(store: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The store, as the environment of an import names it."""
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": store}.items():
        monkeypatch.setenv(name, value)
    return store


def answers_of(database: Path) -> Answers:
    with open_database(database, read_only=True) as connection:
        return answers(connection, without={"dump_dir"})


@pytest.mark.parametrize(
    "where",
    [pytest.param("committed", marks=pytest.mark.slow), pytest.param("corpus", marks=pytest.mark.long)],
)
def test_dumps_from_a_failing_store_answer_as_from_files(
    where: str, request: pytest.FixtureRequest, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every saved query and every row: as a zip archive, and as objects; nothing is downloaded twice."""
    dumps = DATA / "dumps" if where == "committed" else request.getfixturevalue("shared_corpus")
    files = sorted(path for path in dumps.rglob("*") if path.is_file())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as out:
        for path in files:
            out.write(path, path.relative_to(dumps))
            put(f"{endpoint}/dumps/all/{path.relative_to(dumps)}", path.read_bytes())
    put(f"{endpoint}/dumps/all.zip", packed.getvalue())
    local = tmp_path / "local.duckdb"
    count = import_dumps(dumps, local).loaded
    expected, content = answers_of(local), content_of(local, str(dumps.resolve()))
    assert sum(map(len, expected.values())) > 1_000
    log = tmp_path / "log"
    # One request in ten fails: six times in a row one in a million does.
    faults = ",".join(fault for kind in ("503", "reset", "cut") for fault in [*["ok"] * 9, kind])
    with web_server(endpoint, faults, log) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy)
        for url in ("s3://dumps/all.zip", "s3://dumps/all"):
            database = tmp_path / f"{url.rpartition('/')[2]}.duckdb"
            assert import_dumps(url, database).loaded == count
            assert content_of(database, url) == content
            if url.endswith(".zip"):  # of objects large ones are loaded later, so numbers of runs differ
                assert answers_of(database) == expected
            log.write_text("")
            assert import_dumps(url, database).unchanged == count
            # An archive is asked for its version; of a folder the list is read, and what has foreign names.
            lines = log.read_text().splitlines()
            assert [line for line in lines if ".zip" in line and line.startswith("GET")] == []


@pytest.mark.slow
def test_a_changed_object_is_read_and_the_others_are_not(endpoint: str, tmp_path: Path) -> None:
    """By etag, size and time."""
    for name in ("a", "b"):
        put(f"{endpoint}/dumps/nightly/{name}/{PRIMARY}", DUMP)
    database = tmp_path / "xbuf.duckdb"
    assert import_dumps("s3://dumps/nightly", database, jobs=1).loaded == 2
    put(f"{endpoint}/dumps/nightly/a/{PRIMARY}", DUMP.replace(b"fusion", b"fusiom"))
    summary = import_dumps("s3://dumps/nightly", database, jobs=1)
    assert (summary.loaded, summary.unchanged) == (1, 1)
    put(f"{endpoint}/dumps/nightly/b/{PRIMARY}", DUMP)  # the same once more: read, and recognised
    summary = import_dumps("s3://dumps/nightly", database, jobs=1)
    assert (summary.loaded, summary.unchanged) == (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://no-such-bucket/a", "there is no such bucket"),
        ("s3://no-such-bucket", "there is no such bucket"),
    ],
)
def test_a_wrong_bucket_is_one_line(url: str, message: str, endpoint: str, tmp_path: Path) -> None:
    """And no database is made."""
    with pytest.raises(SourceError, match=message):
        import_dumps(url, tmp_path / "xbuf.duckdb")
    assert not (tmp_path / "xbuf.duckdb").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "message"),
    [("403", "permission denied"), ("503", "the server answers 503"), ("reset", "cannot be read after")],
)
def test_a_store_that_refuses_is_one_line(
    faults: str, message: str, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it refuses with."""
    with web_server(endpoint, faults) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy)
        with pytest.raises(SourceError, match=message) as caught:
            import_dumps("s3://dumps/nightly", tmp_path / "xbuf.duckdb")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_store_that_goes_away_while_it_is_read_leaves_whole_runs(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is loaded, and the next import goes on with the rest."""
    for number in range(40):
        put(f"{endpoint}/dumps/many/{number}/{PRIMARY}", DUMP)
    database = tmp_path / "xbuf.duckdb"
    monkeypatch.setattr("ingest.staging.workers.CHUNK_SETS", 5)
    with web_server(endpoint, ",".join(["ok"] * 65 + ["503"] * 10_000)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy)
        with pytest.raises(SourceError, match="the server answers 503"):
            import_dumps("s3://dumps/many", database, jobs=2)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    summary = import_dumps("s3://dumps/many", database, jobs=2)
    assert (summary.found, summary.loaded + summary.unchanged, summary.rejected) == (40, 40, 0)
    reference = tmp_path / "reference.duckdb"
    import_dumps("s3://dumps/many", reference, jobs=2)
    assert content_of(database, "") == content_of(reference, "")


@pytest.mark.slow
def test_what_appears_in_a_bucket_is_imported_while_it_is_watched(endpoint: str, tmp_path: Path) -> None:
    """Nothing lies below the prefix at first."""
    pauses: list[float] = []

    def pause(_: float) -> bool:
        pauses.append(time.monotonic())
        if len(pauses) == 1:
            put(f"{endpoint}/dumps/watched/{PRIMARY}", DUMP)
        return len(pauses) == 3

    done = watch("s3://dumps/watched", tmp_path / "xbuf.duckdb", pause=pause, quiet_seconds=0, jobs=1)
    assert [summary.loaded for summary in done] == [1]


@pytest.mark.slow
def test_time_that_is_up_ends_an_import(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while an answer comes in drops."""
    put(f"{endpoint}/dumps/slow/{PRIMARY}", DUMP)
    with web_server(endpoint, "slow") as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy)
        monkeypatch.setattr("tests.support.web.DROP_SECONDS", 1)
        with pytest.raises(SourceError, match="was not read in time; run again, or give it more"):
            import_dumps("s3://dumps/slow", tmp_path / "xbuf.duckdb", source_timeout=0.01)
