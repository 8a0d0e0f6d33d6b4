"""`xbuf imports`: when imports ran, what they did, and which did not go well."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ingest.cli.streams import echo, say
from ingest.cli.terminal import DATABASE_OPTION

if TYPE_CHECKING:
    from ingest.pipeline.history import HistoryEntry
    from ingest.query.table import Table

_COLUMNS = (
    ("import", True),
    ("started (UTC)", False),
    ("took", True),
    ("status", False),
    ("found", True),
    ("loaded", True),
    ("unchanged", True),
    ("rejected", True),
    ("unfinished", True),
    ("sources", False),
)


@click.command()
@DATABASE_OPTION
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def imports(database: str, limit: int, format_: str) -> None:
    """List the imports, newest first: when one last went well, and what failed.

    An import without a number is not in the database yet: the next load records it, with what it has read.

    \b
    Example:
      xbuf imports --limit 5
    """
    from ingest.pipeline.history import read_history

    entries = read_history(database)
    shown = entries[:limit]
    if format_ == "json":
        echo(json.dumps([_as_json(entry) for entry in shown], indent=2))
        return
    echo(_summary(entries))
    if shown:
        table = _table(shown)
        echo("\n" + "\n".join(table.lines))
        if table.left_out:
            say(f"no room for: {', '.join(table.left_out)} (--format json shows them)")


def _summary(entries: list[HistoryEntry]) -> str:
    """Answer in one line or two: when did this last work, and what failed since."""
    good = next((entry for entry in entries if entry.went_well), None)
    bad = next((entry for entry in entries if not entry.went_well and entry.status != "running"), None)
    if not entries:
        return "no import yet"
    lines = [f"last good import: {_ago(good)}" if good else "no import has gone well"]
    if good and good.rejected:
        dumps = "1 dump" if good.rejected == 1 else f"{good.rejected:,} dumps"
        lines[0] += f", {dumps} rejected: xbuf rejects tells why"
    if bad:
        waiting = f", {bad.waiting:,} dumps wait for the next load" if bad.waiting else ""
        lines.append(f"last that did not: {_ago(bad)}, {bad.status}{waiting}")
    return "\n".join(lines)


def _ago(entry: HistoryEntry) -> str:
    seconds = (datetime.now(UTC).replace(tzinfo=None) - entry.started_at).total_seconds()
    if seconds < 90:
        ago = f"{max(seconds, 0):.0f} s"
    elif seconds < 5400:
        ago = f"{seconds / 60:.0f} min"
    else:
        ago = f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"
    return f"{entry.started_at:%Y-%m-%d %H:%M} UTC ({ago} ago)"


def _table(entries: list[HistoryEntry]) -> Table:
    from ingest.query.cells import escape
    from ingest.query.table import lay_out

    cells = [
        [
            _number(entry.import_id),
            f"{entry.started_at:%Y-%m-%d %H:%M:%S}",
            f"{(entry.finished_at - entry.started_at).total_seconds():.1f} s" if entry.finished_at else "",
            entry.status,
            *map(_number, (entry.found, entry.loaded, entry.unchanged, entry.rejected, entry.unfinished)),
            escape(" ".join(entry.sources)),
        ]
        for entry in entries
    ]
    names, numbers = zip(*_COLUMNS, strict=True)
    return lay_out(names, numbers, cells, shutil.get_terminal_size().columns)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _as_json(entry: HistoryEntry) -> dict[str, object]:
    fields = asdict(entry)
    for name in ("started_at", "finished_at"):
        if fields[name] is not None:
            fields[name] = fields[name].isoformat() + "Z"
    return fields
