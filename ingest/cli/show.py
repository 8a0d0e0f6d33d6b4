"""`xbuf show`: one run at a glance."""

from __future__ import annotations

import json
from typing import Any

import click

from ingest.cli.runs import print_query
from ingest.cli.terminal import DATABASE_OPTION, human_bytes
from ingest.errors import UsageError

_BYTES = ("total_bytes", "peak_bytes", "printed_peak_bytes", "file_bytes")


@click.command()
@click.argument("run", type=click.IntRange(1))
@DATABASE_OPTION
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Buffers at the peak.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def show(run: int, database: str, top: int, format_: str) -> None:
    """Show one run: its figures, its memory by role, and the buffers live at its peak.

    RUN is a run_id as `xbuf runs` lists them.

    \b
    Example:
      xbuf show 1
    """
    facts = _facts(database, run)
    if format_ == "json":
        click.echo(json.dumps(facts, default=str))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        click.echo(f"{name:<{width}}  {_shown(name, value)}")
    print_query(database, "memory_by_role", {"run": str(run)}, "table", "\nMemory by role")
    print_query(
        database,
        "live_at_peak",
        {"run": str(run), "top": top},
        "table",
        f"\nLive at the peak, the {top} largest",
    )


def _facts(database: str, run: int) -> dict[str, Any]:
    """Read what `runs` tells of the run, and its labels and notices."""
    from ingest.store.database import open_database

    with open_database(database, read_only=True) as connection:
        cursor = connection.execute("FROM runs WHERE run_id = ?", [run])
        row = cursor.fetchone()
        if row is None:
            raise UsageError(f"{database} holds no run {run}; `xbuf runs` lists them")
        facts = dict(zip([column[0] for column in cursor.description or []], row, strict=True))
        labels = connection.execute(
            "SELECT key || '=' || value FROM run_labels WHERE run_id = ? ORDER BY key", [run]
        ).fetchall()
        notices = connection.execute(
            "SELECT kind || ': ' || message FROM notices WHERE run_id = ?", [run]
        ).fetchall()
    facts["labels"] = [label for (label,) in labels]
    facts["notices"] = [notice for (notice,) in notices]
    return facts


def _shown(name: str, value: Any) -> str:
    from ingest.query.cells import escape

    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(escape, value)) or "-"
    if name in _BYTES:
        return f"{human_bytes(value)} ({value:,} bytes)"
    return escape(str(value))
