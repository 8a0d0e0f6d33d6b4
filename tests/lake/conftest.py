"""Parts to load, a lake to load them into, and the demonstration in a lake and in a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.lake.create import create_lake
from ingest.lake.reading import open_to_read
from ingest.lake.store import Lake
from ingest.lake.transfer import export_lake, import_database
from tests.support.dump_sets import DATA
from tests.support.lakes import Content, in_process, load, stage, visible
from tests.support.new_databases import NewDatabases
from tests.support.once import made_once


@pytest.fixture(autouse=True)
def _nobody_opens_a_lake_where_tests_fork() -> Iterator[None]:
    """A child of a process that has used deltalake cannot: see `in_process`."""
    yield
    assert "deltalake" not in sys.modules


TWO_RUNS = DATA / "dumps" / "gpu-h100-multiheap"


@pytest.fixture(scope="session")
def part(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two staged runs."""

    def make(folder: Path) -> Path:
        shutil.copytree(TWO_RUNS, folder / "dumps")
        stage(folder / "dumps", folder / "part")
        return folder / "part"

    return str(made_once(tmp_path_factory, "lake-part", make))


@pytest.fixture(scope="session")
def empty_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake without runs, to be copied."""

    def make(folder: Path) -> Path:
        in_process(create_lake, Lake(str(folder / "lake"), True))
        return folder / "lake"

    return made_once(tmp_path_factory, "empty-lake", make)


def copied(lake: Path, folder: Path) -> Lake:
    """Copy a lake into a folder."""
    return Lake(str(shutil.copytree(lake, folder / "lake")), True)


@pytest.fixture
def lake(empty_lake: Path, tmp_path: Path) -> Lake:
    """A lake without runs."""
    return copied(empty_lake, tmp_path)


@pytest.fixture(scope="session")
def demonstration_lake(tmp_path_factory: pytest.TempPathFactory, demonstration_file: Path) -> Path:
    """A lake with the runs of the demonstration. Only to be read."""

    def make(folder: Path) -> Path:
        # A copy: a process that is forked while this one reads the file cannot open it with other settings.
        copy = shutil.copy(demonstration_file, folder / "xbuf.duckdb")
        in_process(import_database, str(copy), Lake(str(folder / "lake"), True))
        return folder / "lake"

    return made_once(tmp_path_factory, "demonstration-lake", make)


@pytest.fixture
def full_lake(tmp_path: Path, demonstration_lake: Path) -> Lake:
    """A lake with the runs of the demonstration."""
    return copied(demonstration_lake, tmp_path)


@pytest.fixture(scope="session")
def exported_file(
    tmp_path_factory: pytest.TempPathFactory, demonstration_lake: Path, _new_databases: NewDatabases
) -> Path:
    """Database file with all that the lake has, under the same numbers. Only to be read."""

    def make(folder: Path) -> Path:
        with _new_databases.with_macros():
            export_lake(Lake(str(demonstration_lake), True), str(folder / "exported.duckdb"))
        return folder / "exported.duckdb"

    return made_once(tmp_path_factory, "exported-lake", make)


@pytest.fixture(scope="session")
def in_lake(demonstration_lake: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake of the demonstration, open."""
    with open_to_read(f"lake:{demonstration_lake}") as connection:
        yield connection


@pytest.fixture(scope="session")
def in_file(exported_file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file with the same runs, open."""
    with open_database(exported_file, read_only=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def lesser_part(tmp_path_factory: pytest.TempPathFactory, part: str) -> str:
    """The same dumps before their live ranges were written, at the same place."""
    folder = tmp_path_factory.mktemp("lesser")
    dumps = Path(part).parent / "dumps"
    aside = [path.rename(folder / path.name) for path in dumps.glob("*live-range.txt")]
    try:
        return stage(dumps, folder / "part")
    finally:
        for path in aside:
            path.rename(dumps / path.name)


@pytest.fixture(scope="session")
def whole(empty_lake: Path, part: str, tmp_path_factory: pytest.TempPathFactory) -> Content:
    """What is visible of two runs with a label, after nothing special."""
    lake = copied(empty_lake, tmp_path_factory.mktemp("whole"))

    def content() -> Content:
        load(lake, part, team="a")
        return visible(lake)

    return in_process(content)
