"""Lay out a result as a table that fits the width of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.query.cells import display_width

__all__ = ["Table", "lay_out", "markdown"]

_GAP = 2
_LEAST = 14
"""Fewest characters that a text column is cut to before columns are left out."""


@dataclass(frozen=True, slots=True)
class Table:
    """A laid-out table and the columns that found no room."""

    lines: tuple[str, ...]
    left_out: tuple[str, ...]


def lay_out(
    names: Sequence[str], numbers: Sequence[bool], cells: Sequence[Sequence[str]], width: int | None
) -> Table:
    """Align the cells in columns; numbers stand right.

    Long texts are cut in their middle. Columns that find no room are left out from the right: results
    name their most important columns first.

    Args:
        numbers: for each column, whether it holds numbers; these are never cut.
        width: columns of the terminal; None for any.
    """
    content = [max((display_width(row[column]) for row in cells), default=0) for column in range(len(names))]
    headers = [_wrap(name, length) for name, length in zip(names, content, strict=True)]
    natural = [
        max(length, max(len(part) for part in header))
        for length, header in zip(content, headers, strict=True)
    ]
    least = [
        length if number else min(length, max(_LEAST, max(len(part) for part in header)))
        for length, number, header in zip(natural, numbers, headers, strict=True)
    ]
    count = len(names)
    if width is not None:
        while count > 1 and sum(least[:count]) + _GAP * (count - 1) > width:
            count -= 1
    widths = natural[:count]
    if width is not None:
        _shrink(widths, least, width - _GAP * (count - 1))
    height = max((len(header) for header in headers[:count]), default=0)
    titles = [[""] * (height - len(header)) + list(header) for header in headers[:count]]
    lines = [_join([title[line] for title in titles], numbers, widths) for line in range(height)]
    lines.append((" " * _GAP).join("-" * size for size in widths))
    lines += [
        _join([_cut(cell, size) for cell, size in zip(row, widths, strict=False)], numbers, widths)
        for row in cells
    ]
    return Table(tuple(lines), tuple(names[count:]))


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


def _harmless(cell: str) -> str:
    """Escape what Markdown and the HTML in it would read as markup."""
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("&", "&amp;").replace("<", "&lt;")


def _wrap(name: str, width: int) -> list[str]:
    """Break a column name at underscores into lines no wider than its content, where possible."""
    parts = [part + "_" for part in name.split("_")]
    parts[-1] = parts[-1][:-1]
    room = max(width, *(len(part) for part in parts))
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) <= room:
            lines[-1] += part
        else:
            lines.append(part)
    return lines


def _shrink(widths: list[int], least: Sequence[int], room: int) -> None:
    """Cut the widest texts until the columns fit."""
    while sum(widths) > room:
        able = [column for column in range(len(widths)) if widths[column] > least[column]]
        if not able:
            return
        widest = max(able, key=lambda column: widths[column])
        second = max((widths[column] for column in able if widths[column] < widths[widest]), default=0)
        target = max(second, least[widest], widths[widest] - (sum(widths) - room))
        widths[widest] = min(widths[widest] - 1, target)


def _cut(cell: str, width: int) -> str:
    """Cut a text in its middle."""
    if display_width(cell) <= width:
        return cell
    if width <= 1:
        return "…"[:width]
    head = (width - 1 + 1) // 2
    tail = width - 1 - head
    cut = cell[:head] + "…" + (cell[-tail:] if tail else "")
    while display_width(cut) > width:
        head -= 1
        cut = cell[:head] + "…" + (cell[-tail:] if tail else "")
    return cut


def _join(cells: Sequence[str], numbers: Sequence[bool], widths: Sequence[int]) -> str:
    padded = [_pad(cell, size, number) for cell, size, number in zip(cells, widths, numbers, strict=False)]
    return (" " * _GAP).join(padded).rstrip()


def _pad(cell: str, width: int, number: bool) -> str:
    space = " " * (width - display_width(cell))
    return space + cell if number else cell + space
