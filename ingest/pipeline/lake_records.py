"""What a lake records, asked by processes of their own: see `ingest.source.apart`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any, TypeVar

from ingest.lake.commit import complete_all, connect, in_database_words
from ingest.lake.create import create_lake, exists, open_imports, upgrade_lake
from ingest.lake.files import attach
from ingest.pipeline.labels import Labelling, lacking_labels
from ingest.pipeline.recorded import Recorded, RenamedFiles, find_recorded, renamed_files, staged_runs
from ingest.pipeline.target import Reject
from ingest.source.apart import apart
from ingest.source.source import Terms

if TYPE_CHECKING:
    import duckdb

    from ingest.dump.sets import DumpSet
    from ingest.lake.store import Lake

_T = TypeVar("_T")


class Apart:
    """Runs what opens a lake: in a process of its own, or here where this process must not be forked."""

    def __init__(self, lake: Lake, *, may_fork: bool) -> None:
        self._lake = lake
        self._terms = Terms(None, is_apart=may_fork)

    def run(self, make: Callable[..., Iterator[_T]], *arguments: Any) -> Iterator[_T]:
        """Yield what `make(lake, *arguments)` yields."""
        return apart(make, self._lake, *arguments, what=str(self._lake), terms=self._terms)

    def ask(self, answer: Callable[..., _T], *arguments: Any) -> _T:
        """Return what `answer(lake, *arguments)` returns."""
        result: _T = next(self.run(_once, answer, *arguments))
        return result


class LakeRecords:
    """Asks a lake; see `ingest.pipeline.target.Records`.

    Attributes:
        locked: never: readers and writers of a lake do not wait for each other.
    """

    locked = False

    def __init__(
        self, apart: Apart, parts: Sequence[str], sources: Sequence[str], *, may_change: bool
    ) -> None:
        """Name the places.

        Args:
            apart: opens the lake.
            parts: staged and not loaded.
            sources: of the import: its rejects are news where the last import of these had others.
            may_change: make the lake where there is none, bring it up to date, complete batches of the dead.
        """
        self._apart = apart
        self._parts = parts
        self._sources = sources
        self._may_change = may_change

    def look(self, *, search_is_long: bool) -> None:
        """Make the lake ready."""
        if self._may_change:
            self._apart.ask(_make_ready)

    def renamed(self, roots: Sequence[str]) -> RenamedFiles:
        """Return the files below some roots that were primary files before."""
        return RenamedFiles(lambda: self._apart.ask(_renamed, self._parts, roots))

    def recorded(self, sets: Sequence[DumpSet], *, rehash: bool) -> Recorded:
        """Look up dump sets."""
        return self._apart.ask(_recorded, self._parts, sets, rehash) if sets else Recorded()

    def lacks(self, places: Sequence[tuple[str, str]], labelling: Labelling) -> bool:
        """Whether a dump that was loaded before lacks a label."""
        return self._apart.ask(_lacks, places, labelling)

    def has_news(self, rejects: Set[Reject]) -> bool:
        """Whether rejects that the last import of the same sources by this host did not have are there."""
        return bool(rejects) and not rejects <= self._apart.ask(_rejects, self._sources)


def _once(lake: Lake, answer: Callable[..., _T], *arguments: Any) -> Iterator[_T]:
    with in_database_words(lake):
        yield answer(lake, *arguments)


def _make_ready(lake: Lake) -> None:
    if not create_lake(lake):
        upgrade_lake(lake)
        complete_all(lake)


def _open(lake: Lake, *tables: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection with tables of the lake, the runs first; none where there is no lake."""
    if exists(lake):
        open_imports(lake)
        connection = connect()
        for name in tables:
            attach(connection, lake, name)
        yield connection


def _open_all(lake: Lake, parts: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    yield from _open(lake, "runs", "run_files")
    if parts:
        connection = connect()
        staged_runs(connection, parts)
        yield connection


def _renamed(lake: Lake, parts: Sequence[str], roots: Sequence[str]) -> set[tuple[str, str]]:
    return renamed_files(lambda: _open_all(lake, parts), roots)


def _recorded(lake: Lake, parts: Sequence[str], sets: Sequence[DumpSet], rehash: bool) -> Recorded:
    return find_recorded(lambda: _open_all(lake, parts), sets, rehash=rehash)


def _lacks(lake: Lake, places: Sequence[tuple[str, str]], labelling: Labelling) -> bool:
    return any(lacking_labels(one, places, labelling) for one in _open(lake, "runs", "run_labels"))


def _rejects(lake: Lake, sources: Sequence[str]) -> frozenset[Reject]:
    found: list[Any] = []
    for connection in _open(lake, "imports", "rejects"):
        found += connection.execute(
            "SELECT file, line, kind FROM rejects WHERE import_id ="
            " (SELECT max(import_id) FROM imports WHERE host = $1 AND sources = $2)",
            [os.uname().nodename, list(sources)],
        ).fetchall()
    return frozenset(found)
