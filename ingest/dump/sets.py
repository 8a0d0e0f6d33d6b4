"""What a search for dumps finds: dump sets, and what could not be looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from ingest.display import display

__all__ = ["Discovery", "DumpSet", "InProfile", "Link", "Member", "Problem", "time_of"]

_LATEST: Final = 2**63 - 1


class Member(NamedTuple):
    """A file of a dump set."""

    role: str
    file_name: str
    """As the file system has it; see `display`."""
    size: int
    mtime_ns: int
    """As `time_of` has it."""

    def as_stored(self) -> Member:
        """Return it with its name as the database has it."""
        return self if self.file_name.isprintable() else self._replace(file_name=display(self.file_name))


class Link(NamedTuple):
    """A member that is a symbolic link, and the absolute path that it leads to."""

    file_name: str
    path: str


class InProfile(NamedTuple):
    """Where a profile holds the protobuf of a module, and what it says of all its modules."""

    offset: int
    """In the uncompressed profile, bytes."""
    length: int
    """Bytes."""
    module_name: str
    host: str | None
    started: datetime | None
    """UTC, without time zone."""
    device_type: str | None
    backend: str | None
    copy: tuple[str, int] | None = None
    """A file that holds the protobuf of a compressed profile uncompressed, and where, bytes."""


class DumpSet(NamedTuple):
    """The files of one compiled module's dump."""

    directory: str
    """Absolute, without symbolic links."""
    stem: str
    members: tuple[Member, ...]
    """In the order of `ingest.dump.names.ROLES`, one for each role that is there."""
    links: tuple[Link, ...] = ()
    """Where members lead that are links."""
    in_profile: InProfile | None = None
    """The set is a module within the file of its only member, a profile."""

    def path(self, member: Member) -> str:
        """Return where a member lies: an absolute path of which no part is a link."""
        return dict(self.links).get(member.file_name) or os.path.join(self.directory, member.file_name)

    def paths(self) -> dict[str, str]:
        """Return where all members lie, by role."""
        return {member.role: self.path(member) for member in self.members}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be looked at or is incomplete; `path` is fit to show."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """What was found: sets by (directory, stem), the others by path.

    Attributes:
        sets: the dump sets.
        problems: what could not be looked at, or is incomplete.
        left_out: directories that were not entered: links out of the tree, file systems of the kernel.
    """

    sets: tuple[DumpSet, ...]
    problems: tuple[Problem, ...]
    left_out: tuple[Problem, ...] = ()

    @property
    def found(self) -> int:
        """How many things were found; an import loads, passes over, rejects or puts off each of them."""
        return len(self.sets) + len(self.problems)


def time_of(status: os.stat_result) -> int:
    """Return when a file was modified, ns since 1970; what no BIGINT holds (after 2262) as its last."""
    time = status.st_mtime_ns
    return time if -_LATEST <= time <= _LATEST else max(-_LATEST, min(time, _LATEST))
