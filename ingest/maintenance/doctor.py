"""Examine a database and the files next to it; change nothing but what killed queries left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import duckdb

from ingest.database.connect import open_database, status
from ingest.database.file import UNBORN
from ingest.database.import_lock import lock_holder
from ingest.database.private import require_private_folder
from ingest.database.revision import HEAD
from ingest.database.spill import remove_left_over
from ingest.database.tables import RUN_TABLES, TABLES
from ingest.errors import DatabaseError, DatabaseLocked
from ingest.pipeline.history import read_history
from ingest.pipeline.journal import count_staged, read_folded, read_journals, staging_folder
from ingest.query.digest import installed_digest, shipped_digest
from ingest.version import VERSION

Level = Literal["ok", "note", "trouble"]

_SHOWN: Final = 5
_LEAST_FREE: Final = 256 << 20
"""Space that an import needs in any case, for what it stages."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Attributes:
        check: its name, one or two words.
        level: ok; note: worth knowing; trouble: something is wrong or will fail.
        text: what was found and, where it is trouble, what to do.
    """

    check: str
    level: Level
    text: str


def examine(database: str, *, full: bool = False) -> Iterator[Finding]:
    """Run every check, one finding each; those on rows are left out when the database cannot be opened.

    Args:
        full: also read every block of the file, which DuckDB proves by its checksum.
    """
    yield Finding("versions", "ok", f"xbuf {VERSION}, DuckDB {duckdb.__version__}, schema {HEAD}")
    yield _import_lock(database)
    try:
        connection = open_database(database, read_only=True)
    except DatabaseLocked as refusal:
        yield Finding("database", "trouble", f"{refusal}; its rows were not checked")
        yield from _surroundings(database)
        return
    except DatabaseError as error:
        yield Finding("database", "trouble", str(error))
        yield from _surroundings(database)
        return
    with connection:
        yield _schema(connection)
        yield _queries(connection)
        for check, text, query in ROW_CHECKS:
            yield _rows(connection, check, text, query)
        yield from _orphans(connection)
        if full:
            yield _blocks(connection)
    yield _storage(database)
    yield from _surroundings(database)
    yield _history(database)


ROW_CHECKS: Final = (
    (
        "sums",
        "runs whose allocations do not add up to total_bytes",
        """
        SELECT run_id FROM runs
        LEFT JOIN (SELECT run_id, sum(size_bytes) AS bytes FROM allocations GROUP BY run_id) USING (run_id)
        WHERE total_bytes IS NOT NULL AND coalesce(bytes, 0) <> total_bytes
        """,
    ),
    (
        "values",
        "runs with two values of one value_id",
        "SELECT run_id FROM values GROUP BY run_id, value_id HAVING count(*) > 1",
    ),
    (
        "allocations",
        "runs with two allocations of one number",
        "SELECT run_id FROM allocations GROUP BY run_id, allocation_index HAVING count(*) > 1",
    ),
    (
        "owners",
        "runs with values in allocations that they do not have",
        "SELECT run_id FROM values ANTI JOIN allocations USING (run_id, allocation_index)",
    ),
    (
        "identity",
        "runs with the directory, stem and content of another run",
        """
        SELECT max(run_id) AS run_id
        FROM runs LEFT JOIN (
            SELECT run_id, list(role || content_sha256 ORDER BY role) AS texts
            FROM run_files WHERE role IN ('values', 'live_range') GROUP BY run_id
        ) USING (run_id)
        GROUP BY dump_dir, stem, content_sha256, texts HAVING count(*) > 1
        """,
    ),
    (
        "peaks",
        "runs whose peak_bytes is not what their ranges give",
        """
        WITH events AS (
            SELECT r.run_id, unnest([
                {'time': start_time, 'bytes': gained_bytes},
                {'time': end_time + 1, 'bytes': handover_bytes - size_bytes}
            ], recursive := true)
            FROM ranges AS r JOIN values USING (run_id, value_id)
        ),
        changes AS (SELECT run_id, time, sum(bytes) AS bytes FROM events GROUP BY run_id, time),
        live AS (SELECT run_id, sum(bytes) OVER (PARTITION BY run_id ORDER BY time) AS bytes FROM changes),
        peaks AS (SELECT run_id, max(bytes) AS bytes FROM live GROUP BY run_id)
        SELECT run_id FROM runs FULL JOIN peaks USING (run_id) WHERE peak_bytes IS DISTINCT FROM bytes
        """,
    ),
    (
        "files",
        "runs without a primary file or protobuf",
        """
        SELECT run_id FROM runs
        ANTI JOIN (FROM run_files WHERE role IN ('primary', 'proto')) USING (run_id)
        """,
    ),
)
"""Checks of rows: name, what is wrong with the runs that the query finds, the query."""


def _rows(connection: duckdb.DuckDBPyConnection, check: str, text: str, query: str) -> Finding:
    try:
        found = _query(connection, f"SELECT DISTINCT run_id FROM ({query}) ORDER BY run_id LIMIT 1000")
    except duckdb.Error as error:
        return _unreadable(check, error)
    if not found:
        return Finding(check, "ok", f"no {text}")
    numbers = ", ".join(str(run_id) for (run_id,) in found[:_SHOWN])
    more = " …" if len(found) > _SHOWN else ""
    return Finding(
        check,
        "trouble",
        f"{len(found):,} {text}: {numbers}{more}; forget them and import their dumps again, or restore a"
        " backup",
    )


def _orphans(connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    """Look in every table for rows of runs and imports that are not there."""
    children = [(table, "runs", "run_id") for table in ("run_labels", *RUN_TABLES)]
    children += [(table, "imports", "import_id") for table in ("runs", "rejects")]
    whole = True
    for table, parent, key in children:
        try:
            (row,) = _query(connection, f'SELECT count(*) FROM "{table}" ANTI JOIN {parent} USING ({key})')
        except duckdb.Error as error:
            yield _unreadable("orphans", error)
            whole = False
            continue
        if row[0]:
            whole = False
            text = (
                f"{row[0]:,} rows of {table} belong to no row of {parent}; delete them: DELETE FROM {table}"
            )
            yield Finding("orphans", "trouble", f"{text} WHERE {key} NOT IN (SELECT {key} FROM {parent})")
    if whole:
        yield Finding("orphans", "ok", f"every row of {len(children)} tables belongs to a run or an import")


def _query(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query).fetchall()


def _blocks(connection: duckdb.DuckDBPyConnection) -> Finding:
    """Read all columns of all tables; a block with a wrong checksum ends the reading."""
    rows = 0
    for (table,) in _query(
        connection,
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT internal",
    ):
        try:
            (row,) = _query(connection, f'SELECT count(*), bit_xor(hash(t)) FROM "{table}" AS t')
        except duckdb.Error as error:
            return _unreadable("blocks", error)
        rows += row[0]
    return Finding("blocks", "ok", f"all {rows:,} rows can be read")


def _unreadable(check: str, error: duckdb.Error) -> Finding:
    """Return what keeps a check from its rows: a table that was dropped, a block that was damaged."""
    reason = str(error).strip().partition("\n")[0]
    return Finding(check, "trouble", f"cannot be checked: {reason}; restore a backup")


def _import_lock(database: str) -> Finding:
    holder = _holder(database)
    if holder is None:
        return Finding("imports", "ok", "no import is running")
    if not isinstance(holder, DatabaseLocked):
        return Finding("imports", "trouble", str(holder))
    return Finding("imports", "note", f"an import is running: process {holder.pid} ({holder.command})")


def _holder(database: str) -> DatabaseError | None:
    """Return who holds the import lock (`DatabaseLocked`), or why it cannot be looked at; None for nobody."""
    try:
        return lock_holder(database)
    except DatabaseError as error:
        return error


def _schema(connection: duckdb.DuckDBPyConnection) -> Finding:
    """Compare tables and columns with what this xbuf writes."""
    wanted = {
        (table.name, column.name, column.required or column.key)
        for table in TABLES.values()
        for column in table.columns
    }
    rows = _query(
        connection,
        "SELECT table_name, column_name, NOT is_nullable FROM duckdb_columns()"
        " WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal",
    )
    ours = {(table, column, required) for table, column, required in rows if table in TABLES}
    if ours == wanted:
        return Finding("schema", "ok", f"{len(TABLES)} tables, {len(wanted)} columns, as {HEAD}")
    names = sorted({f"{table}.{column}" for table, column, _ in ours ^ wanted})
    return Finding(
        "schema",
        "trouble",
        f"differs from {HEAD} in {', '.join(names[:_SHOWN])}: somebody altered these; move the runs to a new"
        " database: xbuf export, then xbuf import-export",
    )


def _queries(connection: duckdb.DuckDBPyConnection) -> Finding:
    if installed_digest(connection) == shipped_digest():
        return Finding("queries", "ok", "the installed queries are those of this xbuf")
    return Finding("queries", "note", "the installed queries are older; the next import refreshes them")


def _storage(database: str) -> Finding:
    found = status(database)
    return Finding("storage", "ok", f"{found.file_bytes:,} bytes, readable by DuckDB {found.storage_version}")


def _surroundings(database: str) -> Iterator[Finding]:
    """Look at the files next to the database."""
    place = os.path.realpath(database)
    yield _wal(database, place)
    yield _staging(database)
    yield _spill(place)
    yield from _space(place)


def _wal(database: str, place: str) -> Finding:
    try:
        size = os.stat(f"{place}.wal").st_size
    except OSError:
        return Finding("log", "ok", "no write-ahead log is left over")
    try:
        # A shell that is open for writing has one; it says so itself.
        open_database(database, read_only=True).close()
    except DatabaseLocked:
        return Finding("log", "note", f"{place}.wal: {size:,} bytes, of the process that has it open")
    except DatabaseError as error:
        return Finding("log", "trouble", str(error))
    return Finding(
        "log",
        "note",
        f"{place}.wal: {size:,} bytes that a killed process left; nothing is lost, and the next write takes"
        " them into the database: keep both files together until then",
    )


def _staging(database: str) -> Finding:
    """Look for work that waits, and for what a kill left."""
    journals = read_journals(database)
    folder = staging_folder(database)
    if os.access(folder, os.R_OK | os.X_OK):  # to others than the importer's user it is closed
        try:
            require_private_folder(folder)
        except DatabaseError as error:
            return Finding("staging", "trouble", str(error))
    scrap = [path.name for path in folder.glob("copy-*")] + [path.name for path in folder.glob("removed-*")]
    new = [path.name for path in Path(os.path.realpath(database)).parent.glob(f"{UNBORN}*")]
    running = isinstance(_holder(database), DatabaseLocked)
    waiting = sum(count_staged(journal.parts) for journal in journals)
    if running:
        return Finding("staging", "ok", f"{folder} is in use")
    if waiting:
        return Finding(
            "staging",
            "trouble",
            f"{waiting:,} dumps are read and not loaded, by {len(journals)} imports that were cut off or"
            " locked out; the next import loads them",
        )
    if scrap or new:
        names = ", ".join((scrap + new)[:_SHOWN])
        return Finding("staging", "note", f"a killed import left {names}; an import tidies up within an hour")
    if without := len(journals) + len(read_folded(database)):
        return Finding(
            "staging", "ok", f"{without} imports without news wait for the next load to be recorded"
        )
    return Finding("staging", "ok", "nothing waits to be loaded")


def _spill(place: str) -> Finding:
    """Remove what killed processes could not keep in memory, and name what DuckDB shells left."""
    removed = remove_left_over()
    shared = f"{place}.tmp"
    if os.path.isdir(shared):
        return Finding(
            "spill",
            "note",
            f"{shared}: files of DuckDB shells, which share it; remove it when none is open",
        )
    if removed:
        size = sum(one.file_bytes for one in removed)
        killed = "a killed process" if len(removed) == 1 else f"{len(removed)} killed processes"
        return Finding("spill", "note", f"removed {size:,} bytes that {killed} left")
    return Finding("spill", "ok", "no killed query left files")


def _space(place: str) -> Iterator[Finding]:
    try:
        free = shutil.disk_usage(os.path.dirname(place)).free
        size = os.stat(place).st_size if os.path.exists(place) else 0
    except OSError as error:
        yield Finding("space", "trouble", f"{os.path.dirname(place)}: cannot be looked at: {error.strerror}")
        return
    needed = size + _LEAST_FREE
    if free < needed:
        yield Finding(
            "space",
            "trouble",
            f"{free:,} bytes are free; an import while others read needs up to {needed:,}: a copy of the"
            " database and what it reads",
        )
    else:
        yield Finding("space", "ok", f"{free:,} bytes are free, of which an import needs up to {needed:,}")


def _history(database: str) -> Finding:
    """Report when an import last went well; it is trouble when the last one did not."""
    try:
        entries = [entry for entry in read_history(database) if entry.status != "running"]
    except DatabaseError as error:
        return Finding("history", "trouble", str(error))
    if not entries:
        return Finding("history", "note", "no import yet")
    good = next((entry for entry in entries if entry.went_well), None)
    when = f"the last good import started {good.started_at:%Y-%m-%d %H:%M} UTC" if good else "none went well"
    last = entries[0]
    if last.went_well:
        return Finding("history", "ok", when)
    return Finding(
        "history",
        "trouble",
        f"the last import ({last.started_at:%Y-%m-%d %H:%M} UTC) was {last.status}; {when}: run it again",
    )
