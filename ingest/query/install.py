"""Put the saved queries and their building blocks into a database, for any DuckDB shell.

A query NAME becomes two table macros. `xbuf_query.NAME` holds the statement; its parameters keep their
dollar sign (`"$top"`), so that they never capture a column of the same name, as macro parameters
otherwise do. `NAME(top := 20, ...)` in the main schema has the plain names and defaults, and calls it.

What belongs to us is told by its comment. A macro or view without our comment is the user's and stays as
it is, also where it has the name of a query.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ingest.query.blocks import read_blocks
from ingest.query.catalog import shipped
from ingest.query.header import TOKEN, Parameter, SavedQuery, literal
from ingest.query.run import convert
from ingest.resources import queries_dir

if TYPE_CHECKING:
    import duckdb

__all__ = ["Installation", "call", "install_queries", "installed_digest", "shipped_digest"]

_SCHEMA = "xbuf_query"
_MARKER = "xbuf: "


@dataclass(frozen=True, slots=True)
class Installation:
    """What `install_queries` did.

    Attributes:
        installed: the queries were installed; False where the database already had these.
        queries: number of queries in the database.
        skipped: names that the user has taken for macros or views of their own.
    """

    installed: bool
    queries: int
    skipped: tuple[str, ...]


def shipped_digest(version: str) -> str:
    """Return the SHA-256 of everything that an installation is made of."""
    digest = hashlib.sha256(version.encode())
    folder = queries_dir()
    for path in sorted(folder.rglob("*.sql")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def installed_digest(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return the digest of the installation in a database; None without one."""
    row = connection.execute(
        "SELECT min(sha256) FROM saved_queries HAVING count(DISTINCT sha256) = 1"
    ).fetchone()
    return str(row[0]) if row and row[0] is not None else None


def install_queries(connection: duckdb.DuckDBPyConnection, version: str) -> Installation:
    """Install the shipped queries, in one transaction, if the database has not got exactly these.

    Where nothing changed this costs the reading of the files, about 2 ms. The connection must have no
    open transaction.

    Args:
        connection: a database at head, open for writing.
        version: version of xbuf, for the table `saved_queries`.
    """
    digest = shipped_digest(version)
    if installed_digest(connection) == digest:
        row = connection.execute("SELECT count(*) FROM saved_queries").fetchone()
        return Installation(False, int(row[0]) if row else 0, ())
    queries = shipped().load_all()
    connection.begin()
    try:
        skipped = _install(connection, queries, version, digest)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return Installation(True, len(queries) - sum(query.name in skipped for query in queries), tuple(skipped))


def call(query: SavedQuery, arguments: Sequence[str] = ()) -> str:
    """Write a call of the query's macro from command-line arguments such as `--top 5`."""
    options = {f"--{parameter.name.replace('_', '-')}": parameter for parameter in query.parameters}
    given = [
        f"{options[option].name} := {literal(convert(options[option], text))}"
        for option, text in zip(arguments[::2], arguments[1::2], strict=True)
    ]
    return f"FROM {query.name}({', '.join(given)});"


def _install(
    connection: duckdb.DuckDBPyConnection, queries: tuple[SavedQuery, ...], version: str, digest: str
) -> list[str]:
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
    _drop_ours(connection)
    taken = _names(connection)
    skipped: list[str] = []
    for block in read_blocks():
        if block.name in taken:
            skipped.append(block.name)
            continue
        _run(connection, [block.create(replace=False), *block.comments(_MARKER)])
    connection.execute("DELETE FROM saved_queries")
    for query in queries:
        if query.name in taken:
            skipped.append(query.name)
            continue
        _run(connection, _macros(query))
        connection.execute(
            "INSERT INTO saved_queries VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                query.name,
                query.title,
                query.question,
                _signature(query.parameters),
                _example(query),
                version,
                digest,
            ],
        )
    return skipped


def _macros(query: SavedQuery) -> Iterable[str]:
    """Write the statements that install one query."""
    body = TOKEN.sub(lambda match: f'"${match["name"]}"' if match["name"] else match[0], query.sql)
    inner = ", ".join(f'"${parameter.name}"' for parameter in query.parameters)
    outer = ", ".join(f'"{p.name}" := {p.default_sql}::{p.type}' for p in query.parameters)
    passed = ", ".join(f'"${parameter.name}" := "{parameter.name}"' for parameter in query.parameters)
    comment = literal(f"{_MARKER}{query.title}. {query.question}")
    return (
        f"CREATE MACRO {_SCHEMA}.{query.name}({inner}) AS TABLE {body}",
        f"CREATE MACRO {query.name}({outer}) AS TABLE FROM {_SCHEMA}.{query.name}({passed})",
        f"COMMENT ON MACRO TABLE {query.name} IS {comment}",
    )


def _signature(parameters: tuple[Parameter, ...]) -> str:
    return ", ".join(f"{p.name} {p.type} := {p.default_sql}" for p in parameters)


def _example(query: SavedQuery) -> str:
    import shlex

    return call(query, shlex.split(query.example))


def _drop_ours(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop what an earlier installation made and the user has not replaced since."""
    ours = connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE database_name = current_database() "
        "AND schema_name = 'main' AND function_type = 'table_macro' AND starts_with(comment, ?)",
        [_MARKER],
    ).fetchall()
    views = connection.execute(
        "SELECT view_name FROM duckdb_views() WHERE database_name = current_database() "
        "AND schema_name = 'main' AND starts_with(comment, ?)",
        [_MARKER],
    ).fetchall()
    inner = connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE database_name = current_database() "
        "AND schema_name = ? AND function_type = 'table_macro'",
        [_SCHEMA],
    ).fetchall()
    _run(
        connection,
        [
            *(f'DROP MACRO TABLE main."{name}"' for (name,) in ours),
            *(f'DROP VIEW main."{name}"' for (name,) in views),
            *(f'DROP MACRO TABLE {_SCHEMA}."{name}"' for (name,) in inner),
        ],
    )


def _names(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Names of the macros, views and tables that a user made in the main schema."""
    rows = connection.execute(
        "SELECT function_name FROM duckdb_functions() WHERE database_name = current_database() "
        "AND schema_name = 'main' AND NOT internal "
        "UNION SELECT view_name FROM duckdb_views() WHERE database_name = current_database() "
        "AND schema_name = 'main' AND NOT internal "
        "UNION SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name = 'main'"
    ).fetchall()
    return {str(name) for (name,) in rows}


def _run(connection: duckdb.DuckDBPyConnection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)
