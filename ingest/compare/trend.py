"""The peak of a module over imports, or over the values of a label in order of version."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape as xml

from ingest.errors import UsageError
from ingest.query.catalog import did_you_mean
from ingest.query.cells import escape, human_bytes, signed_bytes

if TYPE_CHECKING:
    import duckdb

_NUMBER = re.compile(r"(\d+)")
_WIDTH, _HEIGHT, _LEFT, _BELOW, _TOP = 720, 300, 80, 60, 40


@dataclass(frozen=True, slots=True)
class Point:
    """The run that stands for one import or one value of the label: that of the highest peak.

    Attributes:
        at: number of the import, or value of the label.
        peak_bytes: live peak; the sum of all allocations where the run has no live ranges.
        change_bytes: growth since the point before; None for the first.
    """

    at: str
    run_id: int
    peak_bytes: int
    change_bytes: int | None


def read_trend(
    connection: duckdb.DuckDBPyConnection, module: str, key: str | None = None, backend: str | None = None
) -> list[Point]:
    """Read the points of a module, oldest first.

    Args:
        module: its name.
        key: key of a label; without it, points are imports. 0.10.2 comes behind 0.9.1.
        backend: cpu, gpu or tpu; needed where the module was compiled for several.

    Raises:
        UsageError: there is no such module, it has several backends, or none of its runs has the label.
    """
    rows = connection.execute(
        "SELECT r.run_id, r.import_id, r.backend, coalesce(r.peak_bytes, r.total_bytes, 0), l.value"
        " FROM runs AS r LEFT JOIN run_labels AS l ON l.run_id = r.run_id AND l.key = $key"
        " WHERE coalesce(r.module_name, r.stem) = $module ORDER BY r.run_id",
        {"key": key or "", "module": module},
    ).fetchall()
    if not rows:
        known = connection.execute("SELECT DISTINCT coalesce(module_name, stem) FROM runs").fetchall()
        raise UsageError(f"no run is of module {module!r}{did_you_mean(module, [name for (name,) in known])}")
    if backend is not None:
        rows = [row for row in rows if row[2] == backend]
    backends = sorted({str(row[2]) for row in rows})
    if len(backends) != 1:
        raise UsageError(
            f"{module} was compiled for {', '.join(backends) or 'others'}: say which with --backend"
        )
    best: dict[str, tuple[int, int]] = {}
    for run, number, _, size, value in rows:
        at = str(number) if key is None else value
        if at is not None and (at not in best or size > best[at][1]):
            best[at] = (run, size)
    if not best:
        raise UsageError(f"no run of {module} has a label {key!r}")
    points: list[Point] = []
    for at in sorted(best, key=_version):
        run, size = best[at]
        points.append(Point(at, run, size, size - points[-1].peak_bytes if points else None))
    return points


def jump(points: Sequence[Point]) -> int | None:
    """Return the position of the greatest growth; None where the peak never grows."""
    growing = [number for number, point in enumerate(points) if (point.change_bytes or 0) > 0]
    return max(growing, key=lambda number: points[number].change_bytes or 0, default=None)


def as_text(points: Sequence[Point], title: str) -> list[str]:
    """Write a line for each point, a bar as long as its peak, and the command that explains the jump."""
    marked = jump(points)
    wide = max(len(title), *(len(escape(point.at)) for point in points))
    greatest = max(point.peak_bytes for point in points) or 1
    lines = [f"{title:<{wide}}  {'run':>6}  {'peak':>10}  {'change':>11}"]
    for number, point in enumerate(points):
        change = "" if not point.change_bytes else signed_bytes(point.change_bytes)
        bar = "#" * round(20 * point.peak_bytes / greatest)
        lines.append(
            f"{escape(point.at):<{wide}}  {point.run_id:>6}  {human_bytes(point.peak_bytes):>10}"
            f"  {change:>11}  {bar}{'  <- jump' if number == marked else ''}"
        )
    if marked is not None:
        lines += ["", f"what grew: xbuf diff {points[marked - 1].run_id} {points[marked].run_id}"]
    return lines


def as_csv(points: Sequence[Point]) -> str:
    """Write the points as CSV: at, run_id, peak_bytes, change_bytes, is_jump."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["at", "run_id", "peak_bytes", "change_bytes", "is_jump"])
    marked = jump(points)
    for number, point in enumerate(points):
        change = "" if point.change_bytes is None else point.change_bytes
        writer.writerow([point.at, point.run_id, point.peak_bytes, change, str(number == marked).lower()])
    return out.getvalue()


def as_svg(points: Sequence[Point], heading: str) -> str:
    """Draw the points as a line from zero, with their sizes, and the jump in another colour."""
    heading = escape(heading)
    greatest = max(point.peak_bytes for point in points) or 1
    step = (_WIDTH - _LEFT - 40) / max(len(points) - 1, 1)
    floor = _HEIGHT - _BELOW
    places = [
        (_LEFT + number * step, floor - (floor - _TOP) * point.peak_bytes / greatest)
        for number, point in enumerate(points)
    ]
    marked = jump(points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        ' font-family="sans-serif" font-size="11" role="img">',
        f"<title>{xml(heading)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20" font-size="13">{xml(heading)}</text>',
        f'<path d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - 40}" fill="none" stroke="#888"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{human_bytes(greatest)}</text>',
        f'<text x="{_LEFT - 6}" y="{floor}" text-anchor="end">0</text>',
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" stroke="#1f6feb"'
        ' stroke-width="2"/>',
    ]
    every = max(len(points) // 12, 1)
    for number, (point, (x, y)) in enumerate(zip(points, places, strict=True)):
        color = "#d1242f" if number == marked else "#1f6feb"
        about = f"{point.at}: {human_bytes(point.peak_bytes)}, run {point.run_id}"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}">'
            f"<title>{xml(escape(about))}</title></circle>"
        )
        if number % every == 0 or number == marked:
            parts.append(
                f'<text x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{xml(escape(point.at))}</text>'
            )
        if number == marked:
            text = xml(signed_bytes(point.change_bytes or 0))
            parts.append(f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="end" fill="{color}">{text}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _version(text: str) -> list[tuple[int, int, str]]:
    """Order 0.9.1 before 0.10.2: numbers as numbers, before words."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in _NUMBER.split(text) if part]
