"""Check an export before anything of it is taken in: anybody may have written these files.

Every file must be a regular one with the columns and types of its table. The rows meet the checks that `xbuf
doctor` makes of a database, and those that the importer makes of a dump: numbers in range, keys unique, sums,
peaks, and nothing without its owner.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final

import duckdb

from ingest.database.spill import spilling
from ingest.database.tables import RUN_TABLES, TABLES, types_of
from ingest.errors import UsageError
from ingest.maintenance.doctor import ROW_CHECKS
from ingest.sql import no_rows, parquet

_LARGEST: Final = 2**53
"""Numbers of runs and imports stay below: later ones are counted up from them, and JSON must hold them."""
_PLACES: Final = (
    ("values outside of their allocations", """
        SELECT run_id FROM "values" AS v JOIN allocations AS a USING (run_id, allocation_index)
        WHERE v.offset_bytes < 0 OR v.size_bytes < 0 OR v.offset_bytes::HUGEINT + v.size_bytes > a.size_bytes
    """),
    ("allocations of negative size or number", """
        SELECT run_id FROM allocations WHERE size_bytes < 0 OR allocation_index < 0
    """),
    ("live ranges that end before they start", """
        SELECT run_id FROM ranges WHERE start_time < 0 OR end_time < start_time
    """),
    *(
        (f"{table} of values that are not there", f"""
            SELECT run_id FROM "{table}" ANTI JOIN "values" USING (run_id, value_id)
            WHERE value_id IS NOT NULL  -- a live range of a value that the dump does not list
        """)
        for table in ("ranges", "positions", "uses")
    ),
)  # fmt: skip


def check_file(file: str) -> None:
    """Make sure that a file of an export is a regular one, and no link.

    Raises:
        UsageError: it is not, or not there.
    """
    try:
        mode = os.lstat(file).st_mode
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise UsageError(f"{file}: is no regular file; copy what it stands for into the export")


def check_rows(directory: str, files: Mapping[str, str]) -> None:
    """Check the tables of an export, by name with their files.

    Raises:
        UsageError: one of them is not what an export holds; nothing was taken in.
    """
    with duckdb.connect(config=spilling(directory)) as connection:
        connection.execute("PRAGMA disable_progress_bar")
        try:
            for table in TABLES:
                if table in files:
                    _check_columns(connection, table, files[table])
                    rows = f"FROM {parquet([files[table]])}"
                else:
                    rows = no_rows(types_of(table))
                connection.execute(f'CREATE VIEW "{table}" AS {rows}')
            for text, query in _checks(files):
                found = connection.execute(f"SELECT * FROM ({query}) LIMIT 1").fetchone()
                if found:
                    raise UsageError(
                        f"{directory}: has {text} ({found[0]}, for one); nothing was taken in: export again"
                    )
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise UsageError(f"{directory}: cannot be read: {reason}; nothing was taken in") from error


def _check_columns(connection: duckdb.DuckDBPyConnection, table: str, file: str) -> None:
    described = connection.execute(f"DESCRIBE FROM {parquet([file])}").fetchall()
    types = {name: type_ for name, type_, *_ in described}
    for column in TABLES[table].columns:
        found = types.get(column.name)
        if found is None and (column.required or column.key):
            raise UsageError(f"{file}: lacks the column {column.name}; nothing was taken in")
        if found is not None and found != column.type:
            raise UsageError(
                f"{file}: column {column.name} is {found}, where the table has {column.type}; nothing was"
                " taken in"
            )


def _checks(files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the rows that a query finds, and the query."""
    for table in files:
        columns = TABLES[table].columns
        needed = [f'"{column.name}" IS NULL' for column in columns if column.required or column.key]
        if needed:
            yield (
                f"{table} without a value that all have",
                f'SELECT 1 FROM "{table}" WHERE {" OR ".join(needed)}',
            )
        keys = ", ".join(f'"{column.name}"' for column in columns if column.key)
        if keys:
            query = f'SELECT {keys} FROM "{table}" GROUP BY {keys} HAVING count(*) > 1'
            yield f"two {table} of one number", query
        for number in {"run_id", "import_id"} & {column.name for column in columns}:
            condition = f"{number} NOT BETWEEN 1 AND {_LARGEST}"
            yield (
                f"{table} whose {number} is out of range",
                f'SELECT {number} FROM "{table}" WHERE {condition}',
            )
    children = [(table, "runs", "run_id") for table in ("run_labels", *RUN_TABLES)]
    for table, parent, key in (
        *children,
        ("runs", "imports", "import_id"),
        ("rejects", "imports", "import_id"),
    ):
        yield (
            f"{table} that belong to no row of {parent}",
            f'SELECT {key} FROM "{table}" ANTI JOIN {parent} USING ({key})',
        )
    yield from _PLACES
    for _, text, query in ROW_CHECKS:
        yield text, query
