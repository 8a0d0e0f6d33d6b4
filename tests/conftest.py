"""Fixtures that every test may use."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import settings

import ingest.database.creation
from ingest.database.connect import create, open_database
from ingest.version import VERSION
from tests.support.once import folder_of_run, made_once
from tests.support.query_databases import load_demonstration, load_seeds

# The default deadline of 200 ms an example measures the machine's load, not the code.
settings.register_profile("xbuf", deadline=None)
settings.load_profile("xbuf")

SHARED = Path(__file__).resolve().parents[2] / "shared"


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
def _modules_are_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what processes compile for the next ones of this run: each takes 0.15 s to compile our modules."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:  # nothing is to be kept in the checkout
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(folder_of_run(tmp_path_factory) / "compiled"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _new_databases_are_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Copy every new database from the first of its kind: making one takes 0.2 s, and tests need some 600."""
    create_at_head = ingest.database.creation.create_at_head

    def copy_first(path: str, *, queries_of: str | None = None) -> None:
        def make(folder: Path) -> Path:
            create_at_head(str(folder / "new.duckdb"), queries_of=queries_of)
            return folder / "new.duckdb"

        # Without its mode: a new file follows the umask of its test.
        shutil.copyfile(made_once(tmp_path_factory, f"new-{queries_of}", make), path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest.database.creation, "create_at_head", copy_first)
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
    create(path, queries_of=VERSION)
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
