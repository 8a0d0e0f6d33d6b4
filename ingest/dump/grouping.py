"""Put the files of a folder together to dump sets: by their names, and the others by how they start."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from ingest.display import display
from ingest.dump.names import (
    PROFILES,
    ROLES,
    TEXT_COMPRESSIONS,
    is_xla_named,
    split_member,
    without_compression,
)
from ingest.dump.sets import DumpSet, Link, Member
from ingest.errors import DumpError
from ingest.source.source import Entry, Folder, why_unreadable

FIRST_LINE: Final = b"BufferAssignment:"
"""First line of every primary file, by which a renamed one is recognised."""

PROFILE: Final = "profile"
"""Role of the only member of a set that is a profile; see `ingest.pipeline.plan`."""

_ROLE_NUMBER: Final = {role: number for number, role in enumerate(ROLES)}
_PRIMARY, _VALUES, _LIVE_RANGE, _HLO, _PROTO = range(len(ROLES))
_ROLE_NAMES: Final = tuple(ROLES)
_PRIMARY_ENDING: Final = ROLES["primary"][0]

_SNIFF_BYTES: Final = 512
_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"

E = TypeVar("E", bound=Entry)
_Group = list[E | None]
"""The files of a set by number of role."""


class Grouping(Generic[E]):
    """The files of one folder on their way to sets."""

    def __init__(self, folder: Folder[E], named: Collection[str], report: Callable[[str, str], None]) -> None:
        """Take an open folder.

        Args:
            folder: lists files.
            named: names of those that were given by name.
            report: takes the path of what keeps a dump out, and why.
        """
        self._folder = folder
        self._named = named
        self._report = report
        self._groups: dict[str, _Group[E]] = {}
        self._others: list[E] = []
        self._profiles: list[E] = []
        self._stems: dict[str, str] = {}
        """Stems of primary files under other names."""
        self._not_dumps: list[str] = []
        """Files given by name that turned out to be nothing, under names of XLA's."""

    def read(self) -> None:
        """List the folder: members by stem, and files that only their content can place.

        Raises:
            OSError: it cannot be listed.
        """
        groups, named = self._groups, self._named
        for entry in self._folder.files():
            name = entry.name
            member = split_member(name)
            if member is None:
                if name.endswith(PROFILES):
                    self._profiles.append(entry)
                elif name in named or not is_xla_named(name):
                    self._others.append(entry)
                continue
            stem, role = member
            group = groups.get(stem)
            if group is None:
                group = groups[stem] = [None] * len(_ROLE_NAMES)
            number = _ROLE_NUMBER[role]
            rival = group[number]
            if rival is None or _compression(name) < _compression(rival.name):
                group[number] = entry

    def sets(
        self, known: Container[tuple[str, str]], proto_alone: bool, only_named: bool
    ) -> Iterator[DumpSet]:
        """Yield the sets; to be called while the folder is open."""
        self._sniff(known, only_named, proto_alone)
        # Each is given up when it has become a set: the files of 100,000 take as much memory as their sets.
        groups: Iterable[tuple[str, _Group[E]]] = (
            (stem, self._groups.pop(stem)) for stem in list(self._groups)
        )
        if only_named:
            wanted = sorted({stem for name in self._named if (stem := self._stem_of(name)) is not None})
            groups = [(stem, self._groups[stem]) for stem in wanted if stem in self._groups]
        found = False
        for stem, group in groups:
            if group[_PRIMARY] is None:
                orphan = group[_VALUES] or group[_LIVE_RANGE]
                if not (proto_alone and group[_PROTO]):
                    if orphan is not None:
                        primary = f"{display(stem)}{_PRIMARY_ENDING}"
                        self._problem(
                            orphan.name, f"lacks {primary}; copy that next to it, or remove this file"
                        )
                        continue
                    self._not_dumps += [entry.name for entry in group if entry and entry.name in self._named]
                    continue
            members = self._members(group)
            if _is_set(members, proto_alone):
                found = True
                yield self._set(stem, members)
        for entry in self._profiles if proto_alone else ():
            if entry.name in self._named or not only_named:
                found = True
                yield from self._profile(entry)
        if not found:
            # Next to dumps these are what a shell pattern such as `dumps/*` brings along.
            for name in dict.fromkeys(self._not_dumps):
                self._report_no_dump(name)

    def _profile(self, entry: E) -> Iterator[DumpSet]:
        """Yield a profile as a set of its own, whose modules only its content lists."""
        for member in self._members([None] * _PROTO + [entry]):
            members = (member._replace(role=PROFILE),)
            yield self._set(entry.name, members)

    def _set(self, stem: str, members: tuple[Member, ...]) -> DumpSet:
        folder, links = self._folder, self._folder.links
        linked = links and tuple(
            Link(one.file_name, links[one.file_name]) for one in members if one.file_name in links
        )
        return DumpSet(folder.path, stem, members, linked or (), None, folder.source)

    def _members(self, group: _Group[E]) -> tuple[Member, ...]:
        members: list[Member] = []
        look = self._folder.status
        for number, entry in enumerate(group):
            if entry is None:
                continue
            try:
                status = look(entry)
            except PermissionError:
                raise  # it is the folder that refuses, so one problem stands for all its files
            except OSError as error:
                self._problem(entry.name, f"cannot be looked at: {error.strerror}")
                continue
            if status is not None:  # otherwise as if it had never been there
                members.append(Member(_ROLE_NAMES[number], entry.name, *status))
        return tuple(members)

    def _sniff(self, known: Container[tuple[str, str]], only_named: bool, proto_alone: bool) -> None:
        """Add the files that their content shows to be primary files, or, given by name, protobufs."""
        shown = display(self._folder.path)
        stem_of_base: dict[str, str] = {}
        for entry in sorted(
            self._candidates(only_named), key=lambda entry: (_compression(entry.name), entry.name)
        ):
            name = entry.name
            if (shown, display(name)) not in known:
                start = self._start_of(name)
                if start is None or not _is_primary(start):
                    if start is not None and name in self._named:
                        self._take_other(entry, start, proto_alone)
                    continue
            base = without_compression(name)
            if base in stem_of_base:
                self._stems[name] = stem_of_base[base]
                continue  # a compressed copy
            # `x`, `x.txt` and a set of stem x may be three dumps: the whole name distinguishes them.
            for stem in (base.removesuffix(".txt"), base, name):
                group = self._groups.setdefault(stem, [None] * len(_ROLE_NAMES))
                if group[_PRIMARY] is None:
                    break
            else:
                self._problem(
                    name, f"has the stem of the dump {display(base)}{_PRIMARY_ENDING}; rename one of them"
                )
                continue
            if group[_HLO] is entry:
                group[_HLO] = None
            group[_PRIMARY] = entry
            stem_of_base[base] = self._stems[name] = stem

    def _take_other(self, entry: E, start: bytes, proto_alone: bool) -> None:
        """Take a file given by name that is no primary file: a protobuf, or nothing."""
        name = entry.name
        if proto_alone and _may_be_proto(start):
            self._groups.setdefault(name, [None] * len(_ROLE_NAMES))[_PROTO] = entry
            self._stems[name] = name
        elif is_xla_named(name):
            self._not_dumps.append(name)
        else:
            self._report_no_dump(name)

    def _candidates(self, only_named: bool) -> list[E]:
        """Return the files that only their content can place."""
        candidates = self._others
        if only_named:
            # With those that share a stem, so that a set has the same one as in a search of the directory.
            stems = {_renamed_stem(name) for name in self._named}
            candidates = [entry for entry in candidates if _renamed_stem(entry.name) in stems]
        meant = []
        for name in self._named:
            # A dump that was saved under the name of its module's HLO text, and is meant.
            member = split_member(name)
            if member and member.role == "hlo":
                group = self._groups.get(member.stem)
                if group and group[_PRIMARY] is None and (entry := group[_HLO]) is not None:
                    meant.append(entry)
        return candidates + meant

    def _start_of(self, name: str) -> bytes | None:
        """Return the first bytes of a file, uncompressed; None if it cannot be read."""
        try:
            start = self._folder.start(name, _SNIFF_BYTES)
        except OSError as error:
            self._problem(name, why_unreadable(error, "cannot be opened"))
            return None
        if start is None:
            return None
        if start.startswith(_GZIP):
            return _inflated(start)
        if start.startswith(_ZSTD):
            return _decompressed(self._folder.path_of(name))
        return start

    def _stem_of(self, name: str) -> str | None:
        """Return the stem of the set that a file given by name belongs to."""
        stem = self._stems.get(name)
        if stem is None and (member := split_member(name)) is not None:
            stem = member.stem
        return stem

    def _report_no_dump(self, name: str) -> None:
        self._problem(
            name,
            "is no buffer-assignment dump: its first line is not 'BufferAssignment:', nor is it a protobuf",
        )

    def _problem(self, name: str, message: str) -> None:
        self._report(os.path.join(self._folder.path, name), message)


def _is_set(members: Sequence[Member], proto_alone: bool) -> bool:
    """Return whether files make a set: a primary file comes first, so that one look is enough for most."""
    if members and members[0].role == "primary":
        return True
    return proto_alone and any(member.role == "proto" for member in members)


def _compression(file_name: str) -> int:
    """Return 0 for a file that is not compressed, else a number for its ending."""
    return next((n for n, ending in enumerate(TEXT_COMPRESSIONS, 1) if file_name.endswith(ending)), 0)


def _renamed_stem(file_name: str) -> str:
    """Return the stem that a primary file under another name has if nothing else has it."""
    return without_compression(file_name).removesuffix(".txt")


def _is_primary(start: bytes) -> bool:
    """Return whether the first line makes a file a primary file."""
    if FIRST_LINE not in start[: len(_BOM) + len(FIRST_LINE)]:
        return False
    return start.removeprefix(_BOM).split(b"\n", 1)[0].rstrip(b"\r") == FIRST_LINE


def _may_be_proto(start: bytes) -> bool:
    """Return whether a file may be a protobuf of XLA's: its first field is a message, and it is no text."""
    return start.startswith(b"\n") and any(byte < 9 for byte in start)


def _inflated(data: bytes) -> bytes:
    """Return the first bytes of gzip data; b"" if damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(data, _SNIFF_BYTES)
    except zlib.error:
        return b""


def _decompressed(path: str) -> bytes:
    """Return the first bytes of a zstd file; b"" if damaged. Its first block has up to 128 KiB."""
    # Imported here: zstd needs pyarrow, whose import takes longer than a search.
    from ingest.dump.content import Content

    try:
        with Content(path) as content:
            return content.read(_SNIFF_BYTES)
    except DumpError:
        return b""
