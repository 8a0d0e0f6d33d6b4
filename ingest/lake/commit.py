"""Complete a batch: rows first, then the runs that make them count, then the line in the history.

Each step is done at most once, by whoever comes: the writer, or the next one after its death. A run is
visible whole or not at all, as its row in `runs` comes when all others are there. Which of them are new is
decided there, by the same rules as for a file (`ingest/database/match_runs.sql`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from ingest.database.file import CONFIG
from ingest.database.identity import match_runs
from ingest.database.refusals import explain
from ingest.lake.batch import Batch, open_batches, read_batch, remove_batch
from ingest.lake.failures import failure_of
from ingest.lake.files import DataFile, attach, files_with, read_files, removal_of, unnested, write_file
from ingest.lake.store import Lake
from ingest.lake.transactions import Change, add_once, change_in_turn, is_done
from ingest.sql import one_number

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LAST: Final = ("runs", "rejects", "imports")
"""Tables whose rows come after those of the runs."""


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection for work on a lake: one thread, in memory, moments in UTC."""
    connection = duckdb.connect(":memory:", config=CONFIG)
    connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
    return connection


@contextmanager
def working(lake: Lake) -> Iterator[tuple[duckdb.DuckDBPyConnection, Path]]:
    """Yield a connection for work on a lake and a folder for files on their way.

    Raises:
        DatabaseError: a file cannot be read or written.
    """
    temporary = tempfile.TemporaryDirectory(prefix="xbuf-lake-")
    with temporary as folder, connect() as connection, in_database_words(lake):
        yield connection, Path(folder)


@contextmanager
def in_database_words(lake: Lake) -> Iterator[None]:
    """Raise what DuckDB raises about files of a lake as a DatabaseError."""
    try:
        yield
    except duckdb.Error as error:
        raise failure_of(lake, error) or explain(str(lake), error) from error


def complete_all(lake: Lake) -> int:
    """Complete all batches that were begun; return how many.

    Raises:
        DatabaseError: the store refuses.
    """
    found = [batch for number in open_batches(lake) if (batch := read_batch(lake, number)) is not None]
    for batch in found:
        complete(lake, batch)
    return len(found)


def complete(lake: Lake, batch: Batch) -> None:
    """Do what is left of a batch.

    Raises:
        DatabaseError: the store refuses.
    """
    for name, file in batch.files.items():
        if name not in _LAST:
            add_once(lake, name, batch.number, [file.added()])
    with working(lake) as (connection, scratch):
        if batch.runs is not None:
            _add_runs(lake, batch, connection, scratch)
        for name in ("rejects", "imports"):
            if name in batch.files:
                add_once(lake, name, batch.number, [batch.files[name].added()])
        if batch.import_row is not None:
            _add_import(lake, batch, connection, scratch)
    remove_batch(lake, batch.number)


def _add_runs(lake: Lake, batch: Batch, connection: duckdb.DuckDBPyConnection, scratch: Path) -> None:
    """Make the runs of a batch visible, but for those that are there already."""
    assert batch.runs is not None
    connection.execute(f"CREATE TEMP TABLE batch_runs AS FROM {_of_batch(lake, 'runs', batch.runs, scratch)}")
    files = _of_batch(lake, "run_files", batch.files["run_files"], scratch)
    connection.execute(f"CREATE TEMP TABLE batch_files AS SELECT run_id, role, content_sha256 FROM {files}")

    def work_out(table: DeltaTable) -> Change | None:
        if is_done(lake, table, "runs", batch.number):
            return None
        return _new_runs(lake, batch, table, connection, scratch)

    change_in_turn(lake, "runs", work_out)


def _new_runs(
    lake: Lake, batch: Batch, table: DeltaTable, connection: duckdb.DuckDBPyConnection, scratch: Path
) -> Change:
    """Work out what a batch changes in `runs` as it is now."""
    assert batch.runs is not None
    match_in_lake(connection, lake, table, "batch_runs", "batch_files")
    new = connection.execute("SELECT number, run_id FROM matched_runs WHERE NOT is_held").fetchall()
    completed = [(number, old) for number, old in new if old is not None]
    gone = {old for _, old in completed}
    if batch.replace:
        older = connection.execute(
            "SELECT r.run_id FROM runs AS r SEMI JOIN ("
            "  FROM batch_runs AS b JOIN matched_runs AS m ON m.number = b.run_id WHERE NOT m.is_held"
            ") USING (dump_dir, stem)"
        ).fetchall()
        gone.update(old for (old,) in older)
    if completed:
        _carry_labels(lake, completed, batch.number, connection, scratch)
    added: list[DataFile | None] = []
    if len(new) == batch.runs.rows:
        added.append(batch.runs)
    elif new:
        mine = f"SELECT * FROM batch_runs WHERE run_id IN ({_numbers(number for number, _ in new)})"
        added.append(write_file(connection, lake, "runs", batch.number, mine, scratch))
    without = without_runs(connection, lake, table, gone, batch.number, scratch)
    return Change(
        [*(file.added() for file in added if file is not None), *without.added], without.removed, batch.number
    )


def match_in_lake(
    connection: duckdb.DuckDBPyConnection, lake: Lake, table: DeltaTable, runs: str, files: str
) -> None:
    """Make the temporary table `matched_runs`: which run of a lake each given one is.

    Args:
        connection: gets views `runs` and `run_files` of the lake.
        lake: where.
        table: `runs`, opened; `run_files` is opened after it, so that it has all of theirs.
        runs: table with run_id, dump_dir, stem.
        files: table with run_id, role, content_sha256.
    """
    attach(connection, lake, "runs", table)
    attach(connection, lake, "run_files")
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE given_runs AS SELECT run_id AS number, dump_dir, stem FROM {runs}"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE given_files AS"
        f" SELECT run_id AS number, role, content_sha256 FROM {files}"
    )
    match_runs(connection)


def without_runs(
    connection: duckdb.DuckDBPyConnection,
    lake: Lake,
    table: DeltaTable,
    gone: Collection[int],
    number: int | None,
    scratch: Path,
) -> Change:
    """Return the change that takes some runs out of `runs`, opened: their files are written anew."""
    paths = files_with(table, gone) if gone else []
    if not paths:
        return Change()
    source = read_files(lake, "runs", paths, scratch)
    kept = f"SELECT * FROM {source} WHERE run_id NOT IN ({_numbers(gone)})"
    file = write_file(connection, lake, "runs", number, kept, scratch)
    return Change([] if file is None else [file.added()], removal_of(table, paths))


def _carry_labels(
    lake: Lake,
    completed: Sequence[tuple[int, int]],
    number: int,
    connection: duckdb.DuckDBPyConnection,
    scratch: Path,
) -> None:
    """Give runs the labels of those that they take the place of, but for keys that they have.

    It comes before the runs are visible; where that is worked out again, it finds the labels there.
    """
    pairs = ", ".join(f"({new}, {old})" for new, old in completed)

    def work_out(table: DeltaTable) -> Change | None:
        attach(connection, lake, "run_labels", table)
        labels = (
            f"SELECT p.run_id, l.key, l.value FROM (VALUES {pairs}) AS p(run_id, old)"
            " JOIN run_labels AS l ON l.run_id = p.old"
            " ANTI JOIN run_labels AS own ON own.run_id = p.run_id AND own.key = l.key"
        )
        file = write_file(connection, lake, "run_labels", number, labels, scratch)
        return Change([file.added()]) if file is not None else None

    change_in_turn(lake, "run_labels", work_out)


def _add_import(lake: Lake, batch: Batch, connection: duckdb.DuckDBPyConnection, scratch: Path) -> None:
    """Add the row of the import, with the runs that it has loaded until now.

    Those that another writer brought in while it read them count as unchanged.
    """
    assert batch.import_row is not None
    table = lake.table("imports")
    if is_done(lake, table, "imports", batch.number):
        return
    attach(connection, lake, "runs")
    mine = "SELECT count(*) FROM runs WHERE import_id = $1"
    done = {**batch.import_row, "loaded": one_number(connection, mine, [batch.import_row["import_id"]])}
    if done.get("found") is not None:
        done["unchanged"] = done["found"] - done["loaded"] - done["rejected"] - done["unfinished"]
    query = unnested("imports", [done])
    file = write_file(connection, lake, "imports", batch.number, query, scratch)
    assert file is not None
    add_once(lake, "imports", batch.number, [file.added()])


def _of_batch(lake: Lake, name: str, file: DataFile, scratch: Path) -> str:
    return read_files(lake, name, [file.path], scratch)


def _numbers(runs: Iterable[int]) -> str:
    return ", ".join(map(str, runs))
