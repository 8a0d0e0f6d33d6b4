"""Draw results as SVG: comparisons as bars, growth as lines; both axes of seconds are logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 880
_COLORS: Final = ("#0072b2", "#999999", "#e69f00", "#cc79a7")
"""Told apart by those who do not see all colors."""
_BAR: Final = 13
_LEFT: Final = 190
_RIGHT: Final = 60


@dataclass(frozen=True)
class Points:
    """A line of a chart: (text in MB, seconds)."""

    name: str
    points: tuple[tuple[float, float], ...]


def bars(title: str, groups: Mapping[str, Mapping[str, float]], top: float) -> tuple[str, float]:
    """Return bars of seconds, a group for each data set, and where they end.

    Args:
        title: stands above.
        groups: seconds by name of what was run, by data set; all groups name the same in the same order.
        top: y of the upper edge.
    """
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    seconds = [value for group in groups.values() for value in group.values()]
    scale = _Scale(min(seconds) / 2, max(seconds), _LEFT, WIDTH - _RIGHT)
    y = top + 20
    parts = [_text(_LEFT, y, title, weight="bold"), *_legend(names, y + 20)]
    y += 34
    first = y
    for data, group in groups.items():
        middle = y + len(group) * _BAR / 2
        parts.append(_text(_LEFT - 8, middle + 4, data, anchor="end"))
        for name, value in group.items():
            color = _COLORS[names.index(name)]
            end = scale.place(value)
            box = f'x="{_LEFT}" y="{y:.1f}" width="{end - _LEFT:.1f}" height="{_BAR - 2}"'
            parts.append(f'<rect {box} fill="{color}"/>')
            parts.append(_text(end + 4, y + _BAR - 4, _seconds(value), size=10))
            y += _BAR
        y += 9
    grid = [_grid_x(scale, value, first, y) for value in scale.decades()]
    return "\n".join([*grid, *parts]), y + 22


def lines(title: str, series: Sequence[Points], top: float, height: float = 280) -> tuple[str, float]:
    """Return lines of seconds over megabytes of text, both logarithmic, and where they end."""
    points = [point for one in series for point in one.points]
    across = _Scale(min(x for x, _ in points), max(x for x, _ in points), _LEFT, WIDTH - _RIGHT)
    y0 = top + 54
    up = _Scale(min(y for _, y in points) / 1.5, max(y for _, y in points) * 1.2, y0 + height, y0)
    parts = [
        _text(_LEFT, top + 20, title, weight="bold"),
        *_legend([one.name for one in series], top + 40),
        *(_grid_x(across, value, y0, y0 + height, " MB") for value in across.decades()),
    ]
    for value in up.decades():
        y = up.place(value)
        parts.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{value:g} s", anchor="end", size=10))
    for number, one in enumerate(series):
        color = _COLORS[number]
        places = [(across.place(x), up.place(y)) for x, y in one.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in places]
    return "\n".join(parts), y0 + height + 30


def document(drawings: Sequence[str], height: float) -> str:
    """Return the drawings as an SVG file."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}"'
            f' width="{WIDTH}" height="{height:.0f}" font-family="sans-serif">',
            f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>',
            *drawings,
            "</svg>\n",
        ]
    )


class _Scale:
    """A logarithmic axis from `low` at `start` to `high` at `end`."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._high = math.log10(low), math.log10(high)
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)

    def decades(self) -> Iterator[float]:
        for power in range(math.ceil(self._low), math.floor(self._high) + 1):
            yield 10.0**power


def _legend(names: Sequence[str], y: float) -> list[str]:
    parts = []
    x = float(_LEFT)
    for number, name in enumerate(names):
        parts.append(f'<rect x="{x:.0f}" y="{y - 9}" width="10" height="10" fill="{_COLORS[number]}"/>')
        parts.append(_text(x + 14, y, name, size=11))
        x += 30 + 6.5 * len(name)
    return parts


def _grid_x(scale: _Scale, value: float, top: float, bottom: float, unit: str = " s") -> str:
    x = scale.place(value)
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="#ddd"/>'
    return line + _text(x, bottom + 14, f"{value:g}{unit}", anchor="middle", size=10)


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}"'
        f' text-anchor="{anchor}">{escape(text)}</text>'
    )


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
