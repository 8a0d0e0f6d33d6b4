"""The statements that make a new database, from `ingest.database.tables`.

Alembic would take a third of a second to import and run; a test compares with what its revisions make.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from ingest.database.schema import Column, Table
from ingest.database.tables import TABLES
from ingest.sql import literal, quoted

_VERSION: Final = Table(
    "alembic_version",
    "Schema revision of this database; xbuf db upgrade moves it.",
    "import",
    (Column("version_num", "VARCHAR", "Name of the revision, e.g. 0001_tables.", key=True),),
)
"""Alembic's own table, which Alembic makes without comments."""


def creation(revision: str) -> str:
    """Return the script that makes every table in an empty database and notes that it is at `revision`."""
    tables = (_VERSION, *TABLES.values())
    statements = [statement for table in tables for statement in (created(table), *commented(table))]
    return "".join([*statements, f"INSERT INTO alembic_version VALUES ({literal(revision)});\n"])


def version_comments() -> str:
    """Return the statements that comment Alembic's own table."""
    return "".join(commented(_VERSION))


def created(table: Table) -> str:
    """Return the statement that makes a table."""
    lines = [_definition(column) for column in table.columns]
    if keys := [quoted(column.name) for column in table.columns if column.key]:
        lines.append(f"PRIMARY KEY ({', '.join(keys)})")
    return f"CREATE TABLE {quoted(table.name)} ({', '.join(lines)});\n"


def _definition(column: Column) -> str:
    required = " NOT NULL" if column.required or column.key else ""
    compressed = " USING COMPRESSION zstd" if column.compressed else ""
    return f"{quoted(column.name)} {column.type}{compressed}{required}"


def commented(table: Table, kind: Literal["TABLE", "VIEW"] = "TABLE") -> Iterator[str]:
    """Yield the statements that comment a table, or the view in its place, and its columns."""
    name = quoted(table.name)
    yield f"COMMENT ON {kind} {name} IS {literal(table.comment)};\n"
    for column in table.columns:
        yield f"COMMENT ON COLUMN {name}.{quoted(column.name)} IS {literal(column.comment)};\n"
