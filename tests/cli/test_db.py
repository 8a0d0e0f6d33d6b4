"""`xbuf db upgrade` and `xbuf db status`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ingest.cli.db import db
from ingest.database.revision import HEAD
from ingest.database.tables import TABLES
from ingest.errors import DatabaseError


def invoke(*arguments: str | Path) -> str:
    """Run `xbuf db ...` and return what it printed; errors are raised."""
    result = CliRunner().invoke(db, [str(argument) for argument in arguments], catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_status_shows_revision_storage_and_rows(bare_database: Path) -> None:
    """The table names the file, its schema and every table with its rows."""
    lines = invoke("status", "--db", bare_database).splitlines()
    facts = dict(line.split(maxsplit=1) for line in lines if line)
    assert facts["database"] == str(bare_database)
    assert facts["schema"] == f"{HEAD} (at head)"
    assert facts["storage"] == "DuckDB v1.4.0+"
    assert facts["table"] == "rows"
    assert {name: facts[name] for name in TABLES} == dict.fromkeys(TABLES, "0")


def test_status_as_json(bare_database: Path) -> None:
    """Scripts get one object."""
    found = json.loads(invoke("status", "--db", bare_database, "--format", "json"))
    assert found == {
        "database": str(bare_database),
        "file_bytes": bare_database.stat().st_size,
        "revision": HEAD,
        "head": HEAD,
        "state": "current",
        "readable": True,
        "storage_version": "v1.4.0+",
        "tables": dict.fromkeys(TABLES, 0),
    }


def test_the_database_may_come_from_the_environment(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XBUF_DB stands in for --db."""
    monkeypatch.setenv("XBUF_DB", str(database))
    assert invoke("upgrade") == f"{database}: {HEAD}, nothing to do\n"


def test_a_missing_database_is_an_error(tmp_path: Path) -> None:
    """Neither command makes a file."""
    for command in ("upgrade", "status"):
        with pytest.raises(DatabaseError, match="no such database"):
            invoke(command, "--db", tmp_path / "typo.duckdb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [[], ["upgrade"], ["status"]])
def test_help_ends_with_an_example_that_runs(
    command: list[str], database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line after `Example:` works as it stands in a folder with a database."""
    description = invoke(*command, "--help").partition("Options:")[0].rstrip().splitlines()
    assert description[-2].strip() == "Example:"
    words = shlex.split(description[-1])
    assert words[:2] == ["xbuf", "db"]
    monkeypatch.chdir(database.parent)
    assert "xbuf.duckdb" in invoke(*words[2:])
