"""One run, or one buffer of it, as lines of text for people: what `xbuf show` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

from ingest.query.cells import escape, human_bytes
from ingest.query.formats import takes, write_text
from ingest.query.style import PLAIN, Style
from ingest.report.curve import BLOCKS, Curve, sparkline

if TYPE_CHECKING:
    from ingest.query.result import Listed
    from ingest.report.buffer import BufferPage
    from ingest.report.glance import Glance

_BYTES: Final = ("total_bytes", "peak_bytes", "printed_peak_bytes", "resident_peak_bytes", "file_bytes")
FIGURES: Final = (
    ("total_bytes", "total", "what the program asks for, in all memories"),
    ("resident_peak_bytes", "resident peak", "most that it keeps of the main memory; XProf's peak heap"),
    ("peak_bytes", "live peak", "what is live at once"),
)  # fmt: skip
"""The three figures of a run: its column in `runs`, its name and what it means."""
_BY: Final = {"line": "source line", "scope": "named scope", "opcode": "opcode"}
MINOR: Final = (
    "run_id", "module", "peak_time", "largest_bytes",
    "own_bytes", "fused_bytes", "operand_bytes", "user_bytes", "caller_bytes",
)  # fmt: skip
"""Columns of queries that are left out here: alike in all rows of a run, or of little weight."""
_LABEL: Final = 13
"""Characters of the names in front of figures."""


class Page:
    """Writes to a stream of so many columns; None for any."""

    def __init__(self, out: TextIO, width: int | None, style: Style = PLAIN) -> None:
        self._out, self._width, self._style = out, width, style

    def glance(self, run: int, glance: Glance, curve: Curve, *, whole: bool = False) -> None:
        """Write the figures of a run, what fills its peak and what is odd.

        Args:
            whole: also its names, place and files.
        """
        facts = glance.facts
        name = facts["module_name"] or facts["stem"]
        rest = [facts["backend"], *facts["labels"]]
        self._line(self._style.heading(escape(f"run {run}: {', '.join([name, *filter(None, rest)])}")))
        self._line()
        for key, label, meaning in FIGURES:
            if key == "peak_bytes" and facts["peak_time"] is not None:
                meaning += f", at slot {facts['peak_time']} of {facts['schedule_length']}"
            figure = human_bytes(facts[key])
            self._line(f"{label:<{_LABEL}}  {figure:>10}  {self._style.faint(meaning)}")
        if takes(self._out, BLOCKS) and (
            line := sparkline(curve, max((self._width or 100) - _LABEL - 2, 10))
        ):
            self._line(f"{'live bytes':<{_LABEL}}  {self._style.bar(line)}")
        self._table("What fills the peak, by role", glance.roles)
        self._table(f"What fills the peak, by {_BY[glance.by]}", glance.sources.without(*MINOR))
        self._table("The largest buffers at the peak", glance.buffers.without(*MINOR))
        if glance.findings:
            self._heading("What is odd")
            for finding in glance.findings:
                self._finding(escape(finding.text), finding.ask)
        if glance.stacks:
            self._heading("Where they come from, innermost line of your program first")
            for stack in glance.stacks:
                self._line(escape(f"{stack.value}, {human_bytes(stack.bytes)}, {stack.where}"))
        if whole:
            self._heading("The run")
            length = max(map(len, facts))
            for key, fact in facts.items():
                self._line(f"{key:<{length}}  {_shown(key, fact)}")

    def buffer(self, run: int, page: BufferPage) -> None:
        """Write one buffer: size, place, neighbours, live range, definition, uses."""
        facts = page.facts
        end = facts["offset_bytes"] + facts["size_bytes"]
        memory = facts["space"] or f"color {facts['color']}"
        self._line(self._style.heading(escape(f"{facts['value']} of run {run}")))
        self._line()
        padding = f", {human_bytes(facts['padding_bytes'])} of it padding" if facts["padding_bytes"] else ""
        at_peak = facts["bytes_at_peak"]
        peak = "" if at_peak is None else f", {human_bytes(at_peak)} of the peak"
        live = "not known"
        if facts["start_time"] is not None:
            slots = facts["end_time"] - facts["start_time"] + 1
            live = (
                f"slots {facts['start_time']} to {facts['end_time']}, {slots} of {facts['schedule_length']}"
            )
        out = ", leaves the program" if facts["maybe_live_out"] else ""
        for label, text in (
            ("size", f"{human_bytes(facts['size_bytes'])}{padding}{peak}"),
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
                self._line(f"{label:<{_LABEL}}  {escape(text)}")
        self._table("Who shares its bytes", page.sharing, "nobody")
        self._table("Uses", page.uses, "none")

    def _line(self, text: str = "") -> None:
        self._out.write(text + "\n")

    def _finding(self, text: str, ask: str | None) -> None:
        """Print what is odd, and the command that shows more behind it or, without room, below it."""
        if ask is None:
            self._line(text)
            return
        fits = self._width is None or len(text) + len(ask) + 4 <= self._width
        behind = f"  {self._style.faint(f'({ask})')}" if fits else f"\n  {self._style.faint(ask)}"
        self._line(text + behind)

    def _heading(self, text: str) -> None:
        self._line("\n" + self._style.heading(text))

    def _table(self, heading: str, table: Listed, empty: str = "") -> None:
        if not table.cells and not empty:
            return
        self._heading(heading)
        if not table.cells:
            self._line(empty)
            return
        write_text(table, "table", self._out, self._width, self._style)


def _definition(facts: dict[str, Any]) -> str | None:
    if facts["opcode"] is None:
        return None
    operands = facts["operands"]
    call = f"{facts['opcode']}({', '.join(operands)})" if operands is not None else facts["opcode"]
    return f"{call} in {facts['computation']}" if facts["computation"] else call


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(escape, value)) or "-"
    if name in _BYTES:
        return f"{human_bytes(value)} ({value:,} bytes)"
    return escape(str(value))
