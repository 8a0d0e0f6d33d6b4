"""How a lake is laid out: a Delta table for each table of a database, and what lies next to them.

    URL/
        imports/ runs/ values/ …    Delta tables, one for each of `LAKE_TABLES`
        _batches/                   batches under way (`ingest.lake.batch`)

Names, columns and types are those of the file, so that a query need not know where it runs. Two things
differ:

* Delta's plain timestamps ask for a newer protocol, which few readers know: TIMESTAMP is stored as a moment
  in UTC (TIMESTAMPTZ to DuckDB), and views turn it back.
* There is no key, and a row may be there that does not count yet or any more. Rows of a run count where
  `runs` has that run. Of the rows of an import, that one counts which says the most (`COUNTS`).

Numbers: each load takes a batch number, 1, 2, 3 …, and numbers its runs from `number * RUNS_A_BATCH`; an
import has the number of its first batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ingest.database.schema import Type
from ingest.database.tables import RUN_TABLES, TABLES

if TYPE_CHECKING:
    from deltalake import Schema

LAKE_TABLES: Final = tuple(name for name in TABLES if name != "saved_queries")
"""Names of the Delta tables; each is the folder of that name. Queries come with whoever reads."""
TABLES_OF_RUNS: Final = ("run_labels", *RUN_TABLES)
"""Tables with rows that count where `runs` has their run."""
BATCHES: Final = "_batches"
"""Folder of the batches under way."""
RUNS_A_BATCH: Final = 4096
"""Runs that one batch numbers at most: numbers stay below 2^53 for two thousand billion batches."""
REVISION: Final = "xbuf.revision"
"""Entry in the configuration of the table `imports`: the schema revision that the lake is of."""

COUNTS: Final = {
    "imports": "row_number()"
    " OVER (PARTITION BY import_id ORDER BY finished_at DESC NULLS LAST, loaded DESC) = 1"
}
"""DuckDB's QUALIFY condition of the rows that count, for tables of imports where not all do."""

_STORED: Final[dict[Type, str]] = {"TIMESTAMP": "TIMESTAMPTZ"}
"""Types that a lake stores as another one."""


def as_in_lake(table: str) -> dict[str, str]:
    """Return the type in DuckDB's words that a lake stores each column of a table as, by name."""
    return {column.name: _STORED.get(column.type, column.type) for column in TABLES[table].columns}


def as_in_file(table: str) -> str:
    """Return the select list that gives the columns of a lake's table the types that a file has."""
    return ", ".join(
        f'"{column.name}" AT TIME ZONE \'UTC\' AS "{column.name}"'
        if column.type in _STORED
        else f'"{column.name}"'
        for column in TABLES[table].columns
    )


def delta_schema(table: str) -> Schema:
    """Return the Delta schema of a table; each column has its comment."""
    from deltalake import Field, Schema
    from deltalake.schema import ArrayType, PrimitiveType

    types = {
        "BIGINT": PrimitiveType("long"),
        "BOOLEAN": PrimitiveType("boolean"),
        "DOUBLE": PrimitiveType("double"),
        "TIMESTAMP": PrimitiveType("timestamp"),
        "VARCHAR": PrimitiveType("string"),
        "BIGINT[]": ArrayType(PrimitiveType("long"), True),
        "VARCHAR[]": ArrayType(PrimitiveType("string"), True),
    }
    # NOT NULL is the business of whoever writes: Delta could not add such a column later.
    return Schema(
        [
            Field(column.name, types[column.type], True, metadata={"comment": column.comment})
            for column in TABLES[table].columns
        ]
    )
