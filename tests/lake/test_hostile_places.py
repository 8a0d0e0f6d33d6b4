"""Places that cannot be a lake, or not now: one line with the remedy, exit code 3, nothing half visible."""

from __future__ import annotations

import re
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import ingest.lake.create as create_module
from ingest.database.revision import HEAD
from ingest.errors import DatabaseError, DatabaseTooNew, NotADatabase
from ingest.lake.batch import open_batches
from ingest.lake.commit import complete_all
from ingest.lake.create import create_lake, open_imports, upgrade_lake
from ingest.lake.layout import LAKE_TABLES, REVISION, delta_schema
from ingest.lake.store import Lake
from tests.support.lakes import Content, begin, end, in_process, load, steps, visible
from tests.support.s3 import ENVIRONMENT

AT_STORE = Lake("s3://bucket/lake", False)


def refusal(function: object, *arguments: object) -> DatabaseError:
    """Return what a function raises, run in a process of its own."""

    def run() -> DatabaseError:
        with pytest.raises(DatabaseError) as caught:
            function(*arguments)  # type: ignore[operator]
        return caught.value

    error = in_process(run)
    assert error.exit_code == 3
    assert "\n" not in str(error)
    return error


@contextmanager
def store_that(answer: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """Run a server that speaks S3 well enough to be probed; it ignores If-None-Match, or `denies` all."""
    objects: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if answer == "denies":
                self.reply(403, b"<Error><Code>AccessDenied</Code><Secret>SECRET</Secret></Error>")
            else:
                objects[urlsplit(self.path).path.removeprefix("/bucket/")] = body
                self.reply(200)

        def do_GET(self) -> None:
            prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
            listed = "".join(
                f"<Contents><Key>{key}</Key><Size>1</Size><ETag>1</ETag>"
                "<LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
                for key in objects
                if key.startswith(prefix)
            )
            if "list-type" in self.path:
                self.reply(200, f"<ListBucketResult>{listed}</ListBucketResult>".encode())
            else:
                self.reply(404)

        def do_HEAD(self) -> None:
            self.reply(404)

        def do_DELETE(self) -> None:
            objects.pop(urlsplit(self.path).path.removeprefix("/bucket/"), None)
            self.reply(204)

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            gone = [key for key in re.findall("<Key>(.*?)</Key>", asked) if objects.pop(key, None)]
            deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in gone)
            self.reply(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield objects
        finally:
            server.shutdown()
            thread.join()


def test_a_store_that_ignores_conditions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a table is made there, and nothing is left."""
    with store_that("ignores", monkeypatch) as objects:
        error = refusal(create_lake, AT_STORE)
    assert "If-None-Match" in str(error)
    assert objects == {}


def test_a_store_that_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is not repeated."""
    with store_that("denies", monkeypatch):
        error = refusal(create_lake, AT_STORE)
    assert "credentials of this process" in str(error)
    assert "SECRET" not in str(error)


def test_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setattr("ingest.lake.store.RETRIES", 0)
        error = refusal(create_lake, AT_STORE)
    assert "refused" in str(error)


def foreign_table(root: str) -> None:
    from deltalake import DeltaTable, Field, Schema
    from deltalake.schema import PrimitiveType

    DeltaTable.create(root, Schema([Field("theirs", PrimitiveType("long"), True)]))


@pytest.mark.parametrize("place", ["", "/imports", "/values"])
def test_a_delta_table_of_somebody_else(tmp_path: Path, place: str) -> None:
    """It is left as it is."""
    lake = Lake(str(tmp_path / "lake"), True)
    in_process(foreign_table, f"{lake.root}{place}")
    log = Path(f"{lake.root}{place}/_delta_log")
    before = {path.name: path.read_bytes() for path in log.iterdir()}
    error = refusal(create_lake, lake)
    assert isinstance(error, NotADatabase)
    assert {path.name: path.read_bytes() for path in log.iterdir()} == before
    assert isinstance(refusal(open_imports, lake), DatabaseError)


def set_revision(lake: Lake, revision: str) -> None:
    lake.table("imports").alter.set_table_properties({REVISION: revision}, raise_if_not_exists=False)


def test_a_lake_of_a_newer_version_is_not_written(lake: Lake, part: str) -> None:
    """Neither by a new batch nor by an upgrade to what is older."""
    in_process(set_revision, lake, "9999_later")
    for function, arguments in ((load, (lake, part)), (upgrade_lake, (lake,)), (open_imports, (lake,))):
        error = refusal(function, *arguments)
        assert isinstance(error, DatabaseTooNew)
        assert "upgrade xbuf" in str(error)
    assert in_process(open_batches, lake) == []


@pytest.mark.slow
def test_a_lake_of_an_older_version_is_brought_up_to_date(
    tmp_path: Path, part: str, whole: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns and tables are added; rows that are there keep what they have."""
    lake = Lake(str(tmp_path / "lake"), True)
    lacking = {"values": "source_via", "runs": "parameters_digest"}

    def make_older() -> None:
        from deltalake import Schema

        def without(name: str) -> Schema:
            return Schema([one for one in delta_schema(name).fields if one.name != lacking.get(name)])

        vars(create_module)["LAKE_TABLES"] = tuple(one for one in LAKE_TABLES if one != "color_peaks")
        vars(create_module)["delta_schema"] = without
        create_module.create_lake(lake)
        set_revision(lake, "0000_before")

    in_process(make_older)
    monkeypatch.setattr(create_module, "revisions", lambda: ("0000_before", HEAD))
    assert "xbuf lake upgrade" in str(refusal(open_imports, lake))

    def upgrade() -> Content:
        done = upgrade_lake(lake)
        assert done == ("0000_before", HEAD, ("runs.parameters_digest", "values.source_via"))
        assert upgrade_lake(lake).columns == ()
        load(lake, part, team="a")
        return visible(lake)

    assert in_process(upgrade) == whole


@pytest.mark.slow
def test_a_damaged_object_of_a_batch(lake: Lake, part: str) -> None:
    """It is named; nothing of its batch counts, and its dumps can be imported again."""
    assert end(begin(lambda: (steps(2, "after")(), load(lake, part)))) == -9
    half = Path(lake.url("_batches/1.json"))
    half.write_bytes(half.read_bytes()[:100])
    assert "_batches/1.json: is damaged" in str(refusal(complete_all, lake))
    assert not in_process(visible, lake)["runs"]
    half.unlink()
    assert in_process(load, lake, part) == (2, 2)


def test_a_damaged_log(lake: Lake, part: str) -> None:
    """A commit that is cut off, as no store does it."""
    for path in Path(lake.url("runs/_delta_log")).glob("*.json"):
        path.write_bytes(path.read_bytes()[:30])
    error = refusal(load, lake, part)
    assert str(error).startswith(f"{lake}/runs: ")


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """It stays a file."""
    (tmp_path / "lake").write_text("mine")
    error = refusal(create_lake, Lake(str(tmp_path / "lake"), True))
    assert "lake" in str(error)
    assert (tmp_path / "lake").read_text() == "mine"


@pytest.mark.slow
def test_a_lake_that_was_half_made_is_finished(lake: Lake, tmp_path: Path, part: str) -> None:
    """The table `imports` comes last."""
    shutil.rmtree(lake.url("imports"))
    shutil.rmtree(lake.url("values"))
    assert in_process(create_lake, lake) is True
    assert in_process(load, lake, part) == (1, 2)
