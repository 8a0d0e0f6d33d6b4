"""Import what appears below directories, for as long as a job runs that dumps there.

Directories, archives and URLs are searched again and again, at longer intervals while nothing changes. Only
what has settled is imported, each time by an ordinary import with its own lock and its own line in the
history: nothing is held between two of them, and a watch may be killed at any moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from ingest.arguments import Labels, Paths, as_paths, as_pattern
from ingest.database.connect import check_path
from ingest.dump.elsewhere import Listings
from ingest.dump.find import check_paths
from ingest.dump.grouping import PROFILE
from ingest.dump.sets import Discovery, DumpSet, Problem
from ingest.errors import DatabaseLocked, SourceError, UsageError
from ingest.events import SourceAway
from ingest.pipeline.importer import SOURCE_SECONDS, import_dumps
from ingest.pipeline.plan import Search, search
from ingest.pipeline.summary import ImportSummary
from ingest.source.kinds import is_archive, is_url
from ingest.source.source import Status, Terms

if TYPE_CHECKING:
    from ingest.events import Event
    from ingest.source.archive import Listing

Pause = Callable[[float], bool]
"""Waits up to so many seconds; returns True once the watch is to end. `threading.Event().wait` is one."""

QUIET_SECONDS: Final = 2.0
"""Time without a change after which a dump is taken to be written: XLA writes a module's files in a row."""
PATIENCE_SECONDS: Final = 60.0
"""The same for a dump or archive that turned out to be damaged: what writes it may wait for a slow disk."""
PROFILE_QUIET_SECONDS: Final = 10.0
"""The same for a profile, one file of up to gigabytes of which no part can be told to be the last."""
SHORTEST_SECONDS: Final = 0.5
SHORTEST_REMOTE_SECONDS: Final = 5.0
"""Where a URL is watched: each look is a request for a thousand objects, and stores charge for requests."""
LONGEST_SECONDS: Final = 30.0
"""Between two searches: while dumps appear, and when none has appeared for long."""
BACKOFF: Final = 1.5
SEARCH_SHARE: Final = 20
"""Of the time at most a part of so many is spent on searching; of 100,000 dumps one search takes 0.7 s."""
IMPORT_SHARE: Final = 5
"""The same for imports: one by copy takes as long as the database is large."""


class ImportOptions(TypedDict, total=False):
    """What each import gets; as in `import_dumps`."""

    lake: str | os.PathLike[str] | None
    staging: str | os.PathLike[str] | None
    labels: Labels
    label_from: str | None
    jobs: int | None
    scheduler: str | None
    rehash: bool
    replace_runs: bool
    wait_seconds: float
    source_timeout: float
    read_hlo: bool
    follow_symlinks: bool
    publish: str | os.PathLike[str] | None
    on_event: Callable[[Event], None] | None


def watch(
    paths: Paths,
    database: str | os.PathLike[str] | None,
    *,
    pause: Pause,
    quiet_seconds: float = QUIET_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    **options: Unpack[ImportOptions],
) -> Iterator[ImportSummary]:
    """Import what appears under `paths` until `pause` returns True; yield what each import did.

    A dump is imported once its files have not changed for `quiet_seconds`, and rejected only when it is
    damaged and has not changed for long. At the end all that is new is imported, settled or not. A path
    that goes away later is waited for, and so is a URL with nothing below it, a store that is away after the
    first look, and a database that another process holds.

    Args:
        paths: directories and prefixes of stores, searched whole, archives and files: one or several.
        database: DuckDB file; made by the first import. None where the options name a lake.
        pause: called between two searches.
        quiet_seconds: time without a change.
        clock: seconds that pass while `pause` waits.
        **options: for each import.

    Raises:
        UsageError: a path does not exist at the start, or an option is wrong.
        SourceError: a store is away at the start, or at the very end.
        DatabaseLocked: another process had the database to the very end; what was read is kept.
        DatabaseError: the database cannot be used; nothing is lost.
        KeyboardInterrupt: from within an import, after what was staged has been loaded.
    """
    names = as_paths(paths)
    check_paths(names)
    if database is not None:
        check_path(os.path.abspath(database))
    as_pattern(options.get("label_from"))
    look = _Look(names, options)
    shortest = SHORTEST_REMOTE_SECONDS if any(map(is_url, names)) else SHORTEST_SECONDS
    news = _News(quiet_seconds)
    interval = shortest
    is_ending = False
    while True:
        started = clock()
        found = look(may_be_away=not is_ending)
        has_changed = found is not None and news.take(found, started)
        least = SEARCH_SHARE * (clock() - started)
        ready = news.all() if is_ending else news.settled(started)
        if ready and found is not None:
            started = clock()
            try:
                summary = import_dumps(
                    look.there,
                    database,
                    select=news.selection(ready),
                    archives=look.archives,
                    **options,
                )
            except (DatabaseLocked, SourceError):  # the event of the failed import says so
                if is_ending:
                    raise
            except UsageError:
                if look.is_all_there():
                    raise
            else:
                news.done(ready, summary.unfinished_sets)
                least = max(least, IMPORT_SHARE * (clock() - started))
                yield summary
        if is_ending:
            return
        interval = shortest if has_changed else min(interval * BACKOFF, LONGEST_SECONDS)
        if (settles_in := news.settles_in(clock())) is not None:
            interval = min(interval, max(settles_in, shortest))
        is_ending = pause(max(interval, least))


class _Look:
    """Searches what is watched, as far as it is there.

    Attributes:
        there: the names that were there the last time.
        archives: what lies in the archives that were there.
    """

    def __init__(self, names: Sequence[str], options: ImportOptions) -> None:
        self.there = list(names)
        self._names = names
        self._read_hlo = options.get("read_hlo", True)
        self._follow_symlinks = options.get("follow_symlinks", False)
        self._timeout = options.get("source_timeout", SOURCE_SECONDS)
        self._is_apart = options.get("jobs") != 0
        self._on_event = options.get("on_event") or (lambda _: None)
        self.archives = _Archives()
        self._is_away = False
        self._has_looked = False

    def __call__(self, *, may_be_away: bool) -> Discovery | None:
        """Search all that is there; None while a store is away.

        Raises:
            SourceError: a store is away at the first look, or when it may not be.
        """
        try:
            found = self._search_what_is_there()
        except SourceError as error:
            if not (may_be_away and self._has_looked):
                raise
            if not self._is_away:
                self._on_event(SourceAway(str(error)))
            self._is_away = True
            return None
        self._is_away, self._has_looked = False, True
        return found

    def is_all_there(self) -> bool:
        """Say whether what was there the last time still is."""
        return all(map(self._is_there, self.there))

    def _search_what_is_there(self) -> Discovery:
        try:
            self.there = list(self._names)
            return self._search(self.there)
        except UsageError:  # a job clears its directory and makes it again, or has put no object yet
            self.there = list(filter(self._is_there, self._names))
        try:
            return self._search(self.there) if self.there else Discovery((), ())
        except UsageError:
            return Discovery((), ())

    def _is_there(self, name: str) -> bool:
        if not is_url(name):
            return os.path.exists(name)
        try:
            self._search([name])
        except UsageError:
            return False
        return True

    def _search(self, names: Sequence[str]) -> Discovery:
        terms = Terms(time.time() + self._timeout if self._timeout else None, self._is_apart)
        return search(Search(names, self._read_hlo, self._follow_symlinks, terms, archives=self.archives))


class _Archives(Listings):
    """What lies in the archives that are watched, in their last versions."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Status, Listing]] = {}

    def get(self, archive: str, version: Status) -> Listing | None:
        known = self._known.get(archive)
        return known[1] if known is not None and known[0] == version else None

    def put(self, archive: str, version: Status, listing: Listing) -> None:
        self._known[str(archive)] = version, listing


_Thing = DumpSet | Problem
"""What a search finds, with the versions of its files: changed, it is another thing."""


def _thing(dump_set: DumpSet) -> DumpSet:
    """Return a set as two searches find it: what opens its files is another one in each."""
    return dump_set._replace(source=None)


class _News:
    """What is found and not dealt with yet, and since when it has been as it is."""

    def __init__(self, quiet_seconds: float) -> None:
        self._quiet = quiet_seconds
        self._since: dict[_Thing, float] = {}
        self._done: set[_Thing] = set()
        self._incomplete: set[_Thing] = set()
        """Damaged when they were read, and so fresh that they may still be written."""
        self._left_out: frozenset[Problem] = frozenset()
        """Directories that are not searched and were reported so."""

    def take(self, found: Discovery, now: float) -> bool:
        """Take what a search has found; say whether anything has appeared or changed."""
        things: set[_Thing] = {*map(_thing, found.sets), *found.problems}
        self._done &= things
        self._incomplete &= things
        before, self._since = self._since, {}
        for thing in things - self._done:
            self._since[thing] = before.get(thing, now)
        return any(since == now for since in self._since.values())

    def all(self) -> set[_Thing]:
        """Return all that is new."""
        return set(self._since)

    def settled(self, now: float) -> set[_Thing]:
        """Return what has not changed for long enough."""
        return {thing for thing in self._since if self._settles(thing) <= now}

    def settles_in(self, now: float) -> float | None:
        """Return after how many seconds the next thing settles if it does not change; None without one."""
        waits = (self._settles(thing) - now for thing in self._since)
        return min((wait for wait in waits if wait > 0), default=None)

    def selection(self, ready: set[_Thing]) -> Callable[[Discovery], Discovery]:
        """Return what takes these things from the search of an import, if they are still as they were."""

        def select(found: Discovery) -> Discovery:
            left_out = tuple(one for one in found.left_out if one not in self._left_out)
            self._left_out |= set(left_out)
            return replace(
                found,
                sets=tuple(one for one in found.sets if _thing(one) in ready),
                problems=tuple(one for one in found.problems if one in ready),
                left_out=left_out,
            )

        return select

    def done(self, ready: set[_Thing], unfinished: Iterable[str]) -> None:
        """Note that these things were imported or rejected, all but the unfinished, named by their paths."""
        still_written = set(unfinished)
        again = {
            one
            for one in ready
            if isinstance(one, DumpSet) and os.path.join(one.directory, one.stem) in still_written
        }
        self._incomplete = (self._incomplete - ready) | again
        for one in ready - again:
            self._done.add(one)
            self._since.pop(one, None)

    def _settles(self, thing: _Thing) -> float:
        if thing in self._incomplete or (isinstance(thing, Problem) and is_archive(thing.path)):
            quiet = PATIENCE_SECONDS
        elif isinstance(thing, DumpSet) and thing.members[0].role == PROFILE:
            quiet = max(self._quiet, PROFILE_QUIET_SECONDS)
        else:
            quiet = self._quiet
        return self._since[thing] + quiet
