"""What is written into the text of a SQL statement: values, names, files, columns without rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from glob import escape


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
