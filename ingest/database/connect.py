"""Opening a database, bringing its schema up to date, and saying in words why it cannot be used.

Everything opens databases through `open_database`. At head that costs DuckDB alone; SQLAlchemy and Alembic
are imported only to create or upgrade.

DuckDB locks the file with POSIX locks, which the kernel drops as soon as the process closes *any*
descriptor of the file. So nothing in a process that holds a database may open, read or copy the file by
other means, not even to look at its first bytes: another process could then open it for writing too.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import duckdb

from ingest.database import revision
from ingest.database.creation import make_database
from ingest.database.file import Config
from ingest.database.refusals import explain
from ingest.database.revision import Schema, State, inspect, unready
from ingest.database.spill import spilling
from ingest.errors import DatabaseError, DatabaseLocked, NotADatabase
from ingest.source.kinds import is_lake, without_secrets
from ingest.sql import one_number, quoted

_SEALED: Final[Config] = {
    "enable_external_access": False,
    "lock_configuration": True,
}
"""What keeps the views and macros of a file that somebody else made from all other files."""

_RETRY_SECONDS = 0.1
_BIRTH_SECONDS = 1.0
"""A new database has two names for some microseconds, see `_put`; a busy machine takes longer."""

_T = TypeVar("_T")
_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table and how many rows it holds."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """What a database file is.

    Attributes:
        path: the file, as given.
        file_bytes: its size on disk, bytes, without the WAL.
        revision: revision of its schema; None before the first migration.
        head: revision that this xbuf needs.
        state: current, older (an import or `xbuf db upgrade` brings it to head), newer (needs a newer xbuf),
            or empty (no schema yet).
        storage_version: oldest DuckDB that can read the file, e.g. v1.4.0+.
        tables: every table but Alembic's own, by name.
    """

    path: str
    file_bytes: int
    revision: str | None
    head: str
    state: State
    storage_version: str
    tables: tuple[TableRows, ...]

    @property
    def readable(self) -> bool:
        """Whether this xbuf can query the database as it is."""
        return self.state == "current"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What `upgrade` did: the schema's revision before (None for no schema) and after."""

    path: str
    before: str | None
    after: str


def check_path(path: _Path) -> None:
    """Make sure that DuckDB can keep a database at this path.

    Raises:
        DatabaseError: it cannot.
    """
    if is_lake(os.fspath(path)):
        raise DatabaseError(
            f"{without_secrets(os.fspath(path))}: is a lake, where a database file is needed; see xbuf lake"
            " --help"
        )
    try:
        place = os.path.realpath(path)
        place.encode()
    except ValueError as error:
        raise explain(os.fspath(path), error) from error
    if "?" in place:
        # DuckDB 1.5 takes what follows for the query of a URL: the log of a?b.duckdb is a.wal?b.duckdb.
        raise DatabaseError(
            f"{os.fspath(path)}: DuckDB keeps no log next to a path with a question mark; rename it, or name"
            " another"
        )


def check_links(path: _Path) -> None:
    """Make sure that a database has one name only.

    DuckDB's log lies next to the name that the file was opened by. Opened by another, the file lacks what the
    log holds, and is changed without it; a file that is replaced keeps its old content under the other name.

    Raises:
        DatabaseError: it has several, for longer than a new database has.
    """
    deadline = time.monotonic() + _BIRTH_SECONDS
    try:
        while (links := os.stat(path).st_nlink) > 1:
            if time.monotonic() > deadline:
                raise DatabaseError(
                    f"{os.fspath(path)}: the file has {links} names (hard links), so that changes to it could"
                    " be lost; nothing was changed: make the others copies (cp), then run again"
                )
            time.sleep(_RETRY_SECONDS / 10)
    except OSError as error:
        raise explain(os.fspath(path), error) from error


def open_database(
    path: _Path,
    *,
    read_only: bool = False,
    unsafe: bool = False,
    wait_seconds: float = 0.0,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> duckdb.DuckDBPyConnection:
    """Open a database at head; unless `read_only`, create it or bring it to head first.

    A file with other people's tables is refused rather than shared: a mistyped path must not fill it.

    Args:
        path: the database file; always a file, never a URL or `:memory:`.
        read_only: open among other readers, change nothing. The connection cannot reach other files, and its
            settings are locked: the file may come from anybody.
        unsafe: with `read_only`, leave other files within reach and settings open. In one process the
            connections to one database are all `unsafe`, or none.
        wait_seconds: how long to try again while another process holds the file.
        memory_limit: DuckDB's limit for this process, e.g. "400MB"; its default is 80 % of the memory.
        threads: DuckDB's threads for this process; its default is one a core.

    Raises:
        DatabaseLocked: another process held it longer than `wait_seconds`.
        DatabaseTooNew: a newer xbuf or DuckDB wrote it.
        NotADatabase: the file is something else, or damaged; it is left as it is.
        DatabaseError: it is missing or older (`read_only`), has several names (unless `read_only`), or the
            file system refuses.
    """
    shown, deadline = os.fspath(path), time.monotonic() + wait_seconds
    settings: Config = dict(_SEALED) if read_only and not unsafe else {}
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    if threads is not None:
        settings["threads"] = threads
    connection, schema = _open(shown, read_only, deadline, settings)
    if schema.state != "current":
        connection.close()
        if read_only:
            raise unready(shown, schema)
        _bring_to_head(shown, schema, deadline)
        connection, schema = _open(shown, read_only, deadline, settings)
        if schema.state != "current":
            connection.close()
            raise unready(shown, schema)
    return connection


def create(path: _Path, *, with_queries: bool = False) -> None:
    """Make a new database at head, or do nothing where there is a file.

    Args:
        path: where it is to be.
        with_queries: it gets the saved queries at once.

    Raises:
        NotADatabase: there is something else.
        DatabaseError: the file system refuses, or a WAL without its database is there.
    """
    shown = os.fspath(path)
    if not _exists(shown):
        make_database(shown, with_queries=with_queries)


def upgrade(path: _Path, *, wait_seconds: float = 0.0) -> Upgrade:
    """Bring an existing database to head; nothing is written when it is there already.

    Raises what `open_database` raises; a missing file is an error here.
    """
    shown, deadline = os.fspath(path), time.monotonic() + wait_seconds
    if not _exists(shown):
        raise _missing(shown)
    connection, schema = _open(shown, False, deadline, {})
    connection.close()
    if schema.state != "current":
        _bring_to_head(shown, schema, deadline)
    return Upgrade(shown, schema.revision, revision.HEAD)


def status(path: _Path, *, wait_seconds: float = 0.0) -> DatabaseStatus:
    """Return what a database file is; older and newer schemas are described, not refused.

    Raises what `open_database(read_only=True)` raises for files that cannot be opened at all.
    """
    shown = os.fspath(path)
    connection, schema = _open(shown, True, time.monotonic() + wait_seconds, _SEALED)
    with connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
                " AND schema_name = 'main' AND NOT internal AND table_name <> 'alembic_version' ORDER BY ALL"
            ).fetchall()
        ]
        tables = tuple(
            TableRows(name, one_number(connection, f"SELECT count(*) FROM {quoted(name)}")) for name in names
        )
        tag = connection.execute(
            "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = current_database()"
        ).fetchone()
    return DatabaseStatus(
        path=shown,
        file_bytes=os.stat(shown).st_size,
        revision=schema.revision,
        head=revision.HEAD,
        state=schema.state,
        storage_version=str(tag[0]) if tag else "",
        tables=tables,
    )


def _open(
    path: str, read_only: bool, deadline: float, settings: Config
) -> tuple[duckdb.DuckDBPyConnection, Schema]:
    """Connect and look at the schema; a missing file is created unless `read_only`."""
    check_path(path)
    if not _exists(path):
        if read_only:
            raise _missing(path)
        create(path)
    if not read_only:
        check_links(path)
    # Made absolute, a path such as sqlite:x or s3://x is a file name like any other.
    target = os.path.abspath(path)
    config = {**settings, **spilling(path)}
    connection = _attempt(path, deadline, lambda: duckdb.connect(target, read_only=read_only, config=config))
    try:
        # In a notebook DuckDB prints a bar to stdout for what takes longer than two seconds. The pragma also
        # works where settings are locked.
        connection.execute("PRAGMA disable_progress_bar")
        return connection, inspect(connection, path)
    except BaseException:
        connection.close()
        raise


def _attempt(path: str, deadline: float, action: Callable[[], _T]) -> _T:
    """Run an action that opens the file, again and again while another process holds it."""
    while True:
        try:
            return action()
        except (duckdb.Error, OSError, UnicodeError) as error:
            refusal = explain(path, error)
            left = deadline - time.monotonic()
            if not isinstance(refusal, DatabaseLocked) or left <= 0:
                raise refusal from error
            time.sleep(min(_RETRY_SECONDS, left))


def _exists(path: str) -> bool:
    """Return whether the file is there; raises NotADatabase for a directory, FIFO or device."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise explain(path, error) from error
    if not stat.S_ISREG(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise NotADatabase(f"{path}: is {kind}; name a database file with --db")
    return True


def _bring_to_head(path: str, schema: Schema, deadline: float) -> None:
    if schema.state == "newer":
        raise unready(path, schema)
    from ingest.database.migrate import apply_migrations  # 340 ms, with Alembic

    _attempt(path, deadline, lambda: apply_migrations(os.path.abspath(path)))


def _missing(path: str) -> DatabaseError:
    return DatabaseError(f"{path}: no such database; load dumps into it first: xbuf-ingest DIR --db {path}")
