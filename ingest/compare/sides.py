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
from ingest.sql import literal

if TYPE_CHECKING:
    import duckdb

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
        return tuple(run + self.offset for run in self.runs)


def _open(database: str) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    return closing(open_to_read(database))


@contextmanager
def open_sides(
    database: str,
    before: str,
    after: str,
    *,
    open_: Open = _open,
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
    paths = [is_dump(side) for side in (before, after)]
    if not any(paths):
        with open_(database) as connection:
            yield Sides(connection, resolve(connection, before), resolve(connection, after))
        return
    with tempfile.TemporaryDirectory(prefix="xbuf-diff-") as folder:
        greatest, rejected = 0, 0
        sources: list[Source] = []
        if not all(paths):
            with open_(database) as connection:
                row = connection.execute("SELECT coalesce(max(run_id), 0) FROM runs").fetchone()
                greatest = int(row[0]) if row else 0
                named = resolve(connection, after if paths[0] else before)
        for number, side in enumerate((before, after)):
            if paths[number]:
                file = os.path.join(folder, f"{number}.duckdb")
                summary = import_dumps(
                    [side], file, jobs=jobs, follow_symlinks=follow_symlinks, on_event=on_event
                )
                rejected += summary.rejected
                with closing(open_database(file, read_only=True)) as read:
                    runs = tuple(
                        run for (run,) in read.execute("SELECT run_id FROM runs ORDER BY 1").fetchall()
                    )
                if not runs:
                    raise UsageError(f"{shown(side)}: holds no dump that can be read, and a run is {FORMS}")
                sources.append(Source(file, runs, greatest))
                greatest += max(runs)
            else:
                sources.append(Source(database, named))
        both = os.path.join(folder, "both.duckdb")
        gather(both, sources)
        with open_(both) as connection:
            yield Sides(connection, sources[0].numbers, sources[1].numbers, rejected)


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
