"""Compact a database: write it anew without the holes that deleted runs left."""

from __future__ import annotations

import os
from dataclasses import dataclass

import duckdb

from ingest.database.connect import open_database
from ingest.database.file import BLOCK_BYTES, STORAGE_VERSION
from ingest.database.import_lock import OnWait
from ingest.database.refusals import explain
from ingest.database.spill import spilling
from ingest.database.writer import read_locked, replace_database
from ingest.errors import DatabaseError
from ingest.maintenance.exclusive import exclusive
from ingest.sql import literal


@dataclass(frozen=True, slots=True)
class Compaction:
    """Size of the file before and after, bytes."""

    path: str
    before: int
    after: int


def compact_database(
    database: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None
) -> Compaction:
    """Write the database anew and put the new file in its place; readers keep the old one.

    Everything goes along: also tables, views and macros that are not ours. The new file takes the place only
    when every table has the same rows as before. It needs as much free space as the database is large.

    Raises:
        DatabaseLocked: a process has the database open for writing, or an import runs.
        DatabaseError: as `open_database`; also when there is no space, or the copy is not equal.
    """
    with exclusive(database, wait_seconds=wait_seconds, on_wait=on_wait) as staging:
        # Whose schema it is, and that it is at head, is checked before anything is copied.
        open_database(database, read_only=True, wait_seconds=wait_seconds).close()
        with (
            read_locked(database, wait_seconds=wait_seconds, on_wait=on_wait) as lock,
            replace_database(database, staging, lock) as new,
        ):
            before = os.stat(database).st_size
            try:
                _copy(os.path.realpath(database), new.file)
            except duckdb.Error as error:
                raise explain(database, error) from error
        return Compaction(database, before, os.stat(database).st_size)


def _copy(old: str, new: str) -> None:
    with duckdb.connect(config=spilling(new)) as connection:
        connection.execute("SET enable_progress_bar = false")  # as in open_database
        connection.execute(f"ATTACH {literal(old)} AS old (READ_ONLY)")
        options = f"STORAGE_VERSION '{STORAGE_VERSION}', BLOCK_SIZE {BLOCK_BYTES}"
        connection.execute(f"ATTACH {literal(new)} AS new ({options})")
        # Row groups that one thread fills are full.
        connection.execute("SET threads = 1")
        try:
            connection.execute("COPY FROM DATABASE old TO new")
        except duckdb.ConstraintException as error:
            names = connection.execute(
                "SELECT string_agg(DISTINCT table_name, ', ') FROM duckdb_constraints()"
                " WHERE database_name = 'old' AND constraint_type = 'FOREIGN KEY'"
            ).fetchall()
            raise DatabaseError(
                f"{old}: DuckDB cannot copy tables with foreign keys ({names[0][0]}); nothing was changed:"
                " create them without, or in a file of their own, then compact again"
            ) from error
        connection.execute("CHECKPOINT new")
        if _contents(connection, "old") != _contents(connection, "new"):
            raise DatabaseError(f"{old}: the compacted copy does not equal it; the database stays as it is")
        connection.execute("DETACH new")


def _contents(connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[object, ...]]:
    """Return what a database holds: a checksum of each table's rows, and the definitions of all else."""
    tables = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = $1 ORDER BY ALL", [name]
    ).fetchall()
    found: list[tuple[object, ...]] = []
    for schema, table in tables:
        place = ".".join(f'"{part.replace(chr(34), chr(34) * 2)}"' for part in (name, schema, table))
        row = connection.execute(f"SELECT count(*), bit_xor(hash(t)) FROM {place} AS t").fetchone()
        found.append((schema, table, row))
    found += connection.execute(
        "SELECT 'view', schema_name, view_name, comment FROM duckdb_views()"
        " WHERE database_name = $1 AND NOT internal"
        " UNION ALL SELECT 'macro', schema_name, function_name, comment FROM duckdb_functions()"
        " WHERE database_name = $1 AND NOT internal"
        " UNION ALL SELECT 'column', table_name, column_name || ' ' || data_type, comment"
        " FROM duckdb_columns() WHERE database_name = $1 AND NOT internal ORDER BY ALL",
        [name],
    ).fetchall()
    return found
