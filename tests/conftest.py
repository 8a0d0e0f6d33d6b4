"""Fixtures that every test may use."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import ingest.database.creation
from ingest.database.connect import create, open_database
from ingest.database.file import CONFIG
from tests.support.new_databases import NewDatabases
from tests.support.once import made_once
from tests.support.query_databases import load_demonstration, load_seeds

SHARED = Path(__file__).resolve().parents[2] / "shared"

_COMPILED = str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "compiled")
if sys.dont_write_bytecode:
    # Kept, though not next to the sources: to compile all tests anew takes twice the rest of the collection.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = sys.pycache_prefix or _COMPILED


def pytest_collection() -> None:
    """Give the examples of Hypothesis no deadline: 200 ms each measure the load of the machine, not the code.

    Imported here, where what is compiled is kept (1.5 s of CPU time in each process), and only in those that
    collect tests: the one that hands them to two workers has no use for it.
    """
    from hypothesis import settings

    settings.register_profile("xbuf", deadline=None)
    settings.load_profile("xbuf")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the slow run what goes over the corpus: others go over the part of it that is committed."""
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and {"shared_corpus", "shared_seeds"} & set(item.fixturenames)
            and item.get_closest_marker("long") is None
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a developer's own database out of the tests."""
    monkeypatch.delenv("XBUF_DB", raising=False)


@pytest.fixture(scope="session", autouse=True)
def _programs_keep_what_they_compile() -> Iterator[None]:
    """Let the processes that tests start find what earlier ones have compiled: 0.15 s each."""
    with pytest.MonkeyPatch.context() as patch:
        if "PYTHONDONTWRITEBYTECODE" in os.environ:
            patch.delenv("PYTHONDONTWRITEBYTECODE")
            patch.setenv("PYTHONPYCACHEPREFIX", sys.pycache_prefix or _COMPILED)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_thread_of_duckdb() -> Iterator[None]:
    """Open databases with one thread of DuckDB, as there is a worker for each core.

    On databases of some runs a second one takes a third of the CPU time of the saved queries. Processes that
    tests start have DuckDB's own number, and a slow test compares the answers of several threads.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CONFIG, "threads", 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def _new_databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewDatabases]:
    """Copy every new database from the first of its kind."""
    copies = NewDatabases(tmp_path_factory, ingest.database.creation.create_at_head)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest.database.creation, "create_at_head", copies.create_at_head)
        yield copies


@pytest.fixture(scope="module")
def macros(_new_databases: NewDatabases) -> Iterator[None]:
    """Give the new databases of a module the views and macros of the saved queries."""
    with _new_databases.with_macros():
        yield


@pytest.fixture
def bare_database(tmp_path: Path) -> Path:
    """Path of an empty database at head, without the saved queries that the first import installs."""
    path = tmp_path / "xbuf.duckdb"
    open_database(path).close()
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Path of an empty database at head with the saved queries."""
    path = tmp_path / "xbuf.duckdb"
    create(path, with_queries=True)
    return path


@pytest.fixture
def connection(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open connection to an empty database at head; `database` is its path."""
    with open_database(database) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_corpus() -> Path:
    """Folder of the 337 dump sets of many releases, which lies outside the repository."""
    return _shared("corpus")


@pytest.fixture(scope="session")
def shared_seeds() -> Path:
    """Folder of the five seed dumps, which lies outside the repository."""
    return _shared("seeds")


def _shared(name: str) -> Path:
    folder = SHARED.resolve() / name
    if not folder.is_dir():
        pytest.skip(f"../shared/{name} is not here; tests/data holds a part of it")
    return folder


@pytest.fixture(scope="session")
def demonstration_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dumps of many releases in nine imports, with the saved queries installed. Only to be read."""
    return made_once(tmp_path_factory, "demonstration", load_demonstration)


@pytest.fixture(scope="module")
def own_demonstration(demonstration_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for a module, as DuckDB shares the settings of all connections of a process to one file."""
    return Path(shutil.copy(demonstration_file, tmp_path_factory.mktemp("own") / "xbuf.duckdb"))


@pytest.fixture(scope="module")
def demonstration_kept_open(own_demonstration: Path) -> Iterator[None]:
    """Keep the copy open: to open it anew, with all its macros, takes a command 20 ms of CPU time."""
    with open_database(own_demonstration, read_only=True):
        yield


@pytest.fixture(scope="session")
def demonstration(demonstration_file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open read-only: the demonstration."""
    with open_database(demonstration_file, read_only=True) as opened:
        yield opened


@pytest.fixture(scope="session")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open read-only: the five seeds as runs 1 to 5."""
    with open_database(made_once(tmp_path_factory, "seeds", load_seeds), read_only=True) as opened:
        yield opened
