"""What the database holds already, so that an import reads only what is new."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ingest.database.refusals import explain
from ingest.display import display

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from ingest.dump.sets import DumpSet, Member

__all__ = [
    "Known",
    "KnownRun",
    "add_staged",
    "has_saved_known",
    "is_unchanged",
    "keep_known",
    "read_known",
    "read_saved",
    "write_known",
]

_SAVED: Final = "known.parquet"
_SELECT: Final = (
    "SELECT run_id, dump_dir, stem, role, file_name, f.file_bytes, mtime_ns, f.content_sha256"
    " FROM run_files AS f JOIN runs USING (run_id) ORDER BY run_id"
)
STAGED_RUN: Final = 0
"""Number of a run that is staged and not in the database yet."""


class KnownRun(NamedTuple):
    """A run with its member files; `files` are (role, file name, size, mtime, SHA-256)."""

    run_id: int
    files: Sequence[tuple[str, str, int, int, str | None]]

    @property
    def sha256(self) -> dict[str, str | None]:
        """SHA-256 of each member by role."""
        return {file[0]: file[4] for file in self.files}


Known = dict[tuple[str, str], list[KnownRun]]
"""Runs by (dump_dir, stem), oldest first."""


def read_known(connection: duckdb.DuckDBPyConnection) -> Known:
    """Read the member files of every run."""
    return _group(connection.execute(_SELECT).fetchall())


def write_known(connection: duckdb.DuckDBPyConnection, staging: Path) -> None:
    """Write down what is known, under a name that does not count yet; `keep_known` gives it the other.

    Raises:
        DatabaseError: there is no folder to write to.
        duckdb.Error: it cannot be written.
    """
    try:
        staging.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise explain(str(staging), error) from error
    # By DuckDB, which is there: the import of Arrow takes 0.1 s.
    place = str(_unnamed(staging)).replace("'", "''")
    connection.execute(f"COPY ({_SELECT}) TO '{place}' (FORMAT parquet, COMPRESSION zstd)")


def keep_known(staging: Path) -> None:
    """Keep what `write_known` wrote, for an import that finds the database in a writer's hands.

    What such an import skips by a record that is out of date, the next one finds: it asks the database.

    Raises:
        DatabaseError: it cannot be renamed.
    """
    try:
        _unnamed(staging).replace(staging / _SAVED)
    except OSError as error:
        raise explain(str(staging), error) from error


def _unnamed(staging: Path) -> Path:
    return staging / f"{_SAVED}.tmp"


def has_saved_known(staging: Path) -> bool:
    """Tell whether something is written down; a kill may have come before that."""
    return (staging / _SAVED).exists()


def read_saved(staging: Path) -> Known:
    """Read what `write_known` wrote; nothing is known when it is not there or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _group(_rows(pq.read_table(staging / _SAVED, partitioning=None)))
    except (OSError, pa.ArrowException):
        return {}


def add_staged(known: Known, parts: Sequence[str]) -> None:
    """Add the runs of staged parts, so that they are not read a second time."""
    import pyarrow.parquet as pq

    for part in parts:
        runs = pq.read_table(
            os.path.join(part, "runs.parquet"), columns=["run_no", "dump_dir", "stem"], partitioning=None
        )
        places = {run_no: (directory, stem) for run_no, directory, stem in _rows(runs)}
        columns = ["run_no", "role", "file_name", "file_bytes", "mtime_ns", "content_sha256"]
        files = pq.read_table(os.path.join(part, "run_files.parquet"), columns=columns, partitioning=None)
        rows = [(row[0], *places[row[0]], *row[1:]) for row in sorted(_rows(files))]
        for place, staged in _group(rows).items():
            known.setdefault(place, []).extend(KnownRun(STAGED_RUN, run.files) for run in staged)


def is_unchanged(dump_set: DumpSet, runs: list[KnownRun]) -> bool:
    """Tell whether a run of the same place recorded every member with its size and time."""
    for run in runs:
        recorded = [file[:4] for file in run.files]
        for member in dump_set.members:
            if member not in recorded and _as_recorded(member) not in recorded:
                break
        else:
            return True
    return False


def _as_recorded(member: Member) -> tuple[str, str, int, int]:
    """Return a member with its name as the database has it."""
    if member.file_name.isprintable():
        return member
    return member._replace(file_name=display(member.file_name))


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _group(rows: Iterable[tuple[Any, ...]]) -> Known:
    """Gather the files of each run; the rows have the columns of `_SELECT` and are in order of their runs."""
    known: Known = {}
    last = None
    files: list[Any] = []
    for row in rows:
        if row[0] != last:
            last, directory, stem = row[:3]
            files = []
            known.setdefault((directory, stem), []).append(KnownRun(row[0], files))
        files.append(row[3:])
    return known
