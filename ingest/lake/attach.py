"""A small database file of views of a lake, for any DuckDB shell: tables, building blocks and saved queries.

It is of one moment: its views name the files of the lake as it was. What is committed later is not seen until
the file is made again, and after a vacuum that is to be done.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import duckdb

from ingest.database.connect import check_path
from ingest.database.ddl import commented, created
from ingest.database.file import NEW_FILE, UNBORN, sync
from ingest.database.refusals import explain
from ingest.database.revision import ATTACHED
from ingest.database.schema import Column, Table
from ingest.database.tables import TABLES
from ingest.errors import NotADatabase
from ingest.lake.layout import LAKE_TABLES
from ingest.lake.opened import DISABLED, look_up
from ingest.lake.snapshot import Snapshot
from ingest.lake.store import Lake
from ingest.lake.views import place_of, view_of
from ingest.query.install import install_in_new
from ingest.sql import literal, one_number
from ingest.version import VERSION

FASTER: Final = f"SET disabled_optimizers = {literal(DISABLED)};"
"""For whoever opens the file. DuckDB keeps settings with the process, not in a file: no view can bring it."""

_NOTE: Final = Table(
    ATTACHED,
    "Which lake the views of this file are of; xbuf lake attach makes them anew.",
    "import",
    (
        Column("lake", "VARCHAR", "Folder or URL of the lake.", required=True),
        Column("attached_at", "TIMESTAMP", "Moment that the views show, UTC.", required=True),
        Column("runs", "BIGINT", "Runs of the lake at that moment, count.", required=True),
        Column("files", "BIGINT", "Files that the views read, count.", required=True),
        Column("tool_version", "VARCHAR", "Version of xbuf that made the views.", required=True),
    ),
)


@dataclass(frozen=True, slots=True)
class Attached:
    """A file of views.

    Attributes:
        path: of the file, as given.
        runs: of the lake.
        files: that the views read.
        is_new: there was no such file before.
    """

    path: str
    runs: int
    files: int
    is_new: bool


def attach_lake(lake: Lake, path: str, *, relative: bool = False) -> Attached:
    """Make a database file of views of a lake as it is now, in the place of one made earlier.

    Whoever has the earlier one open keeps it.

    Args:
        path: the file.
        relative: name the files of a lake in a folder by paths relative to the folder of `path`, where a
            shell must run then.

    Raises:
        NotADatabase: there is another file in its place, or no lake.
        DatabaseError: the lake cannot be read, or the file not be written.
    """
    check_path(path)
    place = os.path.realpath(path)
    is_new = not os.path.lexists(place)
    if not is_new:
        _check_replaceable(path, place)
    snapshot = look_up(lake)
    folder = os.path.dirname(place)
    root = os.path.relpath(lake.root, folder) if relative and lake.is_local else lake.root
    try:
        with tempfile.TemporaryDirectory(prefix=UNBORN, dir=folder) as scratch:
            new = os.path.join(scratch, os.path.basename(place))
            with duckdb.connect(new, config=NEW_FILE) as connection:
                runs = _fill(connection, snapshot, root, folder)
            sync(new)
            os.replace(new, place)
        sync(folder)
    except (duckdb.Error, OSError) as error:
        raise explain(path, error) from error
    return Attached(path, runs, snapshot.count, is_new)


def _fill(connection: duckdb.DuckDBPyConnection, snapshot: Snapshot, root: str, folder: str) -> int:
    """Make tables, queries and views in an empty database; return the runs."""
    lake = snapshot.lake
    if lake.is_local:
        connection.execute(f"SET file_search_path = {literal(folder)}")
    else:
        from ingest.lake.filesystem import StoredFiles  # 0.1 s, with fsspec

        # In a shell, DuckDB's extension for the store takes the place of this.
        connection.register_filesystem(StoredFiles(snapshot, lake.root))
    # A macro is bound as it is made: to tables without rows, which opens no file.
    connection.execute(f"BEGIN; {''.join(map(created, TABLES.values()))}")
    install_in_new(connection)
    statements = [f'DROP TABLE "{name}"' for name in LAKE_TABLES]
    for name in LAKE_TABLES:
        table, files = TABLES[name], snapshot.tables[name]
        places = ", ".join(literal(place_of(root, name, file.name)) for file in files.files)
        statements += [
            view_of(name, files, f"[{places}]") if files.files else created(table),
            *commented(table, "VIEW" if files.files else "TABLE"),
        ]
    statements += [*commented(TABLES["saved_queries"]), created(_NOTE), *commented(_NOTE)]
    connection.execute(";".join(statements))
    runs = one_number(connection, "SELECT count(*) FROM runs")
    now = datetime.now(UTC).replace(tzinfo=None).isoformat(" ")
    facts = ", ".join(literal(fact) for fact in (lake.root, now, runs, snapshot.count, VERSION))
    connection.execute(f"INSERT INTO {ATTACHED} VALUES ({facts}); COMMIT; CHECKPOINT")
    return runs


def _check_replaceable(path: str, place: str) -> None:
    """Refuse to put views in the place of anything but views."""
    try:
        with duckdb.connect(place, read_only=True) as connection:
            found = connection.execute(
                "SELECT 1 FROM duckdb_tables() WHERE table_name = $1 AND NOT internal", [ATTACHED]
            ).fetchone()
    except duckdb.Error as error:
        raise explain(path, error) from error
    if found is None:
        raise NotADatabase(
            f"{path}: is no file of views of a lake; it is left untouched: name another with -o"
        )
