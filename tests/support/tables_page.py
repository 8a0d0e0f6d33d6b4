"""Write `docs/tables.md`: every table and column with its type and meaning."""

from __future__ import annotations

from collections.abc import Iterator

from ingest.database.schema import Column, Table
from ingest.database.tables import TABLES

_INTRO = """# Tables

<!-- Generated from ingest/database/tables.py by `python -m tests.regenerate`; edit the comments there. -->

Every table of a database with its columns, as `duckdb_columns()` shows them in a DuckDB shell. Sizes are
bytes, times are slots of the schedule, and what a dump does not say is `NULL`. **Bold** columns are the
primary key; those marked *required* are never `NULL`.
"""


def reference() -> str:
    """Return the page, in Markdown."""
    return "\n".join([_INTRO, *(line for table in TABLES.values() for line in _section(table))])


def _section(table: Table) -> Iterator[str]:
    yield f"## {table.name}\n"
    yield f"{table.comment}\n"
    yield "| column | type | meaning |"
    yield "| --- | --- | --- |"
    for column in table.columns:
        name = f"**{column.name}**" if column.key else column.name
        meaning = column.comment.replace("|", r"\|")
        yield f"| {name} | {_type(column)} | {meaning} |"
    yield ""


def _type(column: Column) -> str:
    return f"{column.type}, *required*" if column.required and not column.key else column.type
