"""Addresses that several of many values lie at: `ingest.liveness.addresses` in NumPy columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import numpy as np

from ingest.liveness.addresses import Located, Loop, SharedAddress, entries_of, interrupted_turns

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_AT_ONCE: Final = 1 << 17
"""Values, about, that are looked at together."""
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
"""Odd, and without a pattern in its bits: neighbours come to different parts."""


def shared_addresses_of_many(
    values: Located, loops: Iterable[Loop], *, has_ranges: bool
) -> Iterator[list[SharedAddress]]:
    """Yield what `ingest.liveness.addresses.shared_addresses` returns, a part after the other.

    Args:
        values: columns are arrays.
        loops: as for `shared_addresses`.
        has_ranges: as for `shared_addresses`.
    """
    numbers = Located(*(np.asarray(column, np.int64) for column in values))  # type: ignore[arg-type]
    entries = entries_of(values, loops)
    parts, has_size = _parts(numbers), np.asarray(numbers.size) != 0
    for part in range(int(parts.max(initial=0)) + 1):
        rows = np.flatnonzero((parts == part) & has_size)
        if found := _shared_by(rows, numbers, entries, has_ranges=has_ranges):
            yield found


def _parts(values: Located) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a part for each value, the same for all of an address, that is sorted and summed by itself.

    Of a gigabyte of text each column of all values takes 14 MB, and sorting them took six.
    """
    owners, offsets = (np.asarray(column).view(np.uint64) for column in values[:2])
    parts = np.empty(len(owners), np.uint8)
    number = min(1 + len(parts) // _AT_ONCE, 255)
    for at in range(0, len(parts), _AT_ONCE):
        some = slice(at, at + _AT_ONCE)
        parts[some] = (((owners[some] * _SPREAD + offsets[some]) * _SPREAD) >> np.uint64(32)) % number
    return parts


def _shared_by(
    order: Numbers, values: Located, entries: Mapping[tuple[int, int], Collection[Loop]], *, has_ranges: bool
) -> list[SharedAddress]:
    """Return the shared addresses of some rows, which are all rows at their addresses that have a size."""
    owners, offsets, sizes, _, _, handover = (cast("Numbers", column) for column in values)
    # One key after the other, and rows of one address stay in order.
    order = order[np.argsort(offsets[order], kind="stable")]
    order = order[np.argsort(owners[order], kind="stable")]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.diff(owners[order]) != 0
    is_first[1:] |= np.diff(offsets[order]) != 0
    counts = np.diff(np.flatnonzero(is_first), append=len(order))
    order, counts = order[np.repeat(counts > 1, counts)], counts[counts > 1]
    if not len(counts):
        return []
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
    for (owner, offset), entered in entries.items():
        low, high = np.searchsorted(columns["allocation_index"], (owner, owner + 1)).tolist()
        at = low + int(np.searchsorted(columns["offset_bytes"][low:high], offset))
        if at == high or columns["offset_bytes"][at] != offset:
            continue  # in another part, or alone
        rows = order[starts[at] : starts[at] + counts[at]].tolist()
        interrupted, size = interrupted_turns(values, rows, entered)
        columns["turns"][at] -= interrupted
        columns["turn_bytes"][at] -= size
    cells = {name: column.tolist() for name, column in columns.items()}
    if not has_ranges:
        cells["turns"] = cells["turn_bytes"] = [None] * len(counts)
    return [SharedAddress(*row) for row in zip(*cells.values(), strict=True)]
