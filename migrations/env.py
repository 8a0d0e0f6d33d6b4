"""Alembic environment of xbuf.

`ingest.database.migrate` hands over an open connection. Run by hand, from the top of a checkout, it opens the
database that `-x db=PATH` names:

    alembic -c migrations/alembic.ini -x db=scratch.duckdb upgrade head
    alembic -c migrations/alembic.ini -x db=scratch.duckdb check
    alembic -c migrations/alembic.ini -x db=scratch.duckdb revision --autogenerate --rev-id 0002_words -m W

A new revision is named NNNN_words (the name of its file too), sets `ingest.database.revision.HEAD`, and
changes `ingest.database.tables` in the same commit. It writes its columns out: tables.py moves on, a released
revision never does. Until 0.1.0 is released there is only the first, which
`python -m ingest.database.migrate` writes anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import ARRAY, Connection
from sqlalchemy.types import TypeEngine

from ingest.database.metadata import Compressed, metadata
from ingest.database.migrate import open_engine
from ingest.errors import UsageError


def _render(kind: str, item: Any, autogen_context: AutogenContext) -> str | Literal[False]:
    """Write a column in one line; False leaves everything else to Alembic."""
    if kind != "column":
        return False
    autogen_context.imports.add("from ingest.database.metadata import Compressed, column")
    required = "" if item.nullable else ", required=True"
    return f"column({item.name!r}, {_type(item.type)}, {item.comment!r}{required})"


def _type(type_: TypeEngine[Any]) -> str:
    if isinstance(type_, ARRAY):
        return f"sa.ARRAY({_type(type_.item_type)})"
    return repr(type_) if isinstance(type_, Compressed) else f"sa.{type_!r}"


def _run(connection: Connection) -> None:
    # One transaction a revision: DuckDB's DDL is transactional, so a kill leaves the old schema or the new.
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transaction_per_migration=True,
        render_item=_render,
    )
    with context.begin_transaction():
        context.run_migrations()


def _run_by_hand() -> None:
    path = context.get_x_argument(as_dictionary=True).get("db")
    if path is None:
        raise UsageError("name the database: alembic -c migrations/alembic.ini -x db=PATH ...")
    with open_engine(Path(path)) as engine, engine.connect() as connection:
        _run(connection)


if context.is_offline_mode():
    raise UsageError("xbuf migrations run against a database; offline SQL (--sql) is not offered")
_connection = context.config.attributes.get("connection")
if _connection is None:
    _run_by_hand()
else:
    _run(_connection)
