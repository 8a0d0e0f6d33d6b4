"""What staging is given and gives back: records that the pipeline handles without what reads dumps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

from ingest.dump.sets import DumpSet, Member


class RecordedFile(NamedTuple):
    """A member of a set as it was when it was read, with its name as the database has it."""

    member: Member
    sha256: str | None


class RecordedRun(NamedTuple):
    """A run that is recorded already, with the files that it was read from."""

    run_id: int
    files: Sequence[RecordedFile]

    @property
    def sha256(self) -> dict[str, str | None]:
        """SHA-256 of each member by role."""
        return {file.member.role: file.sha256 for file in self.files}


@dataclass(frozen=True, slots=True)
class Task:
    """A dump set to stage; `recorded` are the runs that the database holds of the same place."""

    run_no: int
    dump_set: DumpSet
    recorded: tuple[RecordedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Touched:
    """An unchanged set whose files have other times than recorded; names as the database has them."""

    run_id: int
    files: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A set that was not loaded, and why; the columns of `rejects`."""

    file: str
    _: KW_ONLY
    line: int | None = None
    byte_offset: int | None = None
    section: str | None = None
    kind: str
    message: str
    text: str | None = None


@dataclass(slots=True)
class Staged:
    """What became of the sets of one call."""

    loaded: int = 0
    unchanged: int = 0
    rows: int = 0
    part: str | None = None
    """The first part written; further ones have longer names."""
    touched: list[Touched] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    unfinished: list[Task] = field(default_factory=list)
    lost: list[tuple[Task, str]] = field(default_factory=list)
    """Sets that their worker was lost with, and how it was."""
    apart: list[tuple[int, str]] = field(default_factory=list)
    """How many sets were staged one by one, as together they could not be, and why."""

    def add(self, other: Staged) -> None:
        """Add what became of other sets."""
        self.loaded += other.loaded
        self.unchanged += other.unchanged
        self.rows += other.rows
        self.part = self.part or other.part
        self.touched += other.touched
        self.rejected += other.rejected
        self.unfinished += other.unfinished
        self.lost += other.lost
        self.apart += other.apart
