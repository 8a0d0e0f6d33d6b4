"""What a search for dumps finds: dump sets, and what could not be looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ingest.display import display
from ingest.source.source import PathIn, Source, Status


class Member(NamedTuple):
    """A file of a dump set."""

    role: str
    file_name: str
    """As the file system has it; see `display`."""
    size: int
    mtime_ns: int
    etag: str | None = None
    """These three as `ingest.source.source.Status` has them."""

    @property
    def status(self) -> Status:
        """The version of the file."""
        return Status(*self[2:])

    def as_stored(self) -> Member:
        """Return it with its name as the database has it."""
        return self if self.file_name.isprintable() else self._replace(file_name=display(self.file_name))


class Link(NamedTuple):
    """A member that is a symbolic link, and the absolute path that it leads to."""

    file_name: str
    path: str


class ModuleCopy(NamedTuple):
    """A protobuf that was copied out of a compressed profile."""

    path: str
    """File that holds it uncompressed."""
    offset: int
    """Where it starts there, bytes."""


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
    copy: ModuleCopy | None = None
    """A copy of it, while an import reads a compressed profile."""


class DumpSet(NamedTuple):
    """The files of one compiled module's dump."""

    directory: str
    """On this machine absolute, without symbolic links; elsewhere as it may be shown."""
    stem: str
    members: tuple[Member, ...]
    """In the order of `ingest.dump.names.ROLES`, one for each role that is there."""
    links: tuple[Link, ...] = ()
    """Where members lead that are links."""
    in_profile: InProfile | None = None
    """The set is a module within the file of its only member, a profile."""
    source: Source | None = None
    """Where the directory is; None for this machine."""

    def path(self, member: Member) -> str:
        """Return where a member lies: on this machine an absolute path of which no part is a link."""
        path = os.path.join(self.directory, member.file_name)
        if self.source is not None:
            return PathIn(path, self.source, member.status)
        return dict(self.links).get(member.file_name, path) if self.links else path

    def paths(self) -> dict[str, str]:
        """Return where all members lie, by role."""
        if self.source is None and not self.links:
            folder = os.path.join(self.directory, "")
            return {member.role: folder + member.file_name for member in self.members}
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
