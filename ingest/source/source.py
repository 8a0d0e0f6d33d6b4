"""What a place that holds files of dumps must be able to do, and how a file in it is named.

A file is named by its path. A plain `str` is the path of a file on this machine; a `PathIn` is one of any
other source: as text it is what may be shown and stored, and it carries what opens it.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from typing import IO, Final, NamedTuple, Protocol, TypeVar

_E = TypeVar("_E", bound="Entry")


class Status(NamedTuple):
    """What tells one version of a file from another."""

    size: int
    """Bytes, as it lies there: compressed, where it is."""
    mtime_ns: int
    """When it was modified, ns since 1970."""
    etag: str | None = None
    """Version of the content as its source names it; None where it has no such thing."""


class Terms(NamedTuple):
    """On which terms stores are read."""

    deadline: float | None = None
    """When to give up, in seconds of `time.time`; None for never."""
    is_apart: bool = True
    """By processes of their own (`ingest.source.apart`); otherwise by this one, which has no workers."""


APART: Final = Terms()


class Unreachable(OSError):
    """A file cannot be read now, after all trials, though its store answers; another import may read it."""


def why_unreadable(error: OSError, failure: str = "cannot be read") -> str:
    """Say why a file could not be read, and what helps.

    Args:
        error: as a source raises it.
        failure: what could not be done.
    """
    match error:
        case Unreachable():
            return f"{error.strerror}; the next import tries again"
        case OSError(errno=None):
            return f"{error}; leave it out"
        case OSError(errno=errno.ESTALE):
            return f"{error.strerror}; import it again"
        case OSError(errno=errno.ELOOP):
            return "is a link now, or lies behind one; import it again"
        case _:
            return f"{failure}: {error.strerror}; change its permissions or leave it out"


class OpenFile(NamedTuple):
    """A file that is open to be read: bytes that can be sought, and how many there are."""

    stream: IO[bytes]
    size: int


class Entry(Protocol):
    """A file in a listing."""

    @property
    def name(self) -> str:
        """Its name within the folder."""


class Folder(Protocol[_E]):
    """A folder that can be listed, for as long as it is open.

    Attributes:
        path: as `ingest.dump.sets.DumpSet.directory` has it.
        source: opens its files; None for this machine.
        links: where the files lead that are links, by name.
    """

    path: str

    @property
    def source(self) -> Source | None: ...

    @property
    def links(self) -> Mapping[str, str]: ...

    def files(self) -> Sequence[_E]:
        """List the files in it."""

    def path_of(self, name: str) -> str:
        """Return the path by which a file can be opened."""

    def status(self, entry: _E) -> Status | None:
        """Look at a file; None where it is gone."""

    def start(self, name: str, size: int) -> bytes | None:
        """Return the first bytes of a file as they lie there; None where it is gone."""


class Source(Protocol):
    """Where files lie. It may be sent to another process.

    All that it raises for one file is an OSError: FileNotFoundError where it is gone, ESTALE where it is
    another version than the one asked for, PermissionError, Unreachable; without an errno, a sentence that
    says it all. A source that is of no use any more raises `ingest.errors.SourceError`.
    """

    @property
    def is_far(self) -> bool:
        """Whether only processes of their own may read it: see `ingest.source.apart`."""

    @property
    def terms(self) -> Terms:
        """On which terms stores are read, where this is one or lies in one."""

    @property
    def is_remote(self) -> bool:
        """Whether every reading is a request, of which many can be made at the same time."""

    @property
    def rereads_ranges(self) -> bool:
        """Whether to read a part of a file again costs no more than to hand it to another process."""

    def open(self, path: str, found: Status | None) -> OpenFile:
        """Open a file, of the version that was found."""

    def status(self, path: str) -> Status | None:
        """Look a file up; None where what lies there is none."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return some bytes of a file; fewer where it ends."""


class PathIn(str):
    """The path of a file that does not lie in a folder of this machine, as it may be shown.

    Attributes:
        source: opens it.
        found: the version that is to be read.
    """

    source: Source
    found: Status | None

    def __new__(cls, path: str, source: Source, found: Status | None = None) -> PathIn:
        """Name a file in a source."""
        new = super().__new__(cls, path)
        new.source, new.found = source, found
        return new

    def __reduce__(self) -> tuple[type[PathIn], tuple[str, Source, Status | None]]:
        return PathIn, (str(self), self.source, self.found)


def found_of(path: str) -> Status | None:
    """Return the version of a file that is to be read; None where any is."""
    return path.found if isinstance(path, PathIn) else None
