"""Where allocations stand above each other on the one axis of addresses that a picture has."""

from __future__ import annotations

from typing import Final

import numpy as np

from ingest.report.data import Allocations, Ints

KINDS: Final = ("temp", "parameter+output", "parameter", "output", "constant", "thread-local")
"""Kinds of allocations in the order in which pictures stack and name them."""


def kind_numbers(allocations: Allocations) -> Ints:
    """Return the place of each allocation's kind in KINDS, shape (allocations,)."""
    return np.array([KINDS.index(kind) for kind in allocations.kind], np.int64)


def stack(allocations: Allocations) -> tuple[Ints, int]:
    """Stack all allocations: temporary arenas first, of a kind by memory space and the largest first.

    Returns:
        First address of each allocation, shape (allocations,), and the end of the last one. Bytes.
    """
    order = np.lexsort((allocations.index, -allocations.size, allocations.color, kind_numbers(allocations)))
    ends = np.cumsum(allocations.size[order])
    base = np.empty_like(allocations.size)
    base[order] = ends - allocations.size[order]
    return base, int(ends[-1]) if ends.size else 0
