"""Data sets of the benchmarks: the large real ones where they are at hand, else generated ones."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.generate import ENDINGS, Pattern, many_dumps, one_dump, read_pattern, scale

CHECKOUT: Final = Path(__file__).resolve().parent.parent
DUMPS: Final = CHECKOUT / "tests" / "data" / "dumps"
ARCHIVES: Final = CHECKOUT.parent / "shared" / "bench"
ONE_DUMP: Final = "tpu-v5e-jaxlib-0.10.2/module_0030.jit_mlp_wide_train_step.cl_933746096.after_optimizations"
"""Committed dump that single large dumps are scaled from: split files, tiled layouts, a stack-trace tree."""
SMALL_BYTES: Final = 16_000
"""Committed dumps up to this size are what many small dumps are made of."""


@dataclass(frozen=True)
class DataSet:
    """A directory of dumps."""

    name: str
    directory: Path
    dumps: int
    text_bytes: int
    """Of the files that are read."""


class Data:
    """Makes data sets below a folder, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._patterns: list[Pattern] = []

    def real(self) -> Iterator[DataSet]:
        """Yield the real sets whose archives lie next to the checkout."""
        for archive in sorted(ARCHIVES.glob("*.tar.xz")) if ARCHIVES.is_dir() else ():
            name = archive.name.removesuffix(".tar.xz")
            if not (self._folder / name).is_dir():
                with tarfile.open(archive) as packed:
                    packed.extractall(self._folder / f"{name}.tmp", filter="data")
                inner = self._folder / f"{name}.tmp" / name
                inner = inner if inner.is_dir() else self._folder / f"{name}.tmp"
                inner.rename(self._folder / name)
            yield _measured(name, self._folder / name)

    def one(self, megabytes: float) -> DataSet:
        """Return one generated dump of about so much text."""
        name = f"one-{megabytes:g}MB"
        directory = self._folder / name
        if _is_new(directory):
            one_dump(read_pattern(DUMPS / f"{ONE_DUMP}{ENDINGS['primary']}"), int(megabytes * 1e6), directory)
            _finish(directory)
        return _measured(name, directory)

    def middle(self, dumps: int, megabytes: float) -> DataSet:
        """Return some generated dumps of about so much text each."""
        name = f"{dumps}x{megabytes:g}MB"
        directory = self._folder / name
        if _is_new(directory):
            pattern = read_pattern(DUMPS / f"{ONE_DUMP}{ENDINGS['primary']}")
            for number in range(dumps):
                scale(pattern, int(megabytes * 1e6 / pattern.copy_bytes), directory, number=number)
            _finish(directory)
        return _measured(name, directory)

    def many(self, dumps: int) -> DataSet:
        """Return many generated dumps of a few KB."""
        name = f"many-{dumps}-generated"
        directory = self._folder / name
        if _is_new(directory):
            many_dumps(self._small_patterns(), dumps, directory)
            _finish(directory)
        return _measured(name, directory)

    def of_values(self, dumps: int, copies: int) -> DataSet:
        """Return generated dumps of so many copies each, for databases of many values."""
        name = f"values-{dumps}x{copies}"
        directory = self._folder / name
        if _is_new(directory):
            patterns = self._small_patterns()
            for number in range(dumps):
                scale(patterns[number % len(patterns)], copies, directory, number=number)
            _finish(directory)
        return _measured(name, directory)

    def _small_patterns(self) -> list[Pattern]:
        """Return the committed dumps of one file that can be copied."""
        if not self._patterns:
            for path in sorted(DUMPS.glob(f"*/*{ENDINGS['primary']}")):
                try:
                    pattern = read_pattern(path)
                except ValueError:
                    continue  # of an era that copies cannot keep
                if not pattern.is_split and pattern.copy_bytes <= SMALL_BYTES:
                    self._patterns.append(pattern)
        return self._patterns


def _is_new(directory: Path) -> bool:
    """Return whether the files must be made, and make their directory."""
    if (directory / ".complete").exists():
        return False
    directory.mkdir(parents=True, exist_ok=True)
    return True


def _finish(directory: Path) -> None:
    """Date the files back: a dump of the last seconds could still be being written."""
    for entry in os.scandir(directory):
        os.utime(entry.path, (1_700_000_000, 1_700_000_000))
    (directory / ".complete").touch()


def _measured(name: str, directory: Path) -> DataSet:
    dumps = text_bytes = 0
    for entry in os.scandir(directory):
        if entry.name.endswith(tuple(ENDINGS.values())):
            dumps += entry.name.endswith(ENDINGS["primary"])
            text_bytes += entry.stat().st_size
    return DataSet(name, directory, dumps, text_bytes)
