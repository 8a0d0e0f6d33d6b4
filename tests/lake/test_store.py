"""What names a lake, and what is said of a place that cannot be used."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from ingest.cli.lake import lake as lake_command
from ingest.errors import DatabaseError
from ingest.lake.store import Lake, in_words, parse_lake, require_libraries
from tests.support.dump_sets import DATA


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("lake:S3://Bucket/a", "s3://Bucket/a"),
        ("gs://bucket", "gs://bucket"),
        ("abfs://container@account/x", "az://container/x"),
    ],
)
def test_urls_of_stores(text: str, root: str) -> None:
    """The case of a bucket counts, that of the scheme does not."""
    assert parse_lake(text) == Lake(root, False)


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is made absolute; a file URL is a path."""
    monkeypatch.chdir(tmp_path)
    here = os.path.realpath(tmp_path)
    assert parse_lake("lake:some") == Lake(f"{here}/some", True)
    assert parse_lake(f"file://{here}/with%20space") == Lake(f"{here}/with space", True)


@pytest.mark.parametrize(
    "text",
    ["s3://key:SECRET@bucket/x", "s3://bucket/x?signature=SECRET", "s3://bucket/x#SECRET", "az://SECRET@b/x"],
)
def test_credentials_in_a_url_are_refused_and_not_shown(text: str) -> None:
    """They would be stored with the lake's name."""
    with pytest.raises(DatabaseError, match="environment") as caught:
        parse_lake(text)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "lake:", "https://host/lake", "s3:///x"])
def test_what_names_no_lake(text: str) -> None:
    """There is one line with what would."""
    with pytest.raises(DatabaseError, match=r"lake|bucket"):
        parse_lake(text)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (OSError("Generic S3 error: ... status: 403 Forbidden ?X-Amz-Signature=SECRET"), "permission denied"),
        (OSError("Server returned ... <Code>NoSuchBucket</Code>"), "no such bucket"),
        (OSError("error sending request for url (http://h/?SECRET): Connection refused"), "refused"),
        (ValueError("something SECRET"), "ValueError"),
    ],
)
def test_errors_are_said_in_words_of_our_own(raised: Exception, said: str) -> None:
    """The libraries quote requests with their signatures."""
    with pytest.raises(DatabaseError, match=said) as caught, in_words(Lake("s3://b/x", False), "runs"):
        raise raised
    assert "SECRET" not in str(caught.value)
    assert str(caught.value).startswith("s3://b/x/runs: ")
    assert caught.value.__cause__ is None


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that installs the libraries of the extra."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "fsspec" else found(name))
    with pytest.raises(DatabaseError, match=r"a lake needs fsspec, not installed here: .* -m pip install "):
        require_libraries()


@pytest.mark.parametrize("command", ["create", "upgrade", "compact", "vacuum", "verify"])
def test_commands_of_lakes_say_what_is_not_installed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one of them gets as far as an import that fails."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = CliRunner().invoke(lake_command, [command, str(tmp_path)], standalone_mode=False)
    assert isinstance(done.exception, DatabaseError)
    assert str(done.exception).startswith("a lake needs deltalake, fsspec, obstore, not installed here: ")


class _Denying(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        self.send_error(403)

    do_GET = do_PUT

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def denying() -> Iterator[str]:
    """URL of a service that gives no credentials, as a machine in a cloud may have it."""
    with HTTPServer(("127.0.0.1", 0), _Denying) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["xbuf", "runs", "--db"], ["xbuf_ingest", str(DATA / "seeds"), "--lake"]]
)
def test_a_store_without_credentials_is_one_line(command: list[str], denying: str, tmp_path: Path) -> None:
    """What the libraries log of their trials is not shown."""
    program, *words = command
    place = "s3://nobody-has-this/lake"
    words.append(f"lake:{place}" if program == "xbuf" else place)
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("AWS_") and name != "RUST_LOG"
    }
    environment |= {
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": denying,
        "AWS_REGION": "us-east-1",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    code = f"from ingest.cli.entry import {program}; {program}()"
    process = subprocess.run(
        [sys.executable, "-c", code, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 3
    [line] = process.stderr.splitlines()
    assert line.startswith(f"error: {place}")
