"""The tables as SQLAlchemy's metadata: what Alembic compares a database with and generates revisions from.

SQLAlchemy takes a fifth of a second to import: only `ingest.database.migrate` and what Alembic runs come
here.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from ingest.database.schema import Column, Type
from ingest.database.tables import TABLES


class Compressed(sa.types.UserDefinedType[str]):
    """VARCHAR stored with ZSTD."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "VARCHAR USING COMPRESSION zstd"

    def compare_against_backend(self, dialect: sa.Dialect, conn_type: sa.types.TypeEngine[object]) -> bool:
        """Return whether the type that DuckDB reports is this one; it shows no compression."""
        return isinstance(conn_type, sa.String)


_TYPES: Final[dict[Type, sa.types.TypeEngine[Any]]] = {
    "BIGINT": sa.BigInteger(),
    "BOOLEAN": sa.Boolean(),
    "DOUBLE": sa.Double(),
    "TIMESTAMP": sa.DateTime(),
    "VARCHAR": sa.String(),
    "BIGINT[]": sa.ARRAY(sa.BigInteger()),
    "VARCHAR[]": sa.ARRAY(sa.String()),
}


def column(
    name: str, type_: sa.types.TypeEngine[Any], comment: str, *, key: bool = False, required: bool = False
) -> sa.Column[Any]:
    """Return a column as revisions write it."""
    nullable = not (required or key)
    return sa.Column(name, type_, primary_key=key, nullable=nullable, comment=comment, autoincrement=False)


def _described(one: Column) -> sa.Column[Any]:
    type_ = Compressed() if one.compressed else _TYPES[one.type]
    return column(one.name, type_, one.comment, key=one.key, required=one.required)


metadata: Final = sa.MetaData()
for _table in TABLES.values():
    sa.Table(_table.name, metadata, *map(_described, _table.columns), comment=_table.comment)
