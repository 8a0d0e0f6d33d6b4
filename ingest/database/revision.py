"""The schema that a file holds: whose it is, and of which revision."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import duckdb

from ingest.database.refusals import explain
from ingest.database.tables import TABLES
from ingest.errors import DatabaseError, DatabaseTooNew, NotADatabase
from ingest.resources import migrations_dir

HEAD: Final = "0001_tables"
"""The schema revision that this version of xbuf reads and writes."""

ATTACHED: Final = "attached_lake"
"""Table that says of which lake a file of views is, which `ingest.lake.attach` makes for other shells."""

State = Literal["current", "older", "newer", "empty"]


class Schema(NamedTuple):
    state: State
    revision: str | None


def inspect(connection: duckdb.DuckDBPyConnection, path: str) -> Schema:
    """Return whose schema the file holds; raises NotADatabase when it is not ours."""
    # By their full names: a macro of the file could have the name of any function.
    ours = "database_name = system.main.current_database() AND NOT internal"
    try:
        kinds = connection.execute(
            "SELECT type FROM system.main.duckdb_databases()"
            " WHERE database_name = system.main.current_database()"
        ).fetchall()
        views = _names(
            connection,
            f"SELECT view_name FROM system.main.duckdb_views() WHERE {ours} AND schema_name = 'main'",
        )
        every_table = f"SELECT table_name FROM system.main.duckdb_tables() WHERE {ours}"
        if disguised := views & {"alembic_version", *TABLES}:
            if ATTACHED in _names(connection, every_table):
                raise NotADatabase(
                    f"{path}: is made of views of a lake, for DuckDB's shell;"
                    " ask the lake itself: --db lake:URL"
                )
            raise NotADatabase(
                f"{path}: {', '.join(sorted(disguised))}: a view in the place of a table; xbuf did not make"
                " this file, and runs nothing in it: name another with --db"
            )
        try:
            found = connection.execute("SELECT version_num FROM main.alembic_version").fetchall()
        except duckdb.CatalogException:
            found = []
        if found and str(found[-1][0]) == HEAD and kinds == [("duckdb",)]:
            return Schema("current", HEAD)
        # Only now: to list tables DuckDB reads what it keeps of each, a tenth of what opening the file takes.
        names = views | _names(connection, every_table)
    except duckdb.Error as error:
        raise explain(path, error) from error
    if kinds != [("duckdb",)]:
        raise NotADatabase(f"{path}: is no DuckDB database; it is left untouched: name another with --db")
    if not found:
        if names <= {"alembic_version"}:
            return Schema("empty", None)
        raise _foreign(path)
    revision = str(found[-1][0])
    if revision in revisions():
        return Schema("older", revision)
    if {"imports", "runs"} <= names:
        return Schema("newer", revision)
    raise _foreign(path)


def _names(connection: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """Return names in small letters: DuckDB finds a view `RUNS` as `runs`."""
    return {str(name).lower() for (name,) in connection.execute(query).fetchall()}


def revisions() -> tuple[str, ...]:
    """Return the revisions that the migrations define, oldest first, without importing Alembic.

    The file of a revision is named after it, and the number it begins with gives the order.
    """
    return tuple(sorted(file.stem for file in (migrations_dir() / "versions").glob("[0-9]*.py")))


def unready(path: str, schema: Schema) -> DatabaseError:
    if schema.state == "newer":
        return DatabaseTooNew(
            f"{path}: its schema {schema.revision} is newer than this xbuf, which knows {HEAD}; upgrade xbuf"
        )
    if schema.state == "empty":
        return DatabaseError(f"{path}: holds no xbuf tables yet; load dumps: xbuf-ingest DIR --db {path}")
    return DatabaseError(
        f"{path}: its schema is {schema.revision}, this xbuf needs {HEAD}; bring it up to date:"
        f" xbuf db upgrade --db {path}"
    )


def _foreign(path: str) -> NotADatabase:
    return NotADatabase(
        f"{path}: holds tables of something else; it is left untouched: name another database with --db"
    )
