"""Parts of staged work: folders of Parquet files that hold whole runs, each with a checksum of every file.

A part is written under a temporary name and renamed when it is complete. Its name is unique to one attempt:
what a killed worker left can be removed, and the same sets staged again, without a doubt whose it is.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingest.staging.at_hand import AtHand

_CHECKSUMS: Final = "checksums.json"
_BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Parts:
    """The folder that parts are put into."""

    directory: Path

    @property
    def at_hand(self) -> AtHand:
        """The file that says which dumps are being read."""
        return AtHand(self.directory / "at-hand")

    def new(self, run_no: int) -> str:
        """Return a path for a part, to be written, whose first run has this number; each call another."""
        return str(self.directory / f"part-{run_no:07d}-{secrets.token_hex(4)}")

    def complete(self) -> list[str]:
        """Return the complete parts, in order of their runs."""
        return sorted(str(path) for path in self.directory.glob("part-*") if path.suffix != ".tmp")


def seal(unnamed: str, part: str) -> None:
    """Write down the checksums of a part's files and give it its name: from now on it is complete.

    Raises:
        OSError: the folder cannot be written.
    """
    sums = {name: _checksum(f"{unnamed}/{name}") for name in sorted(os.listdir(unnamed))}
    with open(f"{unnamed}/{_CHECKSUMS}", "x", encoding="ascii") as file:
        json.dump(sums, file)
    os.rename(unnamed, part)


def is_whole(part: str) -> bool:
    """Return whether a part has the files that it was sealed with, byte for byte."""
    try:
        with open(f"{part}/{_CHECKSUMS}", encoding="ascii") as file:
            sums = json.load(file)
        names = sorted(name for name in os.listdir(part) if name != _CHECKSUMS)
        return bool(sums == {name: _checksum(f"{part}/{name}") for name in names})
    except (OSError, ValueError):
        return False


def files_of(parts: Sequence[str], table: str) -> list[str]:
    """Return the Parquet files of a table: NAME.parquet, or NAME-1.parquet, ... of a large dump."""
    found: list[str] = []
    for part in parts:
        names = [n for n in os.listdir(part) if n == f"{table}.parquet" or n.startswith(f"{table}-")]
        found += [f"{part}/{name}" for name in sorted(names)]
    return found


def remove_attempt(part: str) -> None:
    """Remove what an attempt at a part left whose worker is gone.

    Raises:
        OSError: it cannot be removed: loaded with the next attempt it would be there twice.
    """
    for path in _of_attempt(part):
        shutil.rmtree(path)


def take_parts(part: str) -> dict[str, dict[str, bytes]]:
    """Return the content of the files of all parts of an attempt, and remove them.

    Returns:
        By what the name of each part has more than `part`.

    Raises:
        OSError: they cannot be read, or removed.
    """
    parts = {}
    for path in _of_attempt(part):
        parts[path.removeprefix(part)] = {one.name: Path(one.path).read_bytes() for one in os.scandir(path)}
        shutil.rmtree(path)
    return parts


def put_parts(part: str, parts: Mapping[str, Mapping[str, bytes]]) -> None:
    """Write parts of an attempt that `take_parts` has returned, maybe on another machine.

    Raises:
        OSError: they cannot be written, or are damaged.
    """
    for more, files in parts.items():
        unnamed = f"{part}{more}.tmp"
        os.mkdir(unnamed, mode=0o700)
        for name, content in files.items():
            with open(f"{unnamed}/{name}", "xb") as file:
                file.write(content)
        if not is_whole(unnamed):
            raise OSError(errno.EIO, "was damaged on its way", unnamed)
    for more in parts:
        os.rename(f"{part}{more}.tmp", part + more)


def _of_attempt(part: str) -> list[str]:
    """Return what there is of an attempt: sets with a part of their own within it have longer names."""
    folder, name = os.path.split(part)
    return [entry.path for entry in os.scandir(folder) if entry.name.startswith(name)]


def _checksum(path: str) -> list[int]:
    """Return the size and the CRC-32 of a file; it has to show damage, not forgery."""
    size = crc = 0
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            size += len(block)
            crc = zlib.crc32(block, crc)
    return [size, crc]
