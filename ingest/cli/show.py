"""`xbuf show`: one run at a glance."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

import click

from ingest.cli.answer import Output, answer
from ingest.cli.interrupts import reading
from ingest.cli.streams import echo
from ingest.cli.terminal import DATABASE_OPTION
from ingest.errors import UsageError
from ingest.query.cells import human_bytes

_BYTES = ("total_bytes", "peak_bytes", "printed_peak_bytes", "resident_peak_bytes", "file_bytes")


@click.command()
@click.argument("run", type=click.IntRange(1))
@DATABASE_OPTION
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Buffers at the peak.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def show(run: int, database: str, top: int, format_: str) -> None:
    """Show one run: its figures, its memory by role, the buffers live at its peak and who made them.

    Three figures answer for its memory: what it asks for (total), what it keeps of the main memory (resident
    peak, XProf's peak heap) and what is live at once (peak).

    RUN is a run_id as `xbuf runs` lists them.

    \b
    Example:
      xbuf show 1
    """
    facts = _facts(database, run)
    if format_ == "json":
        echo(json.dumps(facts, default=str))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        echo(f"{name:<{width}}  {_shown(name, value)}")
    if line := _curve(database, run, shutil.get_terminal_size().columns - width - 2):
        echo(f"{'live bytes':<{width}}  {line}")
    print_query(
        database, "memory_figures", {"run": str(run)}, "table", "\nMemory, three figures and their parts"
    )
    print_query(database, "memory_by_role", {"run": str(run)}, "table", "\nMemory by role")
    print_query(
        database,
        "live_at_peak",
        {"run": str(run), "top": top},
        "table",
        f"\nLive at the peak, the {top} largest",
    )
    _print_stacks(database, run, top)


def _curve(database: str, run: int, columns: int) -> str:
    """Draw live bytes over the schedule in one line; empty without live ranges or blocks to draw with."""
    from ingest.report.curve import BLOCKS, read_curve, sparkline

    try:
        BLOCKS.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return ""
    with reading(database) as connection:
        curve = read_curve(connection, run)
    return sparkline(curve, max(columns, 10))


def print_query(
    database: str, name: str, given: dict[str, int | str | None], format_: str, heading: str
) -> None:
    """Print the result of a shipped query under a heading."""
    from ingest.query.catalog import shipped
    from ingest.query.run import bind

    query = shipped().load(name)
    with reading(database) as connection:
        echo(heading)
        answer(connection, query, bind(query, given), Output(format_), database)


def _print_stacks(database: str, run: int, top: int) -> None:
    """Print which lines of the user's program the buffers at the peak come from."""
    from ingest.hlo.frames import FrameworkRule, Stacks, format_stack
    from ingest.hlo.records import SourceFrame
    from ingest.query.blocks import create_temporary
    from ingest.query.cells import escape

    with reading(database) as connection:
        create_temporary(connection)
        buffers = connection.execute(
            'SELECT p."value", p.bytes_at_peak, v.source_frame_id, v.source_file, v.source_line, v.source_via'
            ' FROM values_at_peak AS p JOIN "values" AS v USING (run_id, value_id)'
            " WHERE run_id = $run AND v.source_file IS NOT NULL"
            " ORDER BY p.bytes_at_peak DESC, value_id LIMIT $top",
            {"run": run, "top": top},
        ).fetchall()
        frames = connection.execute(
            "SELECT frame_id, parent_frame_id, function, file, line FROM source_frames WHERE run_id = ?",
            [run],
        ).fetchall()
    if not buffers:
        return
    is_framework = FrameworkRule.from_environment()
    stacks = Stacks([SourceFrame(*frame) for frame in frames], is_framework)
    echo("\nWhere they come from, innermost line of your program first")
    for name, size, frame_id, file, line, via in buffers:
        stack = stacks.stack(frame_id)
        own = [frame for frame in stack if not is_framework(frame.file)] or stack
        where = format_stack(own) if own else f"{file.rpartition('/')[2]}:{line}"
        # Marked as source_text() marks it in results.
        inherited = "" if via == "own" else f" ({via})"
        echo(escape(f"{name}, {human_bytes(size)}, {where}{inherited}"))


def _facts(database: str, run: int) -> dict[str, Any]:
    """Read what `runs` tells of the run, and its labels and notices."""

    with reading(database) as connection:
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
