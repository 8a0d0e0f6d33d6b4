"""Find dump sets in archives and at URLs: all files are listed first, then put together as in folders."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.display import display
from ingest.dump.grouping import Grouping
from ingest.dump.names import PROFILES, is_xla_named, split_member
from ingest.dump.sets import DumpSet, Problem
from ingest.errors import UsageError
from ingest.source.address import Address, parse_url
from ingest.source.apart import apart
from ingest.source.archive import START_BYTES, ArchiveFiles, Listing, list_archive
from ingest.source.kinds import is_archive, is_url
from ingest.source.local import source_of, status_of, without_links
from ingest.source.objects import AtUrl, look_up, require_obstore, start_of
from ingest.source.source import PathIn, Source, Status, Terms, why_unreadable
from ingest.source.walk import DamagedArchive


class Listings:
    """What lies in archives, by their paths; this one knows none."""

    def get(self, archive: str, version: Status) -> Listing | None:
        """Return what lies in an archive of this version; None where that is not known."""
        return None

    def put(self, archive: str, version: Status, listing: Listing) -> None:
        """Keep what lies in an archive."""


class _Entry(NamedTuple):
    """A file of a listing."""

    name: str
    status: Status
    start: bytes | OSError | None
    """First bytes, or why they could not be read; None where they were not wanted, or it is gone."""


@dataclass(slots=True)
class _ListedFolder:
    """A folder whose files are known; see `ingest.source.source.Folder`."""

    path: str
    source: Source
    entries: dict[str, _Entry] = field(default_factory=dict)
    named: set[str] | None = None
    """Files given by name, where nothing else in it is meant."""
    links: Mapping[str, str] = field(default_factory=dict)

    def files(self) -> Sequence[_Entry]:
        return list(self.entries.values())

    def path_of(self, name: str) -> str:
        return PathIn(os.path.join(self.path, name), self.source, self.entries[name].status)

    def status(self, entry: _Entry) -> Status:
        return entry.status

    def start(self, name: str, size: int) -> bytes | None:
        start = self.entries[name].start
        if isinstance(start, OSError):
            raise start
        return start


class Elsewhere:
    """A search in archives and at URLs.

    Attributes:
        sets: what it has found.
        problems: what could not be read, or is incomplete.
    """

    def __init__(self, listings: Listings, terms: Terms) -> None:
        """Begin.

        Args:
            listings: what is known of archives.
            terms: on which URLs are read.
        """
        self.sets: list[DumpSet] = []
        self.problems: list[Problem] = []
        self._listings = listings
        self._terms = terms
        self._folders: dict[tuple[str, Address | None], _ListedFolder] = {}

    def add(self, texts: Sequence[str]) -> None:
        """List what URLs, or the paths of archives, name.

        Raises:
            UsageError: there is nothing.
            SourceError: it cannot be read.
        """
        addresses = []
        for text in texts:
            if is_url(text):
                addresses.append(parse_url(text))
                continue
            archive = without_links(os.path.abspath(text))
            version = status_of(archive)
            if version is None:
                raise UsageError(f"{display(text)}: no such file or directory")
            self._add_archive(archive, version)
        if not addresses:
            return
        require_obstore()
        places = [(AtUrl(one._replace(key=""), self._terms), one.key) for one in addresses]
        surveys = apart(_surveys, places, what=addresses[0].shown, terms=self._terms)
        for address, (source, _) in zip(addresses, places, strict=True):
            try:
                survey = next(surveys)
            except FileNotFoundError:
                raise UsageError(f"{address.shown}: there is no such file, and nothing below it") from None
            self._add_survey(address, source, survey)

    def _add_survey(self, address: Address, source: AtUrl, survey: _Survey) -> None:
        if survey.is_file and is_archive(address.key):
            status = survey.files[address.key]
            self._add_archive(PathIn(address.shown, source, status), status)
            return
        for key, status in survey.files.items():
            directory, name = os.path.split(f"{address.root}/{key}")
            folder = self._folder(directory, source, source.address)
            folder.entries[name] = _Entry(name, status, survey.starts.get(key))
            if not survey.is_file:
                folder.named = None
            elif key == address.key and folder.named is not None:
                folder.named.add(name)

    def find(self, known: Container[tuple[str, str]], proto_alone: bool) -> None:
        """Put all that was listed together to sets."""
        for folder in self._folders.values():
            grouping = Grouping(folder, folder.named or (), self._problem)
            grouping.read()
            self.sets += grouping.sets(known, proto_alone, folder.named is not None)

    def _add_archive(self, archive: str, version: Status) -> None:
        listing = self._listings.get(archive, version)
        if listing is None:
            try:
                listing = self._list(archive)
            except (DamagedArchive, OSError) as error:
                why = f"cannot be read as an archive: {display(str(error))}; copy it again"
                if isinstance(error, OSError) and error.errno is not None:
                    why = why_unreadable(error)
                self._problem(archive, why)
                return
            self._listings.put(archive, version, listing)
        for name, why in listing.problems:
            self._problem(os.path.join(archive, name) if name else archive, why)
        source = ArchiveFiles(archive, version)
        for one in listing.files:
            directory, name = os.path.split(f"{archive}/{one.name}")
            folder = self._folder(directory, source, None)
            folder.named = None
            folder.entries[name] = _Entry(name, one.status, one.start)

    def _list(self, archive: str) -> Listing:
        if not source_of(archive).is_far:
            return list_archive(archive, _wants_start)
        [listing] = apart(_list_far, archive, what=archive, terms=self._terms)
        return listing

    def _folder(self, directory: str, source: Source, address: Address | None) -> _ListedFolder:
        place = directory, address
        if place not in self._folders:
            self._folders[place] = _ListedFolder(directory, source, named=set())
        return self._folders[place]

    def _problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(display(path), message))


class _Survey(NamedTuple):
    """What a URL names.

    Attributes:
        is_file: it is one file; the others that there are lie next to it.
        files: versions by key.
        starts: first bytes of the files that only these can place.
    """

    is_file: bool
    files: dict[str, Status]
    starts: dict[str, bytes | OSError]


def _surveys(places: Sequence[tuple[AtUrl, str]]) -> Iterator[_Survey]:
    for source, key in places:
        yield _survey(source, key)


def _survey(source: AtUrl, key: str) -> _Survey:
    found = look_up(source, key)
    files = dict(found.files)
    if found.is_file and is_archive(key):
        return _Survey(True, files, {})
    wanted = [
        (one, status)
        for one, status in files.items()
        if _wants_start(one, is_named=found.is_file and one == key)
    ]
    return _Survey(found.is_file, files, dict(start_of(source, wanted, START_BYTES)))


def _list_far(archive: str) -> Iterator[Listing]:
    yield list_archive(archive, _wants_start)


def _wants_start(path: str, *, is_named: bool = False) -> bool:
    """Say whether only its content can place a file; more can be meant by one that is given by name."""
    name = path.rpartition("/")[2]
    if name.endswith(PROFILES):
        return False
    member = split_member(name)
    if is_named:
        return member is None or member.role == "hlo"
    return member is None and not is_xla_named(name)
