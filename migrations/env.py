"""Alembic environment of xbuf.

`ingest.store.migrate` hands over an open connection. Run by hand, from the top of a checkout, it opens the
database that `-x db=PATH` names:

    alembic -c migrations/alembic.ini -x db=scratch.duckdb upgrade head
    alembic -c migrations/alembic.ini -x db=scratch.duckdb check
    alembic -c migrations/alembic.ini -x db=scratch.duckdb revision --autogenerate --rev-id 0002_words -m W

A new revision is named NNNN_words (the name of its file too), sets `ingest.store.database.HEAD`, and changes
`ingest.store.schema` in the same commit. It writes its tables out: schema.py moves on, a revision never does.
`python -m ingest.store.migrate` then writes head.sql, by which new databases are made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy import Connection

from ingest.errors import UsageError
from ingest.store.migrate import open_engine
from ingest.store.schema import Compressed, metadata


def _render(kind: str, item: Any, autogen_context: AutogenContext) -> str | Literal[False]:
    """Write our column type with its import; False leaves everything else to Alembic."""
    if kind == "type" and isinstance(item, Compressed):
        autogen_context.imports.add("from ingest.store.schema import Compressed")
        return "Compressed()"
    return False


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
