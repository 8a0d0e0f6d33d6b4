"""The two sides of a comparison: runs of the database, and dumps that are read for the comparison alone.

A side is a reference (`ingest.query.references`), or a directory, file, archive or URL of dumps. Dumps are
imported into a database in a temporary folder; where one side comes from the user's database, its runs are
copied there with their numbers. Nothing else is written.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.database.connect import open_database
from ingest.database.scope import narrowed
from ingest.database.tables import RUN_TABLES
from ingest.errors import UsageError
from ingest.events import Event
from ingest.lake.reading import open_to_read
from ingest.pipeline.importer import import_dumps
from ingest.query.references import FORMS, is_selection, resolve
from ingest.source.kinds import is_lake, is_url, shown
from ingest.sql import literal, one_number

if TYPE_CHECKING:
    import duckdb

    from ingest.pipeline.summary import ImportSummary

Open = Callable[[str], AbstractContextManager["duckdb.DuckDBPyConnection"]]

_COPIED: Final = ("runs", "run_labels", *(table for table in RUN_TABLES if table != "run_labels"))


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides in one database.

    Attributes:
        connection: open to read, with the building blocks; it closes with `open_sides`.
        before, after: numbers of runs. Those of dumps that were imported for the comparison follow on the
            greatest number of the database.
        rejected: dumps of the sides that could not be read, count.
    """

    connection: duckdb.DuckDBPyConnection
    before: tuple[int, ...]
    after: tuple[int, ...]
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """Runs to copy: their database, numbers there, and what is added to the numbers."""

    database: str
    runs: tuple[int, ...]
    offset: int = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """Their numbers in the copy."""
        return tuple(run + self.offset for run in self.runs)


@dataclass(frozen=True, slots=True)
class Dumps:
    """Dumps to be read for the comparison alone.

    Attributes:
        paths: as `import_dumps` takes them.
        check: called with what their import did; raises where that is not enough.
    """

    paths: Sequence[str]
    check: Callable[[ImportSummary], None]


Side = Dumps | Callable[["duckdb.DuckDBPyConnection"], tuple[int, ...]]
"""Dumps, or what finds runs in the database."""


@contextmanager
def open_sides(
    database: str,
    before: str,
    after: str,
    *,
    open_: Open = open_to_read,
    jobs: int | None = None,
    follow_symlinks: bool = False,
    on_event: Callable[[Event], None] | None = None,
) -> Iterator[Sides]:
    """Find both sides and bring them into one database.

    Args:
        database: of the references; it need not be there where both sides are dumps.
        open_: opens a database to read.
        jobs, follow_symlinks: as `import_dumps` takes them.
        on_event: called with what an import of dumps reports, rejects among it.

    Raises:
        UsageError: a side names no run, or no dump that can be read.
        DatabaseError: as `open_database`.
    """
    rejected = 0

    def side(name: str) -> Side:
        def check(summary: ImportSummary) -> None:
            nonlocal rejected
            rejected += summary.rejected
            if not summary.loaded:
                raise UsageError(f"{shown(name)}: holds no dump that can be read, and a run is {FORMS}")

        return Dumps([name], check) if is_dump(name) else partial(resolve, text=name)

    sides = [side(before), side(after)]
    with open_together(database, sides, open_, jobs, follow_symlinks, on_event) as (connection, runs):
        yield Sides(connection, runs[0], runs[1], rejected)


@contextmanager
def open_together(
    database: str,
    sides: Sequence[Side],
    open_: Open,
    jobs: int | None,
    follow_symlinks: bool,
    on_event: Callable[[Event], None] | None = None,
) -> Iterator[tuple[duckdb.DuckDBPyConnection, list[tuple[int, ...]]]]:
    """Bring all sides into one database; yield it, open to read, with the numbers of each side's runs.

    Each side's dumps are imported by themselves: the same on both sides are runs of both. Raises and takes
    what `open_sides` does.
    """
    if not any(isinstance(side, Dumps) for side in sides):
        with open_(database) as connection:
            yield connection, [side(connection) for side in sides if not isinstance(side, Dumps)]
        return
    with tempfile.TemporaryDirectory(prefix="xbuf-compare-") as folder:
        greatest = 0
        sources: dict[int, Source] = {}
        if not all(isinstance(side, Dumps) for side in sides):
            with open_(database) as connection:
                greatest = one_number(connection, "SELECT max(run_id) FROM runs")
                for number, side in enumerate(sides):
                    if not isinstance(side, Dumps):
                        sources[number] = Source(database, side(connection))
        for number, side in enumerate(sides):
            if isinstance(side, Dumps):
                file = os.path.join(folder, f"{number}.duckdb")
                side.check(
                    import_dumps(
                        side.paths, file, jobs=jobs, follow_symlinks=follow_symlinks, on_event=on_event
                    )
                )
                with closing(open_database(file, read_only=True)) as read:
                    found = read.execute("SELECT run_id FROM runs ORDER BY 1").fetchall()
                sources[number] = Source(file, tuple(run for (run,) in found), greatest)
                greatest = max(sources[number].numbers, default=greatest)
        both = sources[0].database
        if len(sources) > 1:
            both = os.path.join(folder, "both.duckdb")
            gather(both, list(sources.values()))
        with open_(both) as connection:
            yield connection, [sources[number].numbers for number in range(len(sides))]


def is_dump(side: str) -> bool:
    """Return whether a side is a path or URL of dumps; numbers, labels and `latest` never are."""
    return is_url(side) or (Path(side).exists() and not is_selection(side))


def gather(target: str, sources: Sequence[Source]) -> None:
    """Make a database of runs of several; their numbers, with what is added, must differ."""
    open_database(target).close()
    for source in sources:
        if is_lake(source.database):
            # A lake is attached to no file, but a file to what reads a lake.
            with closing(open_to_read(source.database, unsafe=True)) as connection:
                connection.execute(f"ATTACH {literal(os.path.abspath(target))} AS target")
                with narrowed(connection, source.runs):
                    _copy(connection, source, "", "target.")
        else:
            with closing(open_database(target)) as connection:
                place = literal(os.path.abspath(source.database))
                connection.execute(f"ATTACH {place} AS source (READ_ONLY)")
                _copy(connection, source, "source.", "")


def _copy(connection: duckdb.DuckDBPyConnection, source: Source, origin: str, target: str) -> None:
    """Copy the runs of a source; `origin` and `target` go before the names of tables."""
    connection.begin()
    for table in _COPIED:
        connection.execute(
            f'INSERT INTO {target}"{table}" BY NAME'
            f' SELECT t.* REPLACE (t.run_id + $offset AS run_id) FROM {origin}"{table}" AS t'
            " WHERE t.run_id IN (SELECT unnest($runs))",
            {"offset": source.offset, "runs": list(source.runs)},
        )
    connection.commit()
