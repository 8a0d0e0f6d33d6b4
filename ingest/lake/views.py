"""The tables of a lake as views, with the names, columns and types of a file.

So a query need not know where it runs. A row counts where `runs` has its run. `ingest.database.scope` puts
constant numbers before that, which reach the row groups, and has them in a variable, by which a view leaves
out whole files: of 3,000, not even the ends need be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from glob import escape
from typing import TYPE_CHECKING, Final

from ingest.database.ddl import created
from ingest.database.scope import NARROWED
from ingest.database.tables import TABLES
from ingest.lake.layout import COUNTS, TABLES_OF_RUNS
from ingest.sql import literal

if TYPE_CHECKING:
    import duckdb

    from ingest.lake.snapshot import TableFiles

_FILES: Final = '[{"place": "VARCHAR", "least": "BIGINT", "greatest": "BIGINT"}]'
_CHOSEN: Final = "files_that_count"
_CHOOSE: Final = f"""
CREATE MACRO {_CHOSEN}(files) AS coalesce(
    nullif(
        [
            f['place']
            FOR f IN files
            IF getvariable('{NARROWED}') IS NULL
                OR f['least'] IS NULL
                OR list_bool_or(
                    [run BETWEEN f['least'] AND f['greatest'] FOR run IN getvariable('{NARROWED}')::BIGINT[]]
                )
        ],
        []
    ),
    [files[1]['place']]
)
"""
"""A list of files is never empty: DuckDB asks the first one for the columns."""


def create_views(connection: duckdb.DuckDBPyConnection, root: str, tables: Mapping[str, TableFiles]) -> None:
    """Make a view of each table in a connection.

    Args:
        root: folder, or start of the URLs, below which the tables' folders lie.
        tables: their files, by name.
    """
    statements = [_CHOOSE]
    for name, table in tables.items():
        if not table.files:
            statements.append(created(TABLES[name]))
            continue
        files = json.dumps(
            [
                {"place": place_of(root, name, file.name), "least": file.least, "greatest": file.greatest}
                for file in table.files
            ]
        )
        variable = f"files of {name}"
        # As JSON: a list of 3,000 takes 10 ms that way, and 0.3 s bound as a parameter.
        statements += [
            f'SET VARIABLE "{variable}" = from_json({literal(files)}, {literal(_FILES)})',
            view_of(name, table, f"{_CHOSEN}(getvariable({literal(variable)}))"),
        ]
    connection.execute(";".join(statements))


def place_of(root: str, table: str, file: str) -> str:
    """Return the name of a file for DuckDB, which takes it for a pattern."""
    return f"{escape(root)}/{table}/{file}"


def view_of(name: str, table: TableFiles, files: str) -> str:
    """Return the statement that makes the view of a table that has files.

    Args:
        files: SQL for the list of them.
    """
    columns = ", ".join(
        f'{_value(column.name, column.type, table)}::{column.type} AS "{column.name}"'
        for column in TABLES[name].columns
    )
    by_name = ", union_by_name = true" if table.is_mixed else ""
    if name in TABLES_OF_RUNS:
        # Qualified: `ingest.database.scope` puts constants before it.
        condition = " WHERE x.run_id IN (SELECT r.run_id FROM main.runs AS r)"
    elif name in COUNTS:
        condition = f" QUALIFY {COUNTS[name]}"
    else:
        condition = ""
    return (
        f'CREATE VIEW "{name}" AS SELECT {columns}'
        f" FROM read_parquet({files}, hive_partitioning = false{by_name}) AS x{condition}"
    )


def _value(column: str, type_: str, table: TableFiles) -> str:
    if column in table.absent:
        return "NULL"
    return f"(x.\"{column}\" AT TIME ZONE 'UTC')" if type_ == "TIMESTAMP" else f'x."{column}"'
