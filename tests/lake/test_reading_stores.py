"""A lake in a real object store is read as one in a folder, without DuckDB's extension for stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.database.scope import narrowed
from ingest.errors import DatabaseError
from ingest.lake.attach import attach_lake
from ingest.lake.failures import SCHEME
from ingest.lake.reading import open_to_read
from ingest.lake.store import Lake
from ingest.lake.transfer import export_lake, import_database
from ingest.pipeline.importer import import_dumps
from ingest.query.catalog import shipped
from tests.support.dump_sets import SEEDS
from tests.support.lakes import in_process
from tests.support.query_databases import ask
from tests.support.s3 import ENVIRONMENT, put, s3_server

pytestmark = pytest.mark.slow

_Answers = dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with s3_server(tmp_path_factory.mktemp("s3")) as url:
        put(f"{url}/lakes")
        yield url


@pytest.fixture(scope="module", autouse=True)
def _environment(store: str) -> Iterator[None]:
    """The store, as the environment names it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": store}.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def stored_lake(_environment: None, own_demonstration: Path) -> Lake:
    """The demonstration in the store, of a file that no other test has open. Only to be read."""
    lake = Lake("s3://lakes/demonstration", False)
    in_process(import_database, str(own_demonstration), lake)
    return lake


def _answers(connection: duckdb.DuckDBPyConnection) -> _Answers:
    return {name: ask(connection, name) for name in shipped()}


def _answers_of_lake(lake: Lake) -> tuple[_Answers, int]:
    with open_to_read(f"lake:{lake}") as connection:
        answers = _answers(connection)
        [[run]] = connection.execute("SELECT max(run_id) FROM runs").fetchall()
        with narrowed(connection, [run]):
            [[runs]] = connection.execute("SELECT count(DISTINCT run_id) FROM values").fetchall()
    return answers, runs


def test_every_query_answers_as_from_a_file(stored_lake: Lake, tmp_path: Path) -> None:
    """All rows of all saved queries, over all runs and over one."""
    in_process(export_lake, stored_lake, str(tmp_path / "exported.duckdb"))
    answers, runs = in_process(_answers_of_lake, stored_lake)
    with open_database(tmp_path / "exported.duckdb", read_only=True) as connection:
        assert answers == _answers(connection)
    assert runs == 1


def _what_is_reached(lake: Lake) -> list[str]:
    refused = []
    with open_to_read(f"lake:{lake}") as connection:
        for sql in (
            "FROM read_text('/etc/hostname')",
            f"FROM read_parquet('{SCHEME}://values/other.parquet')",
            f"COPY (SELECT 1) TO '{SCHEME}://values/new.parquet'",
        ):
            try:
                connection.execute(sql)
            except duckdb.Error as error:
                refused.append(str(error))
    return refused


def test_nothing_else_is_reached(stored_lake: Lake) -> None:
    """Neither this machine's files nor others of the store, and nothing is written."""
    reasons = in_process(_what_is_reached, stored_lake)
    assert len(reasons) == 3
    assert "disabled by configuration" in reasons[0]
    assert "No files found" in reasons[1]


def _read_what_is_gone(lake: Lake) -> str:
    import obstore

    store = lake.objects()
    found = [meta["path"] for page in obstore.list(store, "uses/") for meta in page]
    obstore.delete(store, [path for path in found if path.endswith(".parquet")])
    open_to_read(f"lake:{lake}").close()
    return "read"


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    """With what to do."""
    lake = Lake("s3://lakes/seed", False)
    import_dumps([SEEDS[0]], tmp_path / "xbuf.duckdb", jobs=1)
    in_process(import_database, str(tmp_path / "xbuf.duckdb"), lake)
    with pytest.raises(DatabaseError, match=r"uses/batch-.*: is gone: .* run again"):
        in_process(_read_what_is_gone, lake)


def test_a_store_that_is_away_is_one_line(stored_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before anything is open."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(DatabaseError) as refused:
        in_process(_answers_of_lake, stored_lake)
    assert "\n" not in str(refused.value)
    assert "127.0.0.1" not in str(refused.value)


def test_views_name_the_objects(stored_lake: Lake, tmp_path: Path) -> None:
    """They can be made without DuckDB's extension for the store, which a shell needs to read them."""
    path = tmp_path / "view.duckdb"
    done = in_process(attach_lake, stored_lake, str(path))
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT lake, runs FROM attached_lake").fetchall() == [
            (stored_lake.root, done.runs)
        ]
        [[sql]] = connection.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'values'").fetchall()
        assert f"'{stored_lake.root}/values/batch-" in sql
