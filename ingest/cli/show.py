"""`xbuf show`: one run at a glance, or one buffer of it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from ingest.cli.answer import terminal_style
from ingest.cli.interrupts import reading
from ingest.cli.references import RUN
from ingest.cli.streams import echo, say, writing_stdout
from ingest.cli.terminal import DATABASE_OPTION

if TYPE_CHECKING:
    from ingest.query.result import Listed
    from ingest.query.style import Style
    from ingest.report.buffer import BufferPage
    from ingest.report.glance import Glance

_BYTES = ("total_bytes", "peak_bytes", "printed_peak_bytes", "resident_peak_bytes", "file_bytes")
_FIGURES = (
    ("total_bytes", "total", "what the program asks for, in all memories"),
    ("resident_peak_bytes", "resident peak", "most that it keeps of the main memory; XProf's peak heap"),
    ("peak_bytes", "live peak", "what is live at once"),
)  # fmt: skip
_BY = {"line": "source line", "scope": "named scope", "opcode": "opcode"}
_MINOR = (
    "run_id", "module", "peak_time", "largest_bytes",
    "own_bytes", "fused_bytes", "operand_bytes", "user_bytes", "caller_bytes",
)  # fmt: skip
"""Columns of queries that are left out here: alike in all rows of a run, or of little weight."""
_LABEL = 13
"""Characters of the names in front of figures."""


@click.command()
@click.argument("reference", metavar="RUN", type=RUN)
@click.argument("value", required=False)
@DATABASE_OPTION
@click.option(
    "--top",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="N",
    help="Rows of each list; 0 for all.",
)
@click.option(
    "--all", "whole", is_flag=True, help="Also what the run is called, where it lies and its files."
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--width", type=click.IntRange(0), metavar="N", help="Columns, 0 for any.  [default: the terminal's]"
)
@click.option(
    "--ansi", type=click.Choice(("auto", "always", "never")), default="auto", show_default=True,
    help="Colour, and links on source lines; NO_COLOR turns auto off.",
)  # fmt: skip
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
    from ingest.query.blocks import create_temporary
    from ingest.query.output import terminal_width
    from ingest.query.references import resolve_one

    columns = terminal_width() if width is None else width or None
    page = _Page(columns, terminal_style(ansi))
    with reading(database) as connection:
        create_temporary(connection)
        run = resolve_one(connection, reference)
        if value is not None:
            from ingest.report.buffer import read_buffer

            buffer = read_buffer(connection, run, value)
            if format_ == "json":
                echo(json.dumps(_buffer_json(buffer), default=str))
            else:
                page.buffer(run, buffer)
            return
        from ingest.report.curve import read_curve
        from ingest.report.glance import read_glance

        glance = read_glance(connection, run, top or None)
        if format_ == "json":
            echo(json.dumps(_glance_json(glance), default=str))
            return
        page.glance(run, glance, read_curve(connection, run), whole)


class _Page:
    """What `xbuf show` prints, for a terminal of so many columns."""

    def __init__(self, width: int | None, style: Style) -> None:
        self._width, self._style = width, style

    def glance(self, run: int, glance: Glance, curve: Any, whole: bool) -> None:
        from ingest.query.cells import escape
        from ingest.report.curve import BLOCKS, sparkline

        facts = glance.facts
        name = facts["module_name"] or facts["stem"]
        rest = [facts["backend"], *facts["labels"]]
        echo(self._style.heading(escape(f"run {run}: {', '.join([name, *filter(None, rest)])}")))
        echo()
        for key, label, meaning in _FIGURES:
            if key == "peak_bytes" and facts["peak_time"] is not None:
                meaning += f", at slot {facts['peak_time']} of {facts['schedule_length']}"
            figure = _shown_bytes(facts[key])
            echo(f"{label:<{_LABEL}}  {figure:>10}  {self._style.faint(meaning)}")
        if _draws(BLOCKS) and (line := sparkline(curve, max((self._width or 100) - _LABEL - 2, 10))):
            echo(f"{'live bytes':<{_LABEL}}  {self._style.bar(line)}")
        self._table("What fills the peak, by role", glance.roles)
        self._table(f"What fills the peak, by {_BY[glance.by]}", _without(glance.sources, *_MINOR))
        self._table("The largest buffers at the peak", _without(glance.buffers, *_MINOR))
        if glance.findings:
            self._heading("What is odd")
            for finding in glance.findings:
                self._finding(escape(finding.text), finding.ask)
        if glance.stacks:
            self._heading("Where they come from, innermost line of your program first")
            for stack in glance.stacks:
                echo(escape(f"{stack.value}, {_shown_bytes(stack.bytes)}, {stack.where}"))
        if whole:
            self._heading("The run")
            length = max(map(len, facts))
            for key, fact in facts.items():
                echo(f"{key:<{length}}  {_shown(key, fact)}")
        else:
            say(f"xbuf show {run} --all shows names and files; xbuf show {run} VALUE one buffer")

    def buffer(self, run: int, page: BufferPage) -> None:
        from ingest.query.cells import escape

        facts = page.facts
        end = facts["offset_bytes"] + facts["size_bytes"]
        memory = facts["space"] or f"color {facts['color']}"
        echo(self._style.heading(escape(f"{facts['value']} of run {run}")))
        echo()
        padding = f", {_shown_bytes(facts['padding_bytes'])} of it padding" if facts["padding_bytes"] else ""
        at_peak = facts["bytes_at_peak"]
        peak = "" if at_peak is None else f", {_shown_bytes(at_peak)} of the peak"
        live = "not known"
        if facts["start_time"] is not None:
            slots = facts["end_time"] - facts["start_time"] + 1
            live = (
                f"slots {facts['start_time']} to {facts['end_time']}, {slots} of {facts['schedule_length']}"
            )
        out = ", leaves the program" if facts["maybe_live_out"] else ""
        for label, text in (
            ("size", f"{_shown_bytes(facts['size_bytes'])}{padding}{peak}"),
            ("shape", facts["shape"]),
            ("place", f"allocation {facts['allocation_index']} ({facts['kind']}, {memory}{out}), "
                      f"bytes {facts['offset_bytes']:,} to {end:,} of {facts['allocation_bytes']:,}"),
            ("live", live),
            ("defined by", _definition(facts)),
            ("op_name", facts["op_name"]),
            ("source", facts["source"]),
            ("stack", page.stack),
        ):  # fmt: skip
            if text:
                echo(f"{label:<{_LABEL}}  {escape(text)}")
        self._table("Who shares its bytes", page.sharing, "nobody")
        self._table("Uses", page.uses, "none")

    def _finding(self, text: str, ask: str | None) -> None:
        """Print what is odd, and the command that shows more behind it or, without room, below it."""
        if ask is None:
            echo(text)
            return
        fits = self._width is None or len(text) + len(ask) + 4 <= self._width
        echo(f"{text}  {self._style.faint(f'({ask})')}" if fits else f"{text}\n  {self._style.faint(ask)}")

    def _heading(self, text: str) -> None:
        echo("\n" + self._style.heading(text))

    def _table(self, heading: str, table: Listed, empty: str = "") -> None:
        from ingest.query.formats import write_text

        if not table.cells and not empty:
            return
        self._heading(heading)
        if not table.cells:
            echo(empty)
            return
        with writing_stdout():
            write_text(table, "table", sys.stdout, self._width, self._style)


def _definition(facts: dict[str, Any]) -> str | None:
    if facts["opcode"] is None:
        return None
    operands = facts["operands"]
    call = f"{facts['opcode']}({', '.join(operands)})" if operands is not None else facts["opcode"]
    return f"{call} in {facts['computation']}" if facts["computation"] else call


def _without(table: Listed, *names: str) -> Listed:
    """Leave columns out of a table."""
    places = [place for place, column in enumerate(table.columns) if column.name not in names]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        cells=[tuple(row[place] for place in places) for row in table.cells],
    )


def _rows(table: Listed) -> list[dict[str, Any]]:
    from ingest.query.cells import json_value

    names = [column.name for column in table.columns]
    return [dict(zip(names, map(json_value, row), strict=True)) for row in table.cells]


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


def _draws(blocks: str) -> bool:
    """Tell whether stdout takes the characters of a curve."""
    try:
        blocks.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown_bytes(size: int | None) -> str:
    from ingest.query.cells import shown

    return shown(size, "bytes")


def _shown(name: str, value: Any) -> str:
    from ingest.query.cells import escape

    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(escape, value)) or "-"
    if name in _BYTES:
        return f"{_shown_bytes(value)} ({value:,} bytes)"
    return escape(str(value))
