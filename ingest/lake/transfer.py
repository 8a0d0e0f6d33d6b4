"""Bring the runs of a database file into a lake, and those of a lake into a new file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from ingest.database.connect import check_path, open_database
from ingest.database.creation import create_at_head
from ingest.database.file import UNBORN, sync
from ingest.database.refusals import explain
from ingest.database.tables import RUN_TABLES
from ingest.errors import UsageError
from ingest.lake.batch import Batch, publish
from ingest.lake.commit import complete, complete_all, connect, match_in_lake
from ingest.lake.create import create_lake
from ingest.lake.files import DataFile, attach, write_file
from ingest.lake.layout import LAKE_TABLES, RUNS_A_BATCH
from ingest.lake.opened import open_lake
from ingest.lake.store import Lake
from ingest.lake.transactions import take_number
from ingest.sql import literal, one_number

_CHILDREN: Final = ("run_labels", *RUN_TABLES)


@dataclass(frozen=True, slots=True)
class Exported:
    """What a database file got of a lake: its path, runs, and rows of all tables."""

    path: str
    runs: int
    rows: int


@dataclass(frozen=True, slots=True)
class Imported:
    """What a lake got of a database file.

    Attributes:
        runs: runs brought in, those among them that complete runs of the lake.
        known: runs that the lake had already.
        imports: lines of the history brought in.
        batches: commits.
    """

    runs: int
    known: int
    imports: int
    batches: int


def export_lake(lake: Lake, path: str) -> Exported:
    """Write the runs of a lake, as it is now, to a new database file; runs and imports keep their numbers.

    The file gets its name when it is complete.

    Raises:
        UsageError: there is a file of that name.
        DatabaseError: as `open_lake`; also when the file cannot be written.
    """
    check_path(path)
    place = os.path.realpath(path)
    if os.path.lexists(place):
        raise UsageError(f"{path}: is there already; export to a new file")
    with open_lake(lake, unsafe=True) as connection:
        try:
            with tempfile.TemporaryDirectory(prefix=UNBORN, dir=os.path.dirname(place)) as scratch:
                new = os.path.join(scratch, os.path.basename(place))
                create_at_head(new, with_queries=True)
                connection.execute(f"ATTACH {literal(new)} AS file; BEGIN")
                rows = {
                    name: one_number(connection, f'INSERT INTO file."{name}" BY NAME FROM main."{name}"')
                    for name in LAKE_TABLES
                }
                connection.execute("COMMIT; CHECKPOINT file; DETACH file")
                sync(new)
                os.rename(new, place)
            sync(os.path.dirname(place))
        except (OSError, duckdb.Error) as error:
            raise explain(path, error) from error
    return Exported(path, rows["runs"], sum(rows.values()))


def import_database(path: str, lake: Lake, *, on_batch: Callable[[int, int], None] | None = None) -> Imported:
    """Bring the runs of a database file into a lake, which is made where there is none.

    A run that the lake has already stays as it is, unless the file has more of its files: then it is
    completed. All get new numbers; so do imports, which are the same when their `import_uuid` is. A kill
    loses nothing: what was committed is passed over by the next call.

    Args:
        on_batch: called after each commit with the runs brought in until then, and those of all commits.

    Raises:
        DatabaseError: the file or the lake cannot be used, or the store refuses.
    """
    open_database(path, read_only=True).close()
    create_lake(lake)
    complete_all(lake)
    with connect() as connection:
        connection.execute(f"ATTACH {literal(os.path.abspath(path))} AS file (READ_ONLY)")
        match_in_lake(connection, lake, lake.table("runs"), "file.runs", "file.run_files")
        new = [
            int(run)
            for (run,) in connection.execute(
                "SELECT number FROM matched_runs WHERE NOT is_held ORDER BY number"
            ).fetchall()
        ]
        known = one_number(connection, "SELECT count(*) FROM matched_runs") - len(new)
        imports = _number_imports(connection, lake)
        steps = [new[start : start + RUNS_A_BATCH] for start in range(0, len(new), RUNS_A_BATCH)]
        if imports and not steps:
            steps = [[]]
        done = 0
        for step in steps:
            _commit(connection, lake, step, with_history=imports > 0 and not done)
            done += len(step)
            if on_batch is not None:
                on_batch(done, len(new))
    return Imported(len(new), known, imports, len(steps))


def _number_imports(connection: duckdb.DuckDBPyConnection, lake: Lake) -> int:
    """Make `import_map` (old, new, is_new) of all imports of the file; return how many the lake lacks."""
    attach(connection, lake, "imports")
    pairs = connection.execute(
        "SELECT f.import_id, max(l.import_id) FROM file.imports AS f"
        " LEFT JOIN imports AS l USING (import_uuid) GROUP BY f.import_id ORDER BY f.import_id"
    ).fetchall()
    rows = [
        (old, take_number(lake), True) if known is None else (old, int(known), False) for old, known in pairs
    ]
    values = ", ".join(f"({old}, {number}, {is_new})" for old, number, is_new in rows)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE import_map(old BIGINT, new BIGINT, is_new BOOLEAN);"
        + (f"INSERT INTO import_map VALUES {values}" if rows else "")
    )
    return sum(is_new for *_, is_new in rows)


def _commit(
    connection: duckdb.DuckDBPyConnection, lake: Lake, runs: Sequence[int], *, with_history: bool
) -> None:
    """Commit some runs of the file as one batch, with the history of its imports."""
    number = take_number(lake)
    numbered = ", ".join(f"({old}, {number * RUNS_A_BATCH + place})" for place, old in enumerate(runs))
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE run_map(old BIGINT, new BIGINT);"
        + (f"INSERT INTO run_map VALUES {numbered}" if runs else "")
    )
    of_imports = "JOIN import_map AS i ON i.old = t.import_id"
    queries = {
        "runs": "SELECT t.* REPLACE"
        " (m.new AS run_id, i.new AS import_id, now() AT TIME ZONE 'UTC' AS ingested_at)"
        f" FROM file.runs AS t JOIN run_map AS m ON m.old = t.run_id {of_imports} ORDER BY m.new",
        **{
            name: f'SELECT t.* REPLACE (m.new AS run_id) FROM file."{name}" AS t'
            " JOIN run_map AS m ON m.old = t.run_id ORDER BY m.new"
            for name in _CHILDREN
        },
    }
    if with_history:
        queries |= {
            name: f'SELECT t.* REPLACE (i.new AS import_id) FROM file."{name}" AS t {of_imports}'
            " WHERE i.is_new"
            for name in ("imports", "rejects")
        }
    files: dict[str, DataFile] = {}
    with tempfile.TemporaryDirectory(prefix="xbuf-lake-") as scratch:
        for name, query in queries.items():
            file = write_file(connection, lake, name, number, query, Path(scratch))
            if file is not None:
                files[name] = file
    batch = Batch(number, None, files.pop("runs", None), files)
    publish(lake, batch)
    complete(lake, batch)
