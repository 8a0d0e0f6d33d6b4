"""`xbuf show`: one run at a glance, or one buffer of it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ingest.cli.answer import terminal_style
from ingest.cli.references import RUN, reading_runs
from ingest.cli.streams import echo, say, writing_stdout
from ingest.cli.terminal import ANY_DATABASE_OPTION, ansi_option, format_option, top_option

if TYPE_CHECKING:
    from ingest.query.result import Listed
    from ingest.report.buffer import BufferPage
    from ingest.report.glance import Glance


@click.command()
@click.argument("reference", metavar="RUN", type=RUN)
@click.argument("value", required=False)
@ANY_DATABASE_OPTION
@top_option(10, "Rows of each list; 0 for all.")
@click.option(
    "--all", "whole", is_flag=True, help="Also what the run is called, where it lies and its files."
)
@format_option("text", "json")
@click.option(
    "--width", type=click.IntRange(0), metavar="N", help="Columns, 0 for any.  [default: the terminal's]"
)
@ansi_option("Colour, and links on source lines")
def show(
    reference: str,
    value: str | None,
    database: str,
    top: int,
    whole: bool,
    format_: str,
    width: int | None,
    ansi: str,
) -> None:
    """Show one run: its figures of memory, what fills its peak and what is odd.

    Three figures answer for its memory: what it asks for (total), what it keeps of the main memory (resident
    peak, XProf's peak heap) and what is live at once (live peak).

    RUN is a number as `xbuf runs` lists them, latest, a module (its newest run), module@key=value, or the end
    of the dump's path. VALUE shows one buffer of it: its size and place, who shares its bytes, when it is
    live, what defines and uses it, and its stack.

    \b
    Example:
      xbuf show 1
      xbuf show 1 'fusion.12{0}'
    """
    from ingest.query.output import terminal_width
    from ingest.report.buffer import read_buffer
    from ingest.report.curve import read_curve
    from ingest.report.glance import read_glance
    from ingest.report.text import Page

    columns = terminal_width() if width is None else width or None
    with reading_runs(database, reference) as (connection, (run,)):
        if value is not None:
            buffer = read_buffer(connection, run, value)
            if format_ == "json":
                echo(json.dumps(_buffer_json(buffer), default=str))
            else:
                with writing_stdout():
                    Page(sys.stdout, columns, terminal_style(ansi)).buffer(run, buffer)
            return
        glance = read_glance(connection, run, top or None)
        if format_ == "json":
            echo(json.dumps(_glance_json(glance), default=str))
            return
        curve = read_curve(connection, run)
        with writing_stdout():
            Page(sys.stdout, columns, terminal_style(ansi)).glance(run, glance, curve, whole=whole)
        if not whole:
            say(f"xbuf show {run} --all shows names and files; xbuf show {run} VALUE one buffer")


def _rows(table: Listed) -> list[dict[str, Any]]:
    from ingest.query.cells import json_value
    from ingest.query.result import named_rows

    return [{name: json_value(cell) for name, cell in row.items()} for row in named_rows(table)]


def _glance_json(glance: Glance) -> dict[str, Any]:
    return {
        **glance.facts,
        "peak_by_role": _rows(glance.roles),
        f"peak_by_{glance.by}": _rows(glance.sources),
        "live_at_peak": _rows(glance.buffers),
        "findings": [asdict(finding) for finding in glance.findings],
        "stacks": [asdict(stack) for stack in glance.stacks],
    }


def _buffer_json(page: BufferPage) -> dict[str, Any]:
    return {**page.facts, "sharing": _rows(page.sharing), "uses": _rows(page.uses), "stack": page.stack}
