"""Parts to load, and a lake to load them into."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ingest.lake.create import create_lake
from ingest.lake.store import Lake
from tests.support.dump_sets import DATA
from tests.support.lakes import in_process, stage
from tests.support.once import made_once

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


@pytest.fixture
def lake(empty_lake: Path, tmp_path: Path) -> Lake:
    """A lake without runs."""
    shutil.copytree(empty_lake, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"), True)
