"""Draw results as SVG: comparisons as bars, growth as lines; axes are logarithmic."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

_COLORS: Final = ("#0072b2", "#999999", "#e69f00", "#cc79a7")
"""Distinct for readers who do not see all colors."""
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, and compared by tests
    "svg.hashsalt": "xbuf",  # the same figures give the same file
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


@dataclass(frozen=True)
class Points:
    """A line of a chart: (text in MB, seconds)."""

    name: str
    points: tuple[tuple[float, float], ...]


def draw(compared: Mapping[str, Mapping[str, float]], growth: Sequence[Points]) -> str:
    """Return both charts, one above the other, as an SVG file.

    Args:
        compared: seconds by name of what was run, by data set; a data set may lack some.
        growth: seconds over the megabytes of text.
    """
    inches_of_bars = 1 + 0.17 * sum(len(group) for group in compared.values())
    inches_of_lines = 4.0
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.2, inches_of_bars + inches_of_lines), layout="constrained")
        upper, lower = figure.subplots(2, height_ratios=(inches_of_bars, inches_of_lines))
        _bars(upper, compared)
        _lines(lower, growth)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def _bars(axes: Axes, compared: Mapping[str, Mapping[str, float]]) -> None:
    names = list(dict.fromkeys(name for group in compared.values() for name in group))
    named: set[str] = set()
    ticks = []
    row = 0.0
    for group in compared.values():
        ticks.append(row + (len(group) - 1) / 2)
        for name, seconds in group.items():
            label = "" if name in named else name
            named.add(name)
            bar = axes.barh(row, seconds, 0.85, color=_COLORS[names.index(name)], label=label)
            axes.bar_label(bar, fmt="%.2f" if seconds < 10 else "%.0f", padding=3, fontsize=8)
            row += 1
        row += 0.7
    axes.set(xscale="log", xlabel="s", yticks=ticks, yticklabels=list(compared))
    _plain_numbers(axes.xaxis)
    axes.invert_yaxis()
    axes.grid(axis="x", color="#ddd")
    axes.set_title("Import into a new database, seconds on a logarithmic axis; less is better", loc="left")
    axes.legend(fontsize=8)


def _lines(axes: Axes, growth: Sequence[Points]) -> None:
    for color, one in zip(_COLORS, growth, strict=False):
        megabytes, seconds = zip(*one.points, strict=True)
        axes.plot(megabytes, seconds, marker="o", markersize=4, color=color, label=one.name)
    axes.set(xscale="log", yscale="log", xlabel="MB of text", ylabel="s")
    _plain_numbers(axes.xaxis)
    _plain_numbers(axes.yaxis)
    axes.grid(color="#ddd")
    axes.set_title("Growth with the text; both axes are logarithmic", loc="left")
    axes.legend(fontsize=8)


def _plain_numbers(axis: Axis) -> None:
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
