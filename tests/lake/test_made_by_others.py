"""A lake may be made by anybody: what it names lies in it, or nothing is read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from ingest.cli.xbuf import xbuf
from ingest.errors import DatabaseError, DatabaseTooNew, NotADatabase, UsageError
from ingest.lake.reading import in_words_of, open_to_read
from ingest.lake.store import Lake

_FIELD = {"name": "run_id", "type": "string", "nullable": True, "metadata": {}}
_OTHER = json.dumps({"type": "struct", "fields": [_FIELD]})


def _rewrite(lake: Lake, table: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the actions in the log of a table."""
    for file in Path(lake.url(f"{table}/_delta_log")).glob("*.json"):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            change(action)
        file.write_text("".join(json.dumps(action) + "\n" for action in actions))


def _refusal(lake: Lake) -> str:
    with pytest.raises(NotADatabase) as refused:
        open_to_read(f"lake:{lake}").close()
    return str(refused.value)


@pytest.mark.parametrize("place", ["../../{}", "{}", "file://{}", "a/../../../{}", "sub/one.parquet"])
def test_a_log_names_no_files_elsewhere(full_lake: Lake, tmp_path: Path, place: str) -> None:
    """Neither upwards nor by an absolute path or a URL."""
    other = tmp_path / "other.parquet"
    duckdb.sql(f"COPY (SELECT 1 AS run_id) TO '{other}'")
    named = place.format(other)

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["path"] = named

    _rewrite(full_lake, "values", change)
    assert "which is no file of that folder; nothing of it is read" in _refusal(full_lake)


@pytest.mark.parametrize("linked", ["values", "file"])
def test_links_are_not_followed(full_lake: Lake, tmp_path: Path, linked: str) -> None:
    """Neither in the place of a file nor of a folder."""
    folder = Path(full_lake.url("values"))
    place = folder if linked == "values" else next(folder.glob("*.parquet"))
    shutil.move(place, tmp_path / "other")
    os.symlink(tmp_path / "other", place)
    assert "which is no file of that folder" in _refusal(full_lake)


@pytest.mark.parametrize(
    ("section", "changed"),
    [
        ("protocol", {"minReaderVersion": 2}),
        ("metaData", {"partitionColumns": ["run_id"]}),
        ("metaData", {"schemaString": _OTHER}),
    ],
    ids=["protocol", "partitions", "columns"],
)
def test_a_table_of_something_else_is_refused(full_lake: Lake, section: str, changed: dict[str, Any]) -> None:
    """By its features, partitions or columns."""
    _rewrite(full_lake, "runs", lambda action: action.get(section, {}).update(changed))
    assert _refusal(full_lake).startswith(f"{full_lake}/runs: is a Delta table ")


@pytest.mark.parametrize(
    ("revision", "kind", "words"),
    [
        ("9999_later", DatabaseTooNew, "newer than this xbuf"),
        (None, NotADatabase, "is a Delta table of something else"),
    ],
)
def test_a_lake_of_another_schema_is_refused(
    full_lake: Lake, revision: str | None, kind: type[DatabaseError], words: str
) -> None:
    """Before any table is read."""

    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"] = {} if revision is None else {"xbuf.revision": revision}

    _rewrite(full_lake, "imports", change)
    with pytest.raises(kind, match=words):
        open_to_read(f"lake:{full_lake}")


@pytest.mark.parametrize("content", [b"PAR1 and no more", None], ids=["damaged", "gone"])
def test_a_file_that_cannot_be_read_is_named(full_lake: Lake, content: bytes | None) -> None:
    """Where the lake is opened, or where a query meets it."""
    file = next(Path(full_lake.url("values")).glob("*.parquet"))
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DatabaseError, match=f"values/{file.name}: "):
        open_to_read(f"lake:{full_lake}")


def test_a_file_of_other_columns_is_refused(full_lake: Lake) -> None:
    """Where the log says that it has those of the table."""
    file = next(Path(full_lake.url("values")).glob("*.parquet"))
    duckdb.sql(f"COPY (SELECT 1 AS run_id) TO '{file}'")
    with pytest.raises(DatabaseError):
        open_to_read(f"lake:{full_lake}")


def test_errors_of_sql_stay_what_they_are(demonstration_lake: Path) -> None:
    """A statement that DuckDB refuses is wrong usage, in a lake too."""
    name = f"lake:{demonstration_lake}"
    with pytest.raises(duckdb.CatalogException), in_words_of(name), open_to_read(name) as connection:
        connection.execute("FROM nothing")


def test_there_is_no_lake(tmp_path: Path) -> None:
    """One line, and exit code 3; nothing is made."""
    done = CliRunner().invoke(xbuf, ["runs", "--db", f"lake:{tmp_path}/none"])
    assert isinstance(done.exception, NotADatabase)
    assert "there is no such table or file; make the lake" in str(done.exception)
    assert done.exception.exit_code == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("doctor", "or: xbuf lake verify s3://bucket/xbuf"),
        ("db compact", "or: xbuf lake compact s3://bucket/xbuf"),
        ("db upgrade", "or: xbuf lake upgrade s3://bucket/xbuf"),
        ("shell", "or see xbuf lake --help"),
        ("db status", "or see xbuf lake --help"),
    ],
)
def test_commands_of_a_file_refuse_a_lake(words: str, instead: str) -> None:
    """And name what works on one, before anything is opened."""
    done = CliRunner().invoke(xbuf, [*words.split(), "--db", "lake:s3://bucket/xbuf"])
    assert isinstance(done.exception, UsageError)
    assert f"works on a database file; name one with --db, {instead}" in str(done.exception)
