"""Write many small files of a lake as few large ones, without the rows of runs that do not count.

Readers and writers go on: the old files stay until `xbuf lake vacuum`. Rows of a batch come before the runs
that make them count, so the rows of a batch under way are kept: the table is opened first, then the batches
under way are listed, then the runs are opened. So a batch that has rows in the table and is not under way any
more was complete before the runs were looked at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ingest.lake.batch import open_batches
from ingest.lake.commit import complete_all, working
from ingest.lake.create import open_imports
from ingest.lake.durable import sync_log
from ingest.lake.files import attach, read_files, removal_of, write_file
from ingest.lake.layout import COUNTS, LAKE_TABLES, RUNS_A_BATCH, TABLES_OF_RUNS
from ingest.lake.snapshot import LakeFile, listed
from ingest.lake.store import Lake, in_words
from ingest.lake.transactions import Change, change_in_turn

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable

FILE_BYTES: Final = 128 << 20
"""What a file is to have; of that size a question about one run reads a hundredth."""
CHANGED_FILE_BYTES: Final = 16 << 20
"""The same for tables of which single rows are changed, each time with the whole file."""
_CHANGED: Final = ("imports", "run_files", "run_labels", "runs")
_SMALL: Final = 0.5
"""A file with less than this part of the size is worth to be written anew."""


class Compacted(NamedTuple):
    """What a compaction did.

    Attributes:
        files_before: files that counted.
        files_after: files that count.
        bytes_before: their sizes.
        bytes_after: their sizes.
        dropped_rows: rows of runs that did not count.
    """

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    dropped_rows: int


def compact_lake(lake: Lake) -> Compacted:
    """Compact every table of a lake at head, and complete batches that were begun.

    Raises:
        DatabaseError: the store refuses.
    """
    open_imports(lake)
    complete_all(lake)
    before, after = [], []
    dropped = 0
    with working(lake) as (connection, folder):
        for name in LAKE_TABLES:
            before += listed(lake.table(name))
            for group in _groups(connection, lake, name):
                dropped += _rewrite(lake, name, group, connection, folder)
            table = lake.table(name)
            with in_words(lake, name):
                table.create_checkpoint()
            sync_log(lake, name, table.version())
            after += listed(table)
    return Compacted(
        len(before),
        len(after),
        sum(file.size for file in before),
        sum(file.size for file in after),
        dropped,
    )


def _rewrite(
    lake: Lake, name: str, group: Sequence[LakeFile], connection: duckdb.DuckDBPyConnection, folder: Path
) -> int:
    """Write files anew as one; return how many rows were dropped."""
    paths = [file.name for file in group]
    rows_before = rows_after = sum(file.rows or 0 for file in group)

    def work_out(table: DeltaTable) -> Change | None:
        nonlocal rows_after
        if not {file.name for file in listed(table)}.issuperset(paths):
            return None  # another process has written one of them anew
        _note_runs(connection, lake, name)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            source = read_files(lake, name, paths, Path(scratch))
            counts = f" QUALIFY {COUNTS[name]}" if name in COUNTS else ""
            query = f"SELECT * FROM {source} WHERE {_condition(name)}{counts}"
            file = write_file(connection, lake, name, None, query, Path(scratch))
        rows_after = 0 if file is None else file.rows
        return Change([] if file is None else [file.added()], removal_of(table, paths))

    change_in_turn(lake, name, work_out)
    return rows_before - rows_after


def _groups(connection: duckdb.DuckDBPyConnection, lake: Lake, name: str) -> list[list[LakeFile]]:
    """Return the files that are to be one, in the order of their runs."""
    table = lake.table(name)
    target = CHANGED_FILE_BYTES if name in _CHANGED else FILE_BYTES
    files = sorted(listed(table), key=lambda file: (file.least or 0, file.name))
    _note_runs(connection, lake, name)
    small = [file for file in files if file.size < target * _SMALL]
    groups: list[list[LakeFile]] = [[]]
    for file in small:
        if groups[-1] and sum(one.size for one in groups[-1]) + file.size > target:
            groups.append([])
        groups[-1].append(file)
    alone = {group[0] for group in groups if len(group) == 1} | (set(files) - set(small))
    useless = _with_useless_rows(connection, table, name, {file.name for file in alone})
    return [
        *(group for group in groups if len(group) > 1),
        *([file] for file in sorted(alone) if file.name in useless),
    ]


def _note_runs(connection: duckdb.DuckDBPyConnection, lake: Lake, name: str) -> None:
    """Note which runs of a table that is open count, and which batches may yet make theirs count."""
    if name in TABLES_OF_RUNS:
        numbers = ", ".join(map(str, open_batches(lake)))
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE under_way AS SELECT unnest([{numbers}]::BIGINT[]) AS number"
        )
        attach(connection, lake, "runs")


def _with_useless_rows(
    connection: duckdb.DuckDBPyConnection, table: DeltaTable, name: str, paths: Collection[str]
) -> set[str]:
    """Return the files, of some, that have rows of runs that do not count."""
    found = set()
    if name in TABLES_OF_RUNS and paths:
        for fragment in table.to_pyarrow_dataset().get_fragments():
            path = fragment.path.rpartition("/")[2]
            if path in paths:
                connection.register("fragment", fragment.to_table(columns=["run_id"]))
                if connection.execute(f"FROM fragment WHERE NOT {_condition(name)} LIMIT 1").fetchone():
                    found.add(path)
                connection.unregister("fragment")
    return found


def _condition(name: str) -> str:
    """Return the condition of the rows that count, or may yet."""
    if name not in TABLES_OF_RUNS:
        return "true"
    return (
        f"(run_id IN (SELECT run_id FROM runs) OR run_id // {RUNS_A_BATCH} IN (SELECT number FROM under_way))"
    )
