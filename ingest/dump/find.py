"""Find the dump sets below directories and next to files, without reading them.

Named members are known by their names alone; only a file under a name that is neither a member's nor XLA's
is opened, for its first line. A directory of 100,000 members costs its listing, one stat per member and
under 2 µs of work each.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Final

from ingest.arguments import Paths, as_paths
from ingest.display import display
from ingest.dump.names import (
    PROFILES,
    ROLES,
    TEXT_COMPRESSIONS,
    is_xla_named,
    split_member,
    without_compression,
)
from ingest.dump.opening import FILE_FLAGS, is_of_kernel, open_folder, open_regular
from ingest.dump.sets import Discovery, DumpSet, Link, Member, Problem, time_of
from ingest.errors import DumpError, UsageError

__all__ = ["PROFILE", "check_paths", "discover"]

FIRST_LINE: Final = b"BufferAssignment:"
"""First line of every primary file, by which a renamed one is recognised."""


def discover(
    paths: Paths,
    *,
    known: Container[tuple[str, str]] = frozenset(),
    proto_alone: bool = False,
    follow_symlinks: bool = False,
) -> Discovery:
    """Find the dump sets in directories, at any depth, and of files given by name.

    A file given by name brings the other members of its set. A directory may be given by a link; links in it
    are followed where they lead to below one of the directories given (those of the files given included),
    others with `follow_symlinks` only. Each directory is entered once. What is no regular file, or lies on a
    file system of the kernel such as /proc, is never opened.

    Args:
        paths: directories and files, one or several; what they have in common counts once.
        known: (directory, file name), both as `display` shows them, of files that were primary files
            before; they are not opened to look at their first line.
        proto_alone: also return sets of a protobuf without a primary file (those of other texts without one
            are problems), and each profile as a set with one member, of the role `profile`.
        follow_symlinks: follow links wherever they lead.

    Raises:
        TypeError: `paths` are no paths.
        UsageError: a path does not exist.
    """
    roots: list[str] = []
    named: dict[str, set[str]] = {}
    problems: list[Problem] = []
    for text in as_paths(paths):
        mode = _mode(text)
        if stat.S_ISDIR(mode):
            roots.append(os.path.realpath(text))
        elif stat.S_ISREG(mode):
            directory, name = os.path.split(text)
            named.setdefault(os.path.realpath(directory or os.curdir), set()).add(name)
        else:
            problems.append(Problem(display(text), "is no regular file; save its content to a file first"))
    search = _Search(known, proto_alone, None if follow_symlinks else (*roots, *named))
    search.problems += problems
    search.walk(roots, named)
    for directory in sorted(named):
        if directory not in search.entered_paths:
            search.enter(directory, named[directory], only_named=True)
    by_path = attrgetter("path")
    return Discovery(
        tuple(sorted(search.sets)),
        tuple(sorted(search.problems, key=by_path)),
        tuple(sorted(search.left_out, key=by_path)),
    )


def check_paths(paths: Sequence[str]) -> None:
    """Raise UsageError, as `discover` does, when one of the paths does not exist."""
    for path in paths:
        _mode(path)


_ROLE_NUMBER: Final = {role: number for number, role in enumerate(ROLES)}
_PRIMARY, _VALUES, _LIVE_RANGE, _HLO, _PROTO = range(len(ROLES))
_ROLE_NAMES: Final = tuple(ROLES)
_PRIMARY_ENDING: Final = ROLES["primary"][0]

PROFILE: Final = "profile"
"""Role of the only member of a set that is a profile; see `ingest.pipeline.plan`."""

_SNIFF_BYTES: Final = 512
_OUTSIDE: Final = "outside of the directories given; give that one too, or use --follow-symlinks"
_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"

_Group = list["os.DirEntry[str] | None"]
"""The files of a set by number of role."""


class _Search:
    """What a search has found so far."""

    def __init__(
        self, known: Container[tuple[str, str]], proto_alone: bool, trees: Sequence[str] | None
    ) -> None:
        self.sets: list[DumpSet] = []
        self.problems: list[Problem] = []
        self.left_out: list[Problem] = []
        self._trees = trees
        """Where links may lead; None for everywhere."""
        self.entered_paths: set[str] = set()
        self._entered: set[tuple[int, int]] = set()
        self._known = known
        self._proto_alone = proto_alone

    def problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(display(path), message))

    def leave_out(self, path: str, message: str) -> None:
        self.left_out.append(Problem(display(path), message))

    def may_follow(self, path: str) -> bool:
        """Say whether a link may be followed that leads to this path, which holds no link itself."""
        trees = self._trees
        return trees is None or any(path == tree or path.startswith(os.path.join(tree, "")) for tree in trees)

    def walk(self, roots: Sequence[str], named: dict[str, set[str]]) -> None:
        """Enter directories and all below them."""
        waiting = list(reversed(roots))
        while waiting:
            directory = waiting.pop()
            waiting += self.enter(directory, named.get(directory, frozenset()), only_named=False)

    def enter(self, directory: str, named: Collection[str], *, only_named: bool) -> list[str]:
        """Collect the sets of one directory and return the directories in it.

        `named` are files given by name; with `only_named` just their sets are collected.
        """
        try:
            descriptor = open_folder(directory)
        except OSError as error:
            self._cannot_enter(directory, error)
            return []
        try:
            status = os.fstat(descriptor)
            if is_of_kernel(status.st_dev):
                self.leave_out(directory, "lies on a file system of the kernel, which holds no files")
                return []
            identity = (status.st_dev, status.st_ino)
            if identity in self._entered and not only_named:
                return []
            self._entered.add(identity)
            self.entered_paths.add(directory)
            listing = _Listing(self, directory, descriptor, named)
            listing.read()
            # By plain strings here, so that the search finds them in order: to sort tuples takes 0.15 s of
            # 100,000 sets. Not before each file is looked at: in the directory's order that is faster.
            found = listing.sets(self._known, self._proto_alone, only_named)
            self.sets += sorted(found, key=itemgetter(1))
            return [] if only_named else listing.directories
        except OSError as error:
            self._cannot_enter(directory, error)
            return []
        finally:
            os.close(descriptor)

    def _cannot_enter(self, directory: str, error: OSError) -> None:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            self.problem(directory, "vanished while it was searched; import it again")
        else:
            self.problem(
                directory, f"cannot be searched: {error.strerror}; change its permissions or leave it out"
            )


class _Listing:
    """The files of one directory on their way to sets."""

    def __init__(self, search: _Search, directory: str, descriptor: int, named: Collection[str]) -> None:
        self.directories: list[str] = []
        self._search = search
        self._directory = directory
        self._descriptor = descriptor
        self._named = named
        self._groups: dict[str, _Group] = {}
        self._others: list[os.DirEntry[str]] = []
        self._profiles: list[os.DirEntry[str]] = []
        self._links: dict[str, str] = {}
        """Where the files lead that are links."""
        self._stems: dict[str, str] = {}
        """Stems of primary files under other names."""
        self._not_dumps: list[str] = []
        """Files given by name that turned out to be nothing, under names of XLA's."""

    def read(self) -> None:
        """List the directory: members by stem, directories, and files that only their content can place."""
        groups, named = self._groups, self._named
        with os.scandir(self._descriptor) as entries:
            for entry in entries:
                if not entry.is_file(follow_symlinks=False) and not self._leads_to_file(entry):
                    continue
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
        """Yield the sets; to be called while the directory is open."""
        self._sniff(known, only_named, proto_alone)
        # Each is given up when it has become a set: the files of 100,000 take as much memory as their sets.
        groups: Iterable[tuple[str, _Group]] = ((stem, self._groups.pop(stem)) for stem in list(self._groups))
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
                links = self._links and tuple(
                    Link(one.file_name, self._links[one.file_name])
                    for one in members
                    if one.file_name in self._links
                )
                yield DumpSet(self._directory, stem, members, links or ())
        for entry in self._profiles if proto_alone else ():
            if entry.name in self._named or not only_named:
                found = True
                yield from self._profile(entry)
        if not found:
            # Next to dumps these are what a shell pattern such as `dumps/*` brings along.
            for name in dict.fromkeys(self._not_dumps):
                self._report_no_dump(name)

    def _profile(self, entry: os.DirEntry[str]) -> Iterator[DumpSet]:
        """Yield a profile as a set of its own, whose modules only its content lists."""
        for member in self._members([None] * _PROTO + [entry]):
            link = self._links.get(entry.name)
            members = (member._replace(role=PROFILE),)
            yield DumpSet(self._directory, entry.name, members, (Link(entry.name, link),) if link else ())

    def _leads_to_file(self, entry: os.DirEntry[str]) -> bool:
        """Sort out what is no regular file; say whether it is a link to one that may be followed."""
        if entry.is_dir(follow_symlinks=False):
            self.directories.append(os.path.join(self._directory, entry.name))
            return False
        if not entry.is_symlink():
            return False
        path = os.path.join(self._directory, entry.name)
        try:
            real = os.path.realpath(path, strict=True)
            mode = os.stat(real, follow_symlinks=False).st_mode
        except PermissionError:
            self._problem(entry.name, "is a link to a place that must not be looked at")
            return False
        except OSError as error:
            if split_member(entry.name) is not None:
                self._problem(entry.name, f"is a link that leads nowhere: {error.strerror}")
            return False
        may_follow = self._search.may_follow(real)
        if stat.S_ISDIR(mode):
            if may_follow:
                # By its own path, so that a set's directory does not depend on which way is walked first.
                self.directories.append(real)
            else:
                self._search.leave_out(path, f"is a link to {display(real)}, {_OUTSIDE}")
            return False
        if not stat.S_ISREG(mode):
            return False
        if not may_follow:
            if split_member(entry.name) is not None or entry.name in self._named:
                self._problem(entry.name, f"is a link to {display(real)}, {_OUTSIDE}")
            return False
        self._links[entry.name] = real
        return True

    def _members(self, group: _Group) -> tuple[Member, ...]:
        members: list[Member] = []
        links = self._links
        for number, entry in enumerate(group):
            if entry is None:
                continue
            try:
                link = links and links.get(entry.name)
                status = os.stat(link, follow_symlinks=False) if link else entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # gone since the listing: as if it had never been there
            except PermissionError:
                raise  # it is the directory that refuses, so one problem stands for all its files
            except OSError as error:
                self._problem(entry.name, f"cannot be looked at: {error.strerror}")
                continue
            if not stat.S_ISREG(status.st_mode):
                continue  # something else took its place since the listing
            members.append(Member(_ROLE_NAMES[number], entry.name, status.st_size, time_of(status)))
        return tuple(members)

    def _sniff(self, known: Container[tuple[str, str]], only_named: bool, proto_alone: bool) -> None:
        """Add the files that their content shows to be primary files, or, given by name, protobufs."""
        shown = display(self._directory)
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

    def _take_other(self, entry: os.DirEntry[str], start: bytes, proto_alone: bool) -> None:
        """Take a file given by name that is no primary file: a protobuf, or nothing."""
        name = entry.name
        if proto_alone and _may_be_proto(start):
            self._groups.setdefault(name, [None] * len(_ROLE_NAMES))[_PROTO] = entry
            self._stems[name] = name
        elif is_xla_named(name):
            self._not_dumps.append(name)
        else:
            self._report_no_dump(name)

    def _candidates(self, only_named: bool) -> list[os.DirEntry[str]]:
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
            if name in self._links:
                descriptor, _ = open_regular(self._links[name])
            else:
                descriptor = os.open(name, FILE_FLAGS, dir_fd=self._descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._problem(
                name, f"cannot be opened: {error.strerror or error}; change its permissions or leave it out"
            )
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            start = os.read(descriptor, _SNIFF_BYTES)
        except OSError as error:
            self._problem(name, f"cannot be read: {error.strerror}")
            return None
        finally:
            os.close(descriptor)
        if start.startswith(_GZIP):
            return _inflated(start)
        if start.startswith(_ZSTD):
            return _decompressed(self._links.get(name) or os.path.join(self._directory, name))
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
        self._search.problem(os.path.join(self._directory, name), message)


def _is_set(members: Sequence[Member], proto_alone: bool) -> bool:
    """Return whether files make a set: a primary file comes first, so that one look is enough for most."""
    if members and members[0].role == "primary":
        return True
    return proto_alone and any(member.role == "proto" for member in members)


def _mode(path: str) -> int:
    """Return the mode of a path given on the command line."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        raise UsageError(f"{display(path) or repr(path)}: no such file or directory") from None
    except OSError as error:
        raise UsageError(f"{display(path)}: cannot be looked at: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{display(path)}: is no path: {error}") from error


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
    from ingest.dump.source import Source

    try:
        with Source(path) as source:
            return source.read(_SNIFF_BYTES)
    except DumpError:
        return b""
