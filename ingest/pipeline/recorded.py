"""What is known of the dump sets that a search found: those not to be read again, and the runs of the others.

Nothing is read but the rows of the places found, so the cost is that of the search and not of the database.
The rows come from the database; while a writer has it, from a record of it (`ingest.pipeline.manifest`); and
from what is staged and not loaded yet. All three have tables or views `runs` and `run_files` for what this
asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from ingest.display import display
from ingest.dump.names import ROLES
from ingest.dump.sets import Member
from ingest.sql import parquet
from ingest.staging.task import RecordedFile, RecordedRun

if TYPE_CHECKING:
    import duckdb

    from ingest.dump.sets import DumpSet

    Open = Callable[[], Iterable[duckdb.DuckDBPyConnection]]
    """Opens all that must be asked, one after the other; each is closed after its answer."""

STAGED_RUN: Final = 0
"""Number of a run that is staged and not in the database yet."""
FEW_SETS: Final = 5_000
"""Up to so many sets are looked up one by one. Of more, whole directories are fetched first, as one text a
file: 500,000 sets take 1.3 s, and one by one 9."""
_AT_ONCE: Final = 20_000
"""Places in one question; as JSON, some 4 MB."""

_PLACES: Final = """
    SELECT run_id, dump_dir, stem, role, file_name, f.file_bytes, mtime_ns, etag, f.content_sha256
    FROM (
        SELECT unnest(place.dump_dir) AS dump_dir, unnest(place.stem) AS stem
        FROM (SELECT from_json_strict($places, '{"dump_dir": ["VARCHAR"], "stem": ["VARCHAR"]}') AS place)
    )
    JOIN runs USING (dump_dir, stem)
    JOIN run_files AS f USING (run_id)
    ORDER BY run_id
"""
# Where a place has several runs, a set may mix the files of two: these are looked at one by one.
_DIRECTORIES: Final = """
    WITH places AS (
        SELECT dump_dir, stem, min(run_id) AS run_id, count(*) AS runs
        FROM runs
        SEMI JOIN (SELECT unnest(from_json_strict($directories, '["VARCHAR"]')) AS dump_dir) USING (dump_dir)
        GROUP BY ALL
    )
    SELECT dump_dir, list(concat_ws('/', role, file_name, f.file_bytes, mtime_ns, etag)) FILTER (runs = 1)
    FROM places JOIN run_files AS f USING (run_id)
    GROUP BY dump_dir
"""
_RENAMED: Final = """
    SELECT dump_dir, file_name
    FROM run_files JOIN runs USING (run_id)
    WHERE role = 'primary' AND NOT ends_with(file_name, $ending)
        AND (SELECT bool_or(dump_dir = root OR starts_with(dump_dir, rtrim(root, '/') || '/'))
             FROM unnest(from_json_strict($roots, '["VARCHAR"]')) AS roots(root))
"""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is known of sets, by their numbers in the sequence asked for.

    Attributes:
        unchanged: sets of which one run recorded every member with its size and time.
        runs: of the other sets, the runs of the same place, oldest first; sets without any are left out.
    """

    unchanged: frozenset[int] = frozenset()
    runs: dict[int, tuple[RecordedRun, ...]] = field(default_factory=dict)


class RenamedFiles:
    """Files below some roots that were primary files before, though their names do not say so.

    A container of (directory, file name), both as `display` shows them. It is filled when it is asked for
    the first time: where all files have XLA's names, nobody asks.
    """

    def __init__(self, find: Callable[[], Set[tuple[str, str]]]) -> None:
        """Name what finds them: `renamed_files`, in the end."""
        self._find = find

    def __contains__(self, file: object) -> bool:
        return file in self._files

    @cached_property
    def _files(self) -> Set[tuple[str, str]]:
        return self._find()


def renamed_files(open_all: Open, roots: Sequence[str]) -> set[tuple[str, str]]:
    """Return directory and name of files below some roots that were primary files, whatever their names."""
    parameters = {"roots": json.dumps([display(root) for root in roots]), "ending": ROLES["primary"][0]}
    files: set[tuple[str, str]] = set()
    for connection in open_all():
        with closing(connection):
            files.update(connection.execute(_RENAMED, parameters).fetchall())
    return files


def find_recorded(open_all: Open, sets: Sequence[DumpSet], *, rehash: bool = False) -> Recorded:
    """Look up dump sets.

    Args:
        open_all: opens what must be asked.
        sets: as found.
        rehash: no set counts as unchanged.
    """
    if not sets:
        return Recorded()
    shown = {directory: display(directory) for directory in {one.directory for one in sets}}
    unchanged: set[int] = set()
    runs: dict[int, tuple[RecordedRun, ...]] = {}
    for connection in open_all():
        with closing(connection):
            numbers: Sequence[int] = range(len(sets))
            if len(sets) > FEW_SETS and not rehash:
                same, numbers = _by_directory(connection, sets, shown)
                unchanged.update(same)
            for number, found in _by_place(connection, sets, numbers, shown):
                runs[number] = (*runs.get(number, ()), *found)
    if not rehash:
        unchanged.update(number for number, found in runs.items() if is_unchanged(sets[number], found))
        for number in unchanged:
            runs.pop(number, None)
    return Recorded(frozenset(unchanged), runs)


def is_unchanged(dump_set: DumpSet, runs: Iterable[RecordedRun]) -> bool:
    """Return whether a run of the same place recorded every member with its size and time."""
    members = [member.as_stored() for member in dump_set.members]
    return any({file.member for file in run.files}.issuperset(members) for run in runs)


def staged_runs(connection: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> None:
    """Give a connection the views `runs` and `run_files` of staged parts; run numbers there are texts."""
    for table, columns in (
        ("runs", "dump_dir, stem"),
        ("run_files", "role, file_name, file_bytes, mtime_ns, etag, content_sha256"),
    ):
        files = parquet((f"{part}/{table}.parquet" for part in parts), "filename = true")
        connection.execute(
            f"CREATE VIEW {table} AS SELECT parse_dirpath(filename) || '/' || run_no AS run_id, {columns}"
            f" FROM {files}"
        )


def _by_directory(
    connection: duckdb.DuckDBPyConnection, sets: Sequence[DumpSet], shown: dict[str, str]
) -> tuple[list[int], list[int]]:
    """Return the sets that are unchanged, and those that must be looked at one by one."""
    rows = connection.execute(_DIRECTORIES, {"directories": json.dumps(list(shown.values()))}).fetchall()
    recorded = {directory: frozenset(files or ()) for directory, files in rows}
    same: list[int] = []
    left: list[int] = []
    for number, dump_set in enumerate(sets):
        files = recorded.get(shown[dump_set.directory])
        if files is None:
            continue
        for role, name, size, mtime_ns, etag in dump_set.members:
            shown_name = name if name.isprintable() else display(name)
            version = f"{size}/{mtime_ns}" if etag is None else f"{size}/{mtime_ns}/{etag}"
            if f"{role}/{shown_name}/{version}" not in files:
                left.append(number)
                break
        else:
            same.append(number)
    return same, left


def _by_place(
    connection: duckdb.DuckDBPyConnection,
    sets: Sequence[DumpSet],
    numbers: Sequence[int],
    shown: dict[str, str],
) -> Iterator[tuple[int, tuple[RecordedRun, ...]]]:
    """Yield the sets of these numbers that have runs at their place, and the runs, oldest first."""
    for start in range(0, len(numbers), _AT_ONCE):
        some = numbers[start : start + _AT_ONCE]
        places = [(shown[sets[number].directory], display(sets[number].stem)) for number in some]
        directories, stems = zip(*dict.fromkeys(places), strict=True)
        asked = {"places": json.dumps({"dump_dir": directories, "stem": stems})}
        found: dict[tuple[str, str], list[RecordedRun]] = {}
        for (run_id, directory, stem), rows in groupby(
            connection.execute(_PLACES, asked).fetchall(), itemgetter(0, 1, 2)
        ):
            files = [RecordedFile(Member(*member), sha256) for _, _, _, *member, sha256 in rows]
            run = RecordedRun(run_id if isinstance(run_id, int) else STAGED_RUN, files)
            found.setdefault((directory, stem), []).append(run)
        yield from (
            (number, tuple(found[place]))
            for number, place in zip(some, places, strict=True)
            if place in found
        )
