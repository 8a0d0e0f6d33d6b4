"""Import what appears below directories, for as long as a job runs that dumps there.

The directories are searched again and again, at longer intervals while nothing changes. Only what has
settled is imported, each time by an ordinary import with its own lock and its own line in the history:
nothing is held between two of them, and a watch may be killed at any moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from ingest.arguments import Labels, Paths, as_paths, as_pattern
from ingest.database.connect import check_path
from ingest.dump.find import check_paths
from ingest.dump.grouping import PROFILE
from ingest.dump.sets import Discovery, DumpSet, Problem
from ingest.errors import DatabaseLocked, UsageError
from ingest.pipeline.importer import import_dumps
from ingest.pipeline.plan import search
from ingest.pipeline.summary import ImportSummary
from ingest.source.kinds import is_elsewhere, shown

if TYPE_CHECKING:
    from ingest.events import Event

__all__ = ["QUIET_SECONDS", "ImportOptions", "Pause", "watch"]

Pause = Callable[[float], bool]
"""Waits up to so many seconds; returns True once the watch is to end. `threading.Event().wait` is one."""

QUIET_SECONDS: Final = 2.0
"""Time without a change after which a dump is taken to be written: XLA writes a module's files in a row."""
PATIENCE_SECONDS: Final = 60.0
"""The same for a dump that turned out to be damaged: what writes it may wait for a slow disk."""
PROFILE_QUIET_SECONDS: Final = 10.0
"""The same for a profile, one file of up to gigabytes of which no part can be told to be the last."""
SHORTEST_SECONDS: Final = 0.5
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
    rehash: bool
    replace_runs: bool
    wait_seconds: float
    source_timeout: float
    publish: str | os.PathLike[str] | None
    on_event: Callable[[Event], None] | None


def watch(
    paths: Paths,
    database: str | os.PathLike[str] | None,
    *,
    pause: Pause,
    quiet_seconds: float = QUIET_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    read_hlo: bool = True,
    follow_symlinks: bool = False,
    **options: Unpack[ImportOptions],
) -> Iterator[ImportSummary]:
    """Import what appears under `paths` until `pause` returns True; yield what each import did.

    A dump is imported once its files have not changed for `quiet_seconds`, and rejected only when it is
    damaged and has not changed for long. At the end all that is new is imported, settled or not. A path
    that goes away later is waited for, and so is a database that another process holds.

    Args:
        paths: directories, searched whole, and files: one of them, or several.
        database: DuckDB file; made by the first import. None where the options name a lake.
        pause: called between two searches.
        quiet_seconds: time without a change.
        clock: seconds that pass while `pause` waits.
        read_hlo: also read the sidecar files of each dump: HLO text and protobuf.
        follow_symlinks: follow links also where they lead out of the directories given.
        **options: for each import.

    Raises:
        UsageError: a path does not exist at the start, or an option is wrong.
        DatabaseLocked: another process had the database to the very end; what was read is kept.
        DatabaseError: the database cannot be used; nothing is lost.
        KeyboardInterrupt: from within an import, after what was staged has been loaded.
    """
    names = as_paths(paths)
    check_paths(names)
    if far := next(filter(is_elsewhere, names), None):
        raise UsageError(f"{shown(far)}: only folders are watched; import it anew")
    if database is not None:
        check_path(os.path.abspath(database))
    as_pattern(options.get("label_from"))
    news = _News(quiet_seconds)
    interval = SHORTEST_SECONDS
    is_ending = False
    while True:
        started = clock()
        try:
            found = search(names, read_hlo=read_hlo, follow_symlinks=follow_symlinks)
        except UsageError:  # it was there: a job that clears its directory makes it again
            found = Discovery((), ())
        has_changed = news.take(found, started)
        least = SEARCH_SHARE * (clock() - started)
        ready = news.all() if is_ending else news.settled(started)
        if ready:
            started = clock()
            try:
                summary = import_dumps(
                    names,
                    database,
                    read_hlo=read_hlo,
                    follow_symlinks=follow_symlinks,
                    select=news.selection(ready),
                    **options,
                )
            except DatabaseLocked:
                if is_ending:
                    raise
            except UsageError:
                if all(map(os.path.exists, names)):
                    raise
            else:
                news.done(ready, summary.unfinished_sets)
                least = max(least, IMPORT_SHARE * (clock() - started))
                yield summary
        if is_ending:
            return
        interval = SHORTEST_SECONDS if has_changed else min(interval * BACKOFF, LONGEST_SECONDS)
        if (settles_in := news.settles_in(clock())) is not None:
            interval = min(interval, max(settles_in, SHORTEST_SECONDS))
        is_ending = pause(max(interval, least))


_Thing = DumpSet | Problem
"""What a search finds, with the sizes and times of its files: changed, it is another thing."""


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
        things: set[_Thing] = {*found.sets, *found.problems}
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
                sets=tuple(one for one in found.sets if one in ready),
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
        if thing in self._incomplete:
            quiet = PATIENCE_SECONDS
        elif isinstance(thing, DumpSet) and thing.members[0].role == PROFILE:
            quiet = max(self._quiet, PROFILE_QUIET_SECONDS)
        else:
            quiet = self._quiet
        return self._since[thing] + quiet
