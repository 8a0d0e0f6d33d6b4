"""What names a lake, and what is said of a place that cannot be used."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from ingest.errors import DatabaseError
from ingest.lake.store import Lake, in_words, parse_lake, require_libraries


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
