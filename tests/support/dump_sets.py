"""Find the dump sets that the tests run over, by their file names alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parents[1] / "data"
PRIMARY = "-buffer-assignment.txt"
SEEDS = sorted((DATA / "seeds").iterdir())
PAST = 1_700_000_000
"""A time long past, seconds since 1970: dumps of that age are finished."""
_ENDINGS = {"primary": PRIMARY, "values": "-buffer-assignment-values.txt", "live_range": "-live-range.txt"}


class DumpSet(NamedTuple):
    """The files of one dump by their role: primary, values, live_range."""

    name: str
    """Path of the primary file below the directory that was searched."""
    files: dict[str, Path]

    @property
    def primary(self) -> Path:
        return self.files["primary"]

    def texts(self) -> dict[str, bytes]:
        """Return the bytes of every file by its role."""
        return {role: path.read_bytes() for role, path in self.files.items()}


def dump_sets(root: Path) -> list[DumpSet]:
    """Return every set below `root`, sorted; files of a directory `seeds` are sets under any name."""
    found = []
    for path in sorted(root.rglob("*.txt")):
        if path.name.endswith(PRIMARY):
            stem = path.name.removesuffix(PRIMARY)
            members = {role: path.with_name(stem + ending) for role, ending in _ENDINGS.items()}
            files = {role: member for role, member in members.items() if member.is_file()}
        elif path.parent.name == "seeds":
            files = {"primary": path}
        else:
            continue
        found.append(DumpSet(path.relative_to(root).as_posix(), files))
    return found


def settle(folder: Path) -> Path:
    """Give all files below a folder a time long past; return it."""
    for path in folder.rglob("*"):
        os.utime(path, (PAST, PAST), follow_symlinks=False)
    return folder


def settled_seeds(folder: Path) -> Path:
    """Copy the seeds to a new folder, long finished; return it."""
    folder.mkdir()
    for seed in SEEDS:
        os.utime(shutil.copy(seed, folder), (PAST, PAST))
    return folder


def write_donors(folder: Path) -> None:
    """Write a real set whose HLO text declares a donation without a result, which no committed set does."""
    folder.mkdir()
    [dump] = (DATA / "hlo" / "jaxlib-0.10.2-cpu").glob(f"module_0010*{PRIMARY}")
    shutil.copy(dump, folder)
    text = dump.with_name(dump.name.replace("-buffer-assignment", ""))
    head, _, rest = text.read_text().partition("\n")
    (folder / text.name).write_text(f"{head}, buffer_donor={{ (1, {{}}) }}\n{rest}")


def committed_sets() -> list[DumpSet]:
    """Return the sets that the repository carries."""
    return dump_sets(DATA)
