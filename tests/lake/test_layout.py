"""A lake has the tables of a file: names, columns, types."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from ingest.database.tables import TABLES
from ingest.lake.layout import LAKE_TABLES, as_in_file, as_in_lake, delta_schema
from tests.support.lakes import in_process


@pytest.fixture(scope="module")
def memory() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory."""
    with duckdb.connect(":memory:") as connection:
        yield connection


@pytest.mark.parametrize("table", LAKE_TABLES)
def test_what_a_lake_stores_comes_back_with_the_types_of_a_file(
    memory: duckdb.DuckDBPyConnection, table: str
) -> None:
    """The select list turns the stored types into those of the file, in the order of the file."""
    stored = ", ".join(f'NULL::{type_} AS "{name}"' for name, type_ in as_in_lake(table).items())
    memory.execute(f"CREATE OR REPLACE TABLE stored AS SELECT {stored}")
    described = memory.execute(f"DESCRIBE SELECT {as_in_file(table)} FROM stored").fetchall()
    assert [(name, type_) for name, type_, *_ in described] == [
        (column.name, column.type) for column in TABLES[table].columns
    ]


def test_a_delta_schema_has_the_columns_with_their_comments() -> None:
    """Other engines show the comments, too."""

    def described() -> list[tuple[str, str, str]]:
        return [(one.name, one.metadata["comment"], str(one.type)) for one in delta_schema("runs").fields]

    fields = in_process(described)
    assert [(name, comment) for name, comment, _ in fields] == [
        (column.name, column.comment) for column in TABLES["runs"].columns
    ]
    types = {name: type_ for name, _, type_ in fields}
    assert types["dump_time"] == 'PrimitiveType("timestamp")'  # and not timestamp_ntz
    assert "ArrayType" in types["format"]
