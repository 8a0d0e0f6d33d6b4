"""Print tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table under a title; numbers to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    right = [
        all(isinstance(row[place], int | float) or row[place] is None for row in rows)
        for place in range(len(head))
    ]

    def line(texts: Sequence[str]) -> str:
        aligned = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(texts, widths, right, strict=True)
        ]
        return f"| {' | '.join(aligned)} |"

    rule = [
        "-" * (width - 1) + ":" if to_right else "-" * width
        for width, to_right in zip(widths, right, strict=True)
    ]
    return "\n".join([f"### {title}", "", line(head), line(rule), *map(line, cells), ""])


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
