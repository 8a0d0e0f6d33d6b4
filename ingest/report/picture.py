"""A run as one static picture: the curve of live bytes above the arena, as SVG or PNG."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from html import escape
from typing import Final

import numpy as np

from ingest.display import display
from ingest.errors import UsageError
from ingest.query.cells import human_bytes
from ingest.report.curve import column_peaks, live_curve, stacked, time_span
from ingest.report.data import Figures, RunPicture
from ingest.report.layout import KINDS, kind_numbers, stack
from ingest.report.raster import SHADES, Pixels, arena_pixels, paletted_png

COLORS: Final = {
    "temp": (0x2F, 0x9E, 0x77),
    "parameter+output": (0x4A, 0x74, 0xC9),
    "parameter": (0xE0, 0x8A, 0x2E),
    "output": (0xD9, 0xB9, 0x1F),
    "constant": (0xA4, 0x63, 0xB5),
    "thread-local": (0x8A, 0x8F, 0x98),
}
"""Color of each kind of allocation: they differ in brightness, too, and are read on light and dark."""

NAMES: Final = {"temp": "temporary", "parameter+output": "donated parameter"}
"""What a legend calls a kind, where it is not the kind itself."""

_STYLE: Final = (
    "text{font:12px system-ui,'DejaVu Sans','Liberation Sans',sans-serif;fill:#24292f}"
    ".title{font-size:15px;font-weight:600}.dim{fill:#656d76}"
    ".frame{fill:none;stroke:#8c959f}.grid{stroke:#8c959f;stroke-opacity:.25}"
    ".peak{stroke:#d1242f;stroke-dasharray:4 3}.peaktext{fill:#d1242f}"
    "@media(prefers-color-scheme:dark){.back{fill:#0d1117}text{fill:#e6edf3}.dim{fill:#9198a1}"
    ".peak{stroke:#ff7b72}.peaktext{fill:#ff7b72}}"
)
_WIDTH: Final = 960
_LEFT: Final = 78
_RIGHT: Final = 12
_CURVE_TOP: Final = 78
_CURVE: Final = 130
_ARENA_TOP: Final = _CURVE_TOP + _CURVE + 30
_ARENA: Final = 300
_HEIGHT: Final = _ARENA_TOP + _ARENA + 42


def draw_svg(picture: RunPicture, *, scale: int = 2, alone: bool = True) -> str:
    """Draw a run as SVG: text for labels, one image each for the curve and the arena.

    Args:
        scale: pixels of the images for each unit of the drawing.
        alone: the drawing is a file of its own and brings its style; else the page around it does.

    Raises:
        UsageError: the run has no live ranges to draw.
    """
    if not picture.buffers.ranged:
        raise UsageError(
            f"run {picture.figures.run_id} has no live ranges, so there is nothing to draw over time;"
            " its dump lacks the HloLiveRange section"
        )
    return "".join(_elements(picture, scale, alone))


def draw_png(picture: RunPicture) -> bytes:
    """Draw a run as PNG, 1,920 pixels wide; see `draw_svg`.

    Raises:
        UsageError: there is nothing to draw, or `resvg-py` is not installed.
    """
    svg = draw_svg(picture)
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise UsageError("PNG needs resvg-py: `pip install 'xbuf[png]'`, or write an .svg") from None
    return bytes(svg_to_bytes(svg_string=svg, zoom=2, background="#ffffff"))


def sentence(figures: Figures) -> str:
    """Say in one line what a run needs."""
    parts = [
        ("peak", figures.peak_bytes),
        ("resident peak", figures.resident_peak_bytes),
        ("total", figures.total_bytes),
    ]
    return " · ".join(f"{name} {human_bytes(size)}" for name, size in parts if size is not None)


def _elements(picture: RunPicture, scale: int, alone: bool) -> Iterator[str]:
    figures, span = picture.figures, time_span(picture.buffers)
    width = _WIDTH - _LEFT - _RIGHT
    label = f"Live bytes and arena of {display(figures.module)}: {sentence(figures)}"
    size = f'width="{_WIDTH}" height="{_HEIGHT}" ' if alone else ""
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        f' aria-label="{escape(label)}">'
    )
    if alone:
        yield f"<style>{_STYLE}</style>"
        yield f'<rect class="back" width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>'
    yield _text(_LEFT, 24, _cut(display(figures.module), 70), "title")
    about = " · ".join(part for part in (figures.backend, f"run {figures.run_id}", sentence(figures)) if part)
    yield _text(_LEFT, 43, about, "dim")
    yield from _legend(picture)

    curve, tops = _curve_pixels(picture, width * scale, _CURVE * scale)
    _, addresses = stack(picture.allocations)
    arena = arena_pixels(picture, width * scale, _ARENA * scale)
    for top, height, pixels, greatest, name in (
        (_CURVE_TOP, _CURVE, curve, tops, "live"),
        (_ARENA_TOP, _ARENA, arena, addresses, "address"),
    ):
        for size_bytes in _byte_ticks(greatest, 4):
            at = round(top + height - height * size_bytes / max(greatest, 1), 1)
            yield f'<path class="grid" d="M{_LEFT} {at}h{width}"/>'
            yield _text(_LEFT - 6, at + 4, _short(size_bytes), "dim", "end")
        yield _image(pixels, top, width, height)
        yield f'<rect class="frame" x="{_LEFT}" y="{top}" width="{width}" height="{height}"/>'
        turned = f'transform="translate(14 {top + height / 2})rotate(-90)"'
        yield f'<text class="dim" text-anchor="middle" {turned}>{name}</text>'
    for slot in _slot_ticks(span, 8):
        at = round(_LEFT + width * slot / span, 1)
        yield _text(at, _ARENA_TOP + _ARENA + 16, f"{slot:,}", "dim", "middle")
    yield _text(_LEFT + width / 2, _HEIGHT - 8, "slot of the schedule", "dim", "middle")
    if figures.peak_time is not None:
        at = round(_LEFT + width * (figures.peak_time + 0.5) / span, 1)
        yield f'<path class="peak" d="M{at} {_CURVE_TOP}V{_ARENA_TOP + _ARENA}"/>'
        anchor, side = ("end", -5) if at > _WIDTH / 2 else ("start", 5)
        words = f"peak {human_bytes(figures.peak_bytes or 0)} at slot {figures.peak_time:,}"
        yield _text(at + side, _ARENA_TOP - 10, words, "peaktext", anchor)
    yield "</svg>"


def _curve_pixels(picture: RunPicture, width: int, height: int) -> tuple[Pixels, int]:
    """Draw the live bytes, stacked by kind; each column is the whole stack at its greatest slot."""
    buffers = picture.buffers
    curve = live_curve(buffers)
    slots = curve.time[column_peaks(curve, time_span(buffers), width)]
    kinds = kind_numbers(picture.allocations)[buffers.allocation]
    figures = stacked(buffers, kinds, len(KINDS), slots)
    greatest = int(curve.live.max(initial=0))
    upto = np.rint(np.cumsum(figures, axis=0) * (height / max(greatest, 1))).astype(np.int64)
    rows = np.arange(height - 1, -1, -1)[:, None]
    pixels = np.zeros((height, width), np.uint8)
    for kind in reversed(range(len(KINDS))):
        pixels[rows < upto[kind]] = 1 + kind * SHADES
    return pixels, greatest


def _image(pixels: Pixels, top: float, width: float, height: float) -> str:
    data = base64.b64encode(paletted_png(pixels, _palette())).decode("ascii")
    return (
        f'<image x="{_LEFT}" y="{top}" width="{width}" height="{height}" preserveAspectRatio="none"'
        f' image-rendering="optimizeSpeed" href="data:image/png;base64,{data}"/>'
    )


def _palette() -> list[tuple[int, int, int]]:
    """Return the shades of each kind, in the order of `arena_pixels`."""
    shades = []
    for kind in KINDS:
        for shade in range(SHADES):
            factor = 1 - 0.1 * shade
            red, green, blue = (round(part * factor) for part in COLORS[kind])
            shades.append((red, green, blue))
    return shades


def _legend(picture: RunPicture) -> Iterator[str]:
    drawn = kind_numbers(picture.allocations)[picture.buffers.allocation[: picture.buffers.ranged]]
    at = float(_LEFT)
    for number in np.unique(drawn).tolist():
        name = NAMES.get(KINDS[number], KINDS[number])
        color = "#" + bytes(COLORS[KINDS[number]]).hex()
        yield f'<rect x="{at}" y="55" width="11" height="11" rx="2" fill="{color}"/>'
        yield _text(at + 16, 65, name)
        at += 34 + 6.6 * len(name)


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    attributes = f' class="{style}"' if style else ""
    if anchor != "start":
        attributes += f' text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}"{attributes}>{escape(text)}</text>'


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most // 2) + 1 :]}"


def _byte_ticks(greatest: int, most: int) -> Iterator[int]:
    """Yield round sizes, powers of two apart, of which at most `most` lie between 0 and the greatest."""
    step = 1
    while step * most < greatest:
        step *= 2
    yield from range(0, greatest + 1, step)


def _slot_ticks(span: int, most: int) -> Iterator[int]:
    """Yield round numbers of slots, at most `most` steps apart."""
    step, factors = 1, (2, 2.5, 2)
    at = 0
    while step * most < span:
        step = int(step * factors[at % 3])
        at += 1
    yield from range(0, span, step)


def _short(size: int) -> str:
    return human_bytes(size).replace(".00 ", " ").replace(".0 ", " ")
