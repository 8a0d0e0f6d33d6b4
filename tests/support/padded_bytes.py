"""The bytes that an array takes with its padding, by the formula of FORMAT 9.

The allocated size that a dump prints is the truth (FORMAT 9 lists exceptions).
"""

from __future__ import annotations

import itertools
import math
import re

from ingest.dump.shapes import parse_shape

_TAIL = re.compile(r"(?<![A-Z])L\(([0-9]+)\)")
_SPLITS = re.compile(r"SC((?:\([0-9]+:[0-9,]*\))+)")
_SPLIT = re.compile(r"\(([0-9]+):([0-9,]*)\)")
_FIRST_TILE = re.compile(r"\(([0-9*,]*)\)")


def padded_bytes(text: str) -> int | None:
    """Return the bytes of a shape.

    None where the formula does not hold: tuples, tokens, unknown types, tiles that combine dimensions.
    """
    shape = parse_shape(text)
    if shape.dimensions is None or shape.element_bits is None or not shape.is_known:
        return None
    attributes = text.partition(":")[2]
    dimensions = list(shape.dimensions)
    splits = _SPLITS.search(attributes)
    for dimension, points in _SPLIT.findall(splits[1]) if splits else ():
        if int(dimension) >= len(dimensions):
            return None
        borders = [0, *map(int, filter(None, points.split(","))), dimensions[int(dimension)]]
        dimensions[int(dimension)] = max(end - start for start, end in itertools.pairwise(borders))
    order = shape.minor_to_major or tuple(reversed(range(len(dimensions))))
    if sorted(order) != list(range(len(dimensions))):
        return None
    minor_first = [dimensions[dimension] for dimension in order]
    if shape.tiling is not None:
        first = _FIRST_TILE.findall(shape.tiling)[0].split(",")
        if not all(edge.isdecimal() and int(edge) for edge in first):
            return None
        tile = [int(edge) for edge in reversed(first)]
        minor_first += [1] * (len(tile) - len(minor_first))
        for place, edge in enumerate(tile):
            minor_first[place] = -(-minor_first[place] // edge) * edge
    tail = _TAIL.search(attributes)
    padding = int(tail[1]) if tail else 1
    elements = -(-math.prod(minor_first) // padding) * padding
    return -(-elements * shape.element_bits // 8)
