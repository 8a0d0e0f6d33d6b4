"""`xbuf db`: look at a database file, bring its schema up to date, compact it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ingest.cli.streams import echo
from ingest.cli.terminal import DATABASE_OPTION, WAIT_OPTION, format_option, say_waiting, upgraded
from ingest.query.cells import escape, human_bytes

if TYPE_CHECKING:
    from ingest.database.connect import DatabaseStatus

_STATES = {
    "current": "at head",
    "older": "older than this xbuf: run xbuf db upgrade",
    "newer": "newer than this xbuf: upgrade xbuf",
    "empty": "no schema yet: run xbuf-ingest",
}


@click.group()
def db() -> None:
    """Look at the database file, upgrade its schema, compact it.

    \b
    Example:
      xbuf db status
    """


@db.command()
@DATABASE_OPTION
@WAIT_OPTION
def upgrade(database: str, wait: float) -> None:
    """Bring the schema of an existing database to the newest revision.

    xbuf-ingest does this by itself. Each revision is applied whole or not at all.

    \b
    Example:
      xbuf db upgrade --db xbuf.duckdb
    """
    from ingest.database.connect import upgrade as upgrade_database

    done = upgrade_database(database, wait_seconds=wait)
    echo(upgraded(escape(done.path), done.before, done.after))


@db.command()
@DATABASE_OPTION
@WAIT_OPTION
def compact(database: str, wait: float) -> None:
    """Write the database anew, without the space of runs that were forgotten.

    Readers may stay: they keep the old file until they open it again. Nothing is lost if it is killed.

    \b
    Example:
      xbuf db compact --db xbuf.duckdb
    """
    from ingest.maintenance.compact import compact_database

    done = compact_database(database, wait_seconds=wait, on_wait=say_waiting)
    echo(f"{escape(done.path)}: {human_bytes(done.before)} -> {human_bytes(done.after)}")


@db.command()
@DATABASE_OPTION
@format_option("table", "json")
def status(database: str, format_: str) -> None:
    """Show the schema revision, the storage version and the rows of every table.

    \b
    Example:
      xbuf db status --format json
    """
    from ingest.database.connect import status as read_status

    found = read_status(database)
    echo(json.dumps(_as_json(found)) if format_ == "json" else _as_table(found))


def _as_table(found: DatabaseStatus) -> str:
    facts = [
        ("database", escape(found.path)),
        ("size", human_bytes(found.file_bytes)),
        ("schema", f"{found.revision or 'none'} ({_STATES[found.state]})"),
        ("storage", f"DuckDB {found.storage_version}"),
    ]
    rows = [(escape(table.name), f"{table.rows:,}") for table in found.tables]
    name = max([len(name) for name, _ in [*facts, *rows]])
    number = max([len(text) for _, text in rows], default=0)
    lines = [f"{title:<{name}}  {text}" for title, text in facts]
    if rows:
        lines += ["", f"{'table':<{name}}  {'rows':>{number}}"]
        lines += [f"{title:<{name}}  {text:>{number}}" for title, text in rows]
    return "\n".join(lines)


def _as_json(found: DatabaseStatus) -> dict[str, object]:
    return {
        "database": found.path,
        "file_bytes": found.file_bytes,
        "revision": found.revision,
        "head": found.head,
        "state": found.state,
        "readable": found.readable,
        "storage_version": found.storage_version,
        "tables": {table.name: table.rows for table in found.tables},
    }
