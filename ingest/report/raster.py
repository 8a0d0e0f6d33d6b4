"""The arena as pixels: addresses over slots, each buffer a rectangle of at least one pixel."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from ingest.report.curve import time_span
from ingest.report.data import RunPicture
from ingest.report.layout import kind_numbers, stack

Pixels = npt.NDArray[np.uint8]

SHADES = 3
"""Shades of one color, by turns, so that neighbours differ."""


def arena_pixels(picture: RunPicture, width: int, height: int) -> Pixels:
    """Draw all buffers with a live range; the largest first, so that no small one is hidden.

    Returns:
        Shape (height, width), address 0 in the last row: 0 where nothing is, else 1 + kind * SHADES + shade.
    """
    buffers = picture.buffers
    ranged = slice(buffers.ranged)
    base, top = stack(picture.allocations)
    pixels = np.zeros((height, width), np.uint8)
    if not top or not buffers.ranged:
        return pixels
    span = time_span(buffers)
    low = base[buffers.allocation[ranged]] + buffers.offset[ranged]
    high = low + buffers.size[ranged]
    left = (buffers.start[ranged] * width) // span
    right = np.maximum(((buffers.end[ranged] + 1) * width) // span, left + 1)
    # In floating point: bytes times pixels may exceed 64 bits.
    upper = height - np.ceil(high * (height / top)).astype(np.int64)
    lower = np.maximum(height - np.floor(low * (height / top)).astype(np.int64), upper + 1)
    upper = np.minimum(np.maximum(upper, 0), height - 1)
    paint = 1 + kind_numbers(picture.allocations)[buffers.allocation[ranged]] * SHADES
    paint += buffers.value_id[ranged] % SHADES
    area = (buffers.end[ranged] - buffers.start[ranged] + 1) * buffers.size[ranged].astype(float)
    drawn = np.flatnonzero(buffers.size[ranged] > 0)
    drawn = drawn[np.argsort(-area[drawn], kind="stable")]
    columns = (one[drawn].tolist() for one in (upper, lower, left, right, paint))
    for above, below, begin, end, number in zip(*columns, strict=True):
        pixels[above:below, begin:end] = number
    return pixels


def paletted_png(pixels: Pixels, palette: list[tuple[int, int, int]]) -> bytes:
    """Write pixels as PNG. Number 0 is transparent, number n has the color `palette[n - 1]`."""
    height, width = pixels.shape
    lines = np.zeros((height, width + 1), np.uint8)  # each line begins with its filter, 0 for none
    lines[:, 1:] = pixels
    colors = bytes([0, 0, 0]) + b"".join(bytes(color) for color in palette)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", colors),
            _chunk(b"tRNS", b"\x00"),
            _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
