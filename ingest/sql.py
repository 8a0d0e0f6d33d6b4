"""What is written into the text of a SQL statement, and what many statements are run for.

The text: values, names, files, columns without rows. Run: a query that gives one number, a transaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def literal(value: str | float | os.PathLike[str] | None) -> str:
    """Write a value as a SQL literal; a path is a text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | os.PathLike):
        return "'" + os.fspath(value).replace("'", "''") + "'"
    return repr(value)


def quoted(name: str) -> str:
    """Write the name of a table or column, whatever it is."""
    return '"' + name.replace('"', '""') + '"'


def parquet(files: Iterable[str | os.PathLike[str]], *options: str) -> str:
    """Write the expression that reads Parquet files: a name is no pattern, a folder no column."""
    names = ", ".join(literal(escape(os.fspath(file))) for file in files)
    return f"read_parquet([{names}], {', '.join(('hive_partitioning = false', *options))})"


def no_rows(types: Mapping[str, str]) -> str:
    """Write a query that gives columns of these types, and no row."""
    return (
        f"SELECT {', '.join(f'NULL::{type_} AS {quoted(name)}' for name, type_ in types.items())} WHERE false"
    )


def one_number(connection: duckdb.DuckDBPyConnection, statement: str, values: object = None) -> int:
    """Return the one whole number that a statement gives: a count, or the rows that it wrote; 0 for none."""
    row = connection.execute(statement, values).fetchone()
    return int(row[0] or 0) if row else 0


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Make one transaction of a block; what ends the block early takes all of it back."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        import duckdb  # is there, as a connection is

        with suppress(duckdb.Error):  # what brought us here may have ended the connection
            connection.rollback()
        raise
