"""`xbuf imports`: when imports ran, what they did, and which did not go well."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ingest.cli.answer import Output, output_options
from ingest.cli.streams import echo, say
from ingest.cli.terminal import ANY_DATABASE_OPTION, top_option
from ingest.display import counted

if TYPE_CHECKING:
    from ingest.pipeline.history import HistoryEntry
    from ingest.query.result import Listed

_COLUMNS = (
    ("import_id", "BIGINT", None, "import"),
    ("started_at", "TIMESTAMP", None, "started (UTC)"),
    ("seconds", "DOUBLE", "seconds", "took"),
    ("status", "VARCHAR", None, ""),
    ("found", "BIGINT", "count", ""),
    ("loaded", "BIGINT", "count", ""),
    ("unchanged", "BIGINT", "count", ""),
    ("rejected", "BIGINT", "count", ""),
    ("unfinished", "BIGINT", "count", ""),
    ("sources", "VARCHAR", None, ""),
)
"""Name, type, unit and head of each column of the list."""


@click.command()
@ANY_DATABASE_OPTION
@top_option()
@output_options()
def imports(database: str, top: int, output: Output) -> None:
    """List the imports, newest first: when one last went well, and what failed.

    An import without a number is not in the database yet: the next load records it, with what it has read.
    json and ndjson have all fields of an import, other formats those of the table.

    \b
    Example:
      xbuf imports --top 5
    """
    from ingest.pipeline.history import read_history
    from ingest.query.output import choose_format

    entries = read_history(database)
    shown = entries[:top] if top else entries
    chosen = choose_format(output.format_, output.path)
    if chosen == "table" and output.path is None:
        echo(_summary(entries) + ("\n" if shown else ""))
    if chosen in ("json", "ndjson"):
        output.write(_whole(shown), database)
    elif shown or chosen != "table":
        output.write(_listed(shown), database)
    if len(shown) < len(entries):
        say(f"{len(shown):,} of {len(entries):,} rows; --top 0 for all")


def _summary(entries: list[HistoryEntry]) -> str:
    """Answer in one line or two: when did this last work, and what failed since."""
    good = next((entry for entry in entries if entry.went_well), None)
    bad = next((entry for entry in entries if not entry.went_well and entry.status != "running"), None)
    if not entries:
        return "no import yet"
    lines = [f"last good import: {_ago(good)}" if good else "no import has gone well"]
    if good and good.rejected:
        lines[0] += f", {counted(good.rejected, 'dump')} rejected; xbuf rejects lists why"
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


def _listed(entries: list[HistoryEntry]) -> Listed:
    from ingest.query.result import Listed, ResultColumn

    keys = ("import_id", "started_at", "status", "loaded", "rejected", "found", "seconds", "sources")
    columns = tuple(
        ResultColumn(name, type_, unit, label, keys.index(name) if name in keys else None)
        for name, type_, unit, label in _COLUMNS
    )
    return Listed(columns, [_row(entry) for entry in entries])


def _whole(entries: list[HistoryEntry]) -> Listed:
    from ingest.pipeline.history import HistoryEntry
    from ingest.query.result import Listed, ResultColumn

    columns = tuple(ResultColumn(field.name, "VARCHAR") for field in fields(HistoryEntry))
    return Listed(columns, [tuple(_as_json(entry).values()) for entry in entries])


def _row(entry: HistoryEntry) -> tuple[object, ...]:
    took = (entry.finished_at - entry.started_at).total_seconds() if entry.finished_at else None
    counts = (entry.found, entry.loaded, entry.unchanged, entry.rejected, entry.unfinished)
    return (entry.import_id, entry.started_at, took, entry.status, *counts, " ".join(entry.sources))


def _as_json(entry: HistoryEntry) -> dict[str, object]:
    fields = asdict(entry)
    for name in ("started_at", "finished_at"):
        if fields[name] is not None:
            fields[name] = fields[name].isoformat() + "Z"
    return fields
