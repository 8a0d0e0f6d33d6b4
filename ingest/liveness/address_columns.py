"""Addresses that several of many values lie at: `ingest.liveness.addresses` in NumPy columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from ingest.liveness.addresses import Located, Loop, SharedAddress, entries_of, interrupted_turns

__all__ = ["shared_addresses_of_many"]

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_AT_ONCE: Final = 1 << 16
"""Addresses that are returned together."""


def shared_addresses_of_many(
    values: Located, loops: Iterable[Loop], *, has_ranges: bool
) -> Iterator[list[SharedAddress]]:
    """Yield what `ingest.liveness.addresses.shared_addresses` returns, some at a time.

    Args:
        values: columns are arrays.
        loops: as for `shared_addresses`.
        has_ranges: as for `shared_addresses`.
    """
    owners, offsets, sizes, _, _, handover = (np.asarray(column, np.int64) for column in values)
    # One key after the other, and rows of one address stay in order.
    order = np.flatnonzero(sizes)
    order = order[np.argsort(offsets[order], kind="stable")]
    order = order[np.argsort(owners[order], kind="stable")]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.diff(owners[order]) != 0
    is_first[1:] |= np.diff(offsets[order]) != 0
    counts = np.diff(np.flatnonzero(is_first), append=len(order))
    order, counts = order[np.repeat(counts > 1, counts)], counts[counts > 1]
    del is_first  # of a gigabyte of text each column here takes 12 MB
    if not len(counts):
        return
    starts = np.cumsum(counts) - counts
    first = order[starts]
    placed = sizes[order]
    turns = placed - handover[order]
    columns: dict[str, Numbers] = {
        "allocation_index": owners[first],
        "offset_bytes": offsets[first],
        "placed_values": counts,
        "slot_bytes": np.maximum.reduceat(placed, starts),
        "placed_bytes": np.add.reduceat(placed, starts),
        "turns": np.add.reduceat((turns != 0).astype(np.int64), starts),
        "turn_bytes": np.add.reduceat(turns, starts),
    }
    del placed, turns
    for (owner, offset), entered in entries_of(values, loops).items():
        low, high = np.searchsorted(columns["allocation_index"], (owner, owner + 1)).tolist()
        at = low + int(np.searchsorted(columns["offset_bytes"][low:high], offset))
        if at == high or columns["offset_bytes"][at] != offset:
            continue
        rows = order[starts[at] : starts[at] + counts[at]].tolist()
        interrupted, size = interrupted_turns(values, rows, entered)
        columns["turns"][at] -= interrupted
        columns["turn_bytes"][at] -= size
    for start in range(0, len(counts), _AT_ONCE):
        cells = {name: column[start : start + _AT_ONCE].tolist() for name, column in columns.items()}
        if not has_ranges:
            cells["turns"] = cells["turn_bytes"] = [None] * len(cells["turns"])
        yield [SharedAddress(*row) for row in zip(*cells.values(), strict=True)]
