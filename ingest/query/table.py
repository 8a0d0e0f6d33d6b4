"""Lay out a result as a table that fits the width of a terminal and keeps the answer.

The key columns of a query get room first, minor ones what is left. What all rows share is said once above the
table: cells that are all alike, and the leading parts of op_names and paths.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ingest.query.cells import bar, display_width
from ingest.query.result import ResultColumn
from ingest.query.shorten import Kind, common_parts, kind_of, least_width, shorten, without_layouts
from ingest.query.style import PLAIN, Style

_GAP = 2
_BAR = 6
"""Characters of the bar of a whole."""
_COMFORTABLE = {Kind.NAME: 32, Kind.PARTS: 40, Kind.SHAPE: 40, Kind.PROSE: 60, Kind.FIXED: 24}
"""Characters that a text of a key column may take before minor columns get any."""
_ALONGSIDE = ("run_id", "module")
"""Shown next to each other; said once where all rows are of one run."""


@dataclass(frozen=True, slots=True)
class Table:
    """A laid-out table.

    Attributes:
        caption: lines with what all rows share; they belong to the table.
        lines: the head, a rule and a line a row.
        left_out: names of the columns that found no room.
        said: names of the columns that the caption says.
    """

    caption: tuple[str, ...]
    lines: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class _Lane:
    """A column on its way into the table.

    Attributes:
        place: its place in the result.
        whole: its cells before anything was taken off.
        least: fewest characters that it is shown in.
        comfortable: characters that it gets before minor columns are thought of.
        natural: characters that it can use.
        bare: characters that it can use without the layouts of its shapes.
        shares: for a column of shares, the fraction of each row; their bars take more room.
    """

    column: ResultColumn
    place: int
    label: str
    kind: Kind
    cells: list[str]
    whole: list[str]
    shares: Sequence[float | None] = ()
    width: int = 0
    least: int = field(init=False, default=0)
    comfortable: int = field(init=False, default=0)
    natural: int = field(init=False, default=0)
    bare: int = field(init=False, default=0)
    text: int = field(init=False, default=0)

    def measure(self) -> None:
        label = display_width(self.label)
        self.text = max(label, *map(display_width, self.cells)) if self.cells else label
        self.least = self.comfortable = self.natural = self.bare = self.text
        if self.shares:
            self.comfortable = self.natural = self.bare = self.text + _BAR + 1
        elif not self.column.is_number:
            self.least = max([label, *(least_width(cell, self.kind) for cell in self.cells)])
            if self.kind is Kind.SHAPE:
                self.bare = max([label, *(display_width(without_layouts(cell)) for cell in self.cells)])
            self.comfortable = max(self.least, min(self.bare, _COMFORTABLE[self.kind]))

    def grow(self, wanted: int, room: int, *, whole: bool = False) -> int:
        """Take some of the room; return what is left of it. A bar is drawn whole or not at all, as is what
        `whole` says."""
        more = wanted - self.width
        if more > room:
            more = 0 if self.shares or whole else room
        self.width += max(more, 0)
        return room - max(more, 0)


def lay_out(
    columns: Sequence[ResultColumn],
    cells: Sequence[Sequence[str]],
    width: int | None,
    *,
    shares: Mapping[int, Sequence[float | None]] | None = None,
    style: Style = PLAIN,
) -> Table:
    """Align the cells in columns; numbers stand right.

    Args:
        width: columns of the terminal; None for any: nothing is cut, left out or said once.
        shares: for columns of shares by place, the fraction 0 to 1 of each row, drawn as a bar where there
            is room.
    """
    lanes = [
        _lane(column, place, cells, (shares or {}).get(place, ())) for place, column in enumerate(columns)
    ]
    lanes = _alongside(lanes)
    for lane in lanes:
        lane.measure()
    if width is None or sum(lane.natural + _GAP for lane in lanes) - _GAP <= width:
        for lane in lanes:
            lane.width = lane.natural
        return Table((), _lines(lanes, len(cells), style))
    caption, kept = _say_once(lanes)
    shown = _choose(kept, width)
    for lane in shown:
        if lane.kind is Kind.SHAPE and lane.width < lane.text:
            lane.cells = [without_layouts(cell) for cell in lane.cells]
            caption.append(f"{lane.label} without layout")
    wrapped = (
        style.faint(part)
        for line in caption
        for part in textwrap.wrap(line, max(width, 3), subsequent_indent="  ", break_on_hyphens=False)
    )
    return Table(
        tuple(wrapped),
        _lines(shown, len(cells), style),
        left_out=_names(lane for lane in kept if lane not in shown),
        said=_names(lane for lane in lanes if lane not in kept),
    )


def _names(lanes: Iterable[_Lane]) -> tuple[str, ...]:
    return tuple(lane.column.name for lane in sorted(lanes, key=lambda lane: lane.place))


def markdown(names: Sequence[str], numbers: Sequence[bool], cells: Sequence[Sequence[str]]) -> list[str]:
    """Write the cells as a Markdown table."""
    rows = [[_harmless(cell) for cell in row] for row in cells]
    widths = [max([3, len(name), *(display_width(row[i]) for row in rows)]) for i, name in enumerate(names)]
    rule = [
        "-" * (size - 1) + ":" if number else "-" * size for size, number in zip(widths, numbers, strict=True)
    ]
    lines = []
    for row in (list(names), rule, *rows):
        padded = [_pad(*cell) for cell in zip(row, widths, numbers, strict=True)]
        lines.append(f"| {' | '.join(padded)} |")
    return lines


def _lane(
    column: ResultColumn, place: int, rows: Sequence[Sequence[str]], shares: Sequence[float | None]
) -> _Lane:
    cells = [row[place] for row in rows]
    kind = Kind.FIXED if column.type in ("BOOLEAN", "TIMESTAMP") else kind_of(column.name)
    return _Lane(column, place, column.label or column.name, kind, cells, cells, shares)


def _alongside(lanes: list[_Lane]) -> list[_Lane]:
    """Put the module next to the run."""
    pair = [lane for name in _ALONGSIDE for lane in lanes if lane.column.name == name]
    if len(pair) < 2:
        return lanes
    run, module = pair
    if module.place < run.place:
        return lanes
    rest = [lane for lane in lanes if lane is not module]
    return [*rest[: run.place + 1], module, *rest[run.place + 1 :]]


def _say_once(lanes: list[_Lane]) -> tuple[list[str], list[_Lane]]:
    """Take off what all rows share; return the lines that say it, and the columns that remain."""
    alike, zero, unknown, kept = [], [], [], []
    for lane in lanes:
        same = len(lane.cells) > 1 and len(set(lane.cells)) == 1
        minor = lane.column.rank is None or lane.column.name in _ALONGSIDE
        if same and lane.cells[0] == "-":
            unknown.append(lane.label)
        elif same and minor and lane.cells[0] == "0 B":
            zero.append(lane.label)
        elif same and minor and len(lane.cells[0]) <= _COMFORTABLE[Kind.PROSE]:
            alike.append(f"{lane.label} {lane.cells[0]}")
        else:
            kept.append(lane)
    if not kept:
        return [], lanes
    caption = []
    if alike:
        caption.append("all rows: " + ", ".join(alike))
    if zero:
        caption.append("zero: " + ", ".join(zero))
    if unknown:
        caption.append("not known: " + ", ".join(unknown))
    for lane in kept:
        if lane.kind is Kind.PARTS:
            known = [cell for cell in lane.cells if cell != "-"]
            prefix = common_parts(known) if len(known) > 1 else ""
            if prefix:
                lane.cells = [cell.removeprefix(prefix) if cell != "-" else cell for cell in lane.cells]
                caption.append(f"{lane.label} under {prefix}")
        lane.measure()
    return caption, kept


def _choose(lanes: list[_Lane], width: int) -> list[_Lane]:
    """Give the columns their widths: key columns first, then as many minor ones as fit."""
    keys = sorted(
        (lane for lane in lanes if lane.column.rank is not None), key=lambda lane: lane.column.rank or 0
    )
    minor = [lane for lane in lanes if lane.column.rank is None]
    if not keys:
        keys, minor = minor[:1], minor[1:]
    room = width + _GAP
    chosen = [keys[0]]
    # The first one is shown whatever the width is.
    keys[0].width = keys[0].least if keys[0].column.is_number else min(keys[0].least, width)
    room -= keys[0].width + _GAP

    def take(candidates: list[_Lane]) -> None:
        nonlocal room
        for lane in candidates:
            if lane.least + _GAP <= room:
                lane.width = lane.least
                room -= lane.least + _GAP
                chosen.append(lane)

    take(keys[1:])
    for lane in chosen:
        room = lane.grow(lane.comfortable, room)
    take(minor)
    for lane in chosen:
        room = lane.grow(lane.bare, room)
    for lane in chosen:
        room = lane.grow(lane.natural, room, whole=lane.kind is Kind.SHAPE)
    return [lane for lane in lanes if lane in chosen]


def _lines(lanes: list[_Lane], rows: int, style: Style) -> tuple[str, ...]:
    heads = [style.heading(_pad(_cut_head(lane), lane.width, lane.column.is_number)) for lane in lanes]
    rule = [style.faint("-" * lane.width) for lane in lanes]
    columns = [[_cell(lane, row, style) for row in range(rows)] for lane in lanes]
    return tuple((" " * _GAP).join(line).rstrip() for line in (heads, rule, *zip(*columns, strict=True)))


def _cut_head(lane: _Lane) -> str:
    return shorten(lane.label, Kind.PROSE, lane.width)


def _cell(lane: _Lane, row: int, style: Style) -> str:
    cell = lane.cells[row]
    number = lane.column.is_number
    text = cell if number else shorten(cell, lane.kind, lane.width)
    padded = _pad(text, lane.text if lane.shares else lane.width, number)
    if lane.shares and lane.width > lane.text:
        share = lane.shares[row]
        return style.bar(bar(share, _BAR)) + " " + padded
    if cell == "-":
        return style.faint(padded)
    return style.source(padded, lane.whole[row]) if lane.kind is Kind.PARTS else padded


def _harmless(cell: str) -> str:
    """Escape what Markdown and the HTML in it would read as markup."""
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("&", "&amp;").replace("<", "&lt;")


def _pad(cell: str, width: int, number: bool) -> str:
    space = " " * (width - display_width(cell))
    return space + cell if number else cell + space
