"""Export a database as Parquet and take an export in again: for backups, moves and other engines.

    DIR/
        xbuf-export.json        what wrote it, the revision of its schema, rows of each table
        runs/data.parquet       one folder a table, with the columns of the table
        values/data.parquet …

The saved queries and the user's own tables, views and macros are not part of an export.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from ingest.database.connect import open_database
from ingest.database.file import sync
from ingest.database.identity import match_runs
from ingest.database.import_lock import OnWait
from ingest.database.revision import HEAD, revisions
from ingest.database.tables import RUN_TABLES
from ingest.errors import DatabaseError, UsageError
from ingest.lake.reading import open_to_read
from ingest.maintenance.exclusive import change_database
from ingest.maintenance.export_check import check_file, check_rows
from ingest.pipeline.load import delete_runs
from ingest.query.install import install_queries
from ingest.sql import one_number, transaction
from ingest.version import VERSION

_MANIFEST: Final = "xbuf-export.json"
_FILE: Final = "read_parquet($file, hive_partitioning = false)"
_BATCH_ROWS: Final = 100_000
"""Rows in memory at once, and in a row group of the file."""
_TABLES: Final = ("imports", "rejects", "runs", "run_labels", *RUN_TABLES)


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds: its directory, and the rows of each table."""

    directory: str
    rows: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """What an export brought into a database.

    Attributes:
        runs: runs taken in.
        known: runs that the database had already, and that stay as they are.
        imports: imports of the history taken in.
        rows: rows of all tables.
    """

    runs: int
    known: int
    imports: int
    rows: int


def export_database(database: str, directory: str, *, wait_seconds: float = 0.0) -> Exported:
    """Write every table of ours to a new directory, of one moment.

    The directory gets its name when it is complete. Readers and writers of the database are kept out only as
    by any reader.

    Raises:
        UsageError: the directory is there already and not empty.
        DatabaseError: as `open_to_read`; also when the directory cannot be written.
    """
    import pyarrow as pa  # 110 ms

    place = _absolute(directory)
    if os.path.lexists(place) and (not os.path.isdir(place) or os.listdir(place)):
        raise UsageError(f"{directory}: is there already; export to a new directory")
    with open_to_read(database, wait_seconds=wait_seconds) as connection:
        try:
            unnamed = tempfile.mkdtemp(prefix=f".{os.path.basename(place)}-", dir=os.path.dirname(place))
        except OSError as error:
            raise _cannot_write(place, error) from error
        try:
            rows = tuple((table, _write(connection, table, Path(unnamed, table))) for table in _TABLES)
            manifest = {"xbuf": VERSION, "revision": HEAD, "duckdb": duckdb.__version__, "rows": dict(rows)}
            text = json.dumps(manifest, indent=2) + "\n"
            Path(unnamed, _MANIFEST).write_text(text, encoding="utf-8")
            sync(unnamed)
            # Private until now; as the folders in it were made, so is it.
            os.chmod(unnamed, stat.S_IMODE(os.stat(os.path.join(unnamed, "runs")).st_mode))
            os.rename(unnamed, place)
            sync(os.path.dirname(place))
        except (OSError, duckdb.Error, pa.ArrowException) as error:
            raise _cannot_write(place, error) from error
        finally:
            shutil.rmtree(unnamed, ignore_errors=True)
    return Exported(place, rows)


def import_export(
    directory: str, database: str, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None
) -> Restored:
    """Take an export into a database, in one transaction; a missing database is made.

    A run that the database has already (see `ingest.database.identity`) stays as it is, unless the export
    has more of its files: then it is completed. The others get new numbers, unless the database is empty:
    then all keep theirs. So do imports, which are the same when moment and host are.

    Raises:
        UsageError: the directory is no export, of a newer xbuf, or its rows do not hold together; nothing is
            taken in.
        DatabaseError: as `change_database`.
    """
    directory = _absolute(directory)
    tables = _check(directory)
    if not os.path.exists(database):
        open_database(database, wait_seconds=wait_seconds).close()
    with change_database(database, wait_seconds=wait_seconds, on_wait=on_wait) as writer:
        connection = writer.connection
        with transaction(connection):
            restored = _restore(connection, {table: glob.escape(_file(directory, table)) for table in tables})
        install_queries(connection)
    return restored


def _absolute(directory: str) -> str:
    place = os.path.abspath(directory)
    try:
        place.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{directory}: DuckDB reads and writes only paths that are UTF-8") from error
    return place


def _write(connection: duckdb.DuckDBPyConnection, table: str, folder: Path) -> int:
    """Write a table as Parquet, and return its rows.

    Through Arrow: the connection itself cannot write files.
    """
    import pyarrow.parquet as pq  # 135 ms, with Arrow

    folder.mkdir()
    target = folder / "data.parquet"
    order = "ORDER BY ALL" if table in ("imports", "rejects", "runs") else ""
    reader = connection.execute(f'FROM "{table}" {order}').to_arrow_reader(_BATCH_ROWS)
    rows = 0
    with pq.ParquetWriter(target, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    sync(str(target))
    return rows


def _cannot_write(place: str, error: Exception) -> DatabaseError:
    reason = error.strerror if isinstance(error, OSError) else str(error).partition("\n")[0]
    return DatabaseError(f"{place}: the export cannot be written ({reason}); nothing is left of it")


def _check(directory: str) -> tuple[str, ...]:
    """Return the tables of an export, once it is sure that it is whole, sound and not from a newer xbuf."""
    manifest_file = os.path.join(directory, _MANIFEST)
    if os.path.lexists(manifest_file):
        check_file(manifest_file)
    try:
        manifest = json.loads(Path(manifest_file).read_text(encoding="utf-8"))
        revision, rows = manifest["revision"], dict(manifest["rows"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{directory}: is no export of xbuf: {_MANIFEST}: {reason}") from error
    if revision not in revisions() or not set(rows) <= set(_TABLES):
        raise UsageError(f"{directory}: its schema {revision} is newer than this xbuf, which knows {HEAD}")
    if not {"imports", "runs", "run_files"} <= set(rows):
        raise UsageError(f"{directory}: {_MANIFEST} does not name all tables of an export")
    for table, count in rows.items():
        check_file(_file(directory, table))
        found = _rows(_file(directory, table))
        if found != count:
            raise UsageError(f"{directory}: {table} has {found} rows where the export had {count}")
    tables = tuple(table for table in _TABLES if table in rows)
    check_rows(directory, {table: _file(directory, table) for table in tables})
    return tables


def _file(directory: str, table: str) -> str:
    return os.path.join(directory, table, "data.parquet")


def _rows(file: str) -> int:
    import pyarrow as pa  # 110 ms
    import pyarrow.parquet as pq  # 135 ms, with Arrow

    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error


def _restore(connection: duckdb.DuckDBPyConnection, files: dict[str, str]) -> Restored:
    """Map the numbers of the export to those of the database, then insert every table with them.

    `files` are patterns, as `read_parquet` takes them.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE matched_imports AS SELECT e.import_id AS old, max(d.import_id) AS new"
        f" FROM {_FILE} AS e LEFT JOIN imports AS d"
        " USING (import_uuid) GROUP BY e.import_id",
        {"file": files["imports"]},
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE given_runs AS SELECT run_id AS number, dump_dir, stem FROM {_FILE}",
        {"file": files["runs"]},
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE given_files AS SELECT run_id AS number, role, content_sha256"
        f" FROM {_FILE}",
        {"file": files["run_files"]},
    )
    match_runs(connection)
    _map(connection, "import_map", "import_id", "imports", "FROM matched_imports")
    _map(connection, "run_map", "run_id", "runs", "SELECT number AS old, run_id AS new FROM matched_runs")
    connection.execute(
        "UPDATE run_map SET is_new = true FROM matched_runs AS m WHERE m.number = old AND NOT m.is_held"
    )
    delete_runs(connection, "SELECT new FROM run_map JOIN runs ON runs.run_id = new WHERE is_new")
    rows = sum(_insert(connection, table, file) for table, file in files.items())
    runs, known, imports = (
        one_number(connection, f"SELECT count(*) FROM {name} WHERE is_new = {is_new}")
        for name, is_new in (("run_map", True), ("run_map", False), ("import_map", True))
    )
    for name in ("run_map", "import_map", "matched_runs", "matched_imports"):
        connection.execute(f"DROP TABLE {name}")
    return Restored(runs, known, imports, rows)


def _map(connection: duckdb.DuckDBPyConnection, name: str, key: str, table: str, matched: str) -> None:
    """Make a table of the export's numbers (`old`), those in the database (`new`), and which are new.

    `matched` is a query of (old, new), with `new` NULL for what the database lacks.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE {name} AS
        WITH held AS ({matched})
        SELECT
            old,
            new IS NULL AS is_new,
            coalesce(
                new,
                CASE WHEN EXISTS (FROM "{table}")
                    THEN (SELECT max({key}) FROM "{table}")
                        + row_number() OVER (PARTITION BY new IS NULL ORDER BY old)
                    ELSE old END
            ) AS new
        FROM held
        """
    )


def _insert(connection: duckdb.DuckDBPyConnection, table: str, file: str) -> int:
    """Insert the rows of new runs and imports with their new numbers; columns that are gone are left out."""
    columns = {name for (name, *_) in connection.execute(f'DESCRIBE "{table}"').fetchall()}
    described = connection.execute(f"DESCRIBE FROM {_FILE}", {"file": file}).fetchall()
    kept = [name for (name, *_) in described if name in columns]
    numbers = {"run_id": "r.new", "import_id": "i.new"}
    selected = ", ".join(f'{numbers.get(name, f"""p."{name}" """)} AS "{name}"' for name in kept)
    joins, conditions = "", []
    if "run_id" in kept:
        joins += " JOIN run_map AS r ON r.old = p.run_id"
        conditions.append("r.is_new")
    if "import_id" in kept:
        joins += " JOIN import_map AS i ON i.old = p.import_id"
        if table != "runs":
            conditions.append("i.is_new")
    return one_number(
        connection,
        f'INSERT INTO "{table}" BY NAME SELECT {selected} FROM {_FILE} AS p{joins}'
        f" WHERE {' AND '.join(conditions)}",
        {"file": file},
    )
