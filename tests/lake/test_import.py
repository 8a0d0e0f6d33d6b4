"""`xbuf-ingest --lake`: the same import, another place for its runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ingest import ImportSummary, import_dumps
from ingest.cli.ingest import ingest
from ingest.lake.commit import connect
from ingest.lake.files import attach
from ingest.lake.store import Lake
from tests.lake.conftest import TWO_RUNS
from tests.support.lakes import in_process


def settled_copy(target: Path) -> Path:
    """Copy two dumps, with times long past."""
    shutil.copytree(TWO_RUNS, target)
    for path in target.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return target


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Two dumps."""
    return settled_copy(tmp_path / "dumps")


def load(lake: Lake, dumps: Path, **options: Any) -> ImportSummary:
    return import_dumps(dumps, lake=lake.root, staging=f"{lake.root}-staging", jobs=1, **options)


def ask(lake: Lake, query: str, *tables: str) -> list[tuple[Any, ...]]:
    def answer() -> list[tuple[Any, ...]]:
        with connect() as connection:
            for name in tables:
                attach(connection, lake, name, lake.table(name))
            return connection.execute(query).fetchall()

    return in_process(answer)


def test_an_import_and_another_that_finds_nothing_new(
    lake: Lake, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second opens no dump and writes nothing; a third with a label puts that on."""
    first = load(lake, dumps)
    assert (first.database, first.import_id, first.loaded, first.status) == (lake.root, 1, 2, "ok")
    before = sorted(path for path in Path(lake.root).rglob("*"))
    monkeypatch.setattr("ingest.pipeline.importer.read_tasks", lambda tasks, *_, **__: tasks and 1 / 0)
    again = load(lake, dumps)
    assert (again.loaded, again.unchanged, again.import_id) == (0, 2, None)
    assert sorted(path for path in Path(lake.root).rglob("*")) == before
    labelled = load(lake, dumps, labels={"team": "a"})
    assert labelled.unchanged == 2
    assert ask(lake, "SELECT key, value FROM run_labels", "run_labels") == [("team", "a")] * 2
    # The import that found nothing new is in the history now.
    history = "SELECT import_id, loaded, unchanged FROM imports ORDER BY started_at"
    assert ask(lake, history, "imports") == [(1, 2, 0), (2, 0, 2), (3, 0, 2)]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--lake", "s3://u:SECRET@b/x"], 3, "environment"),
        (["--lake", "/somewhere", "--publish", "/x"], 2, "snapshot"),
        (["--lake", "/somewhere", "--db", "x.duckdb"], 2, "one of them"),
        (["--staging", "/somewhere"], 2, "staging folder"),
    ],
)
def test_what_is_refused(dumps: Path, options: list[str], code: int, said: str) -> None:
    """In one line, before anything is read."""
    result = CliRunner().invoke(ingest, [str(dumps), *options], standalone_mode=False)
    said_so = str(result.exception)
    assert getattr(result.exception, "exit_code", None) == code
    assert said in said_so
    assert "SECRET" not in said_so
    assert result.stdout == ""
