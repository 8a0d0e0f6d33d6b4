"""What each of many allocations holds: the figures of `ingest.liveness.occupancy` in NumPy columns.

A dump of a gigabyte has millions of values, and a Python object for each would take more memory than all
else. What is sorted or summed is taken some hundred thousand rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ingest.liveness.measure import Intervals, Liveness

Numbers = np.ndarray[Any, np.dtype[np.int64]]
ABSENT: Final = -1
"""Stands for None in a column."""


class PlacedColumns(NamedTuple):
    """`ingest.liveness.occupancy.Placed` in arrays.

    Attributes:
        id: of the HloValue, ascending.
        allocation: number of the allocation that holds it.
        size: bytes.
        end: last slot at which it is live, `NOT_RANGED` or `LEAVES`.
        parameters: ids of the values that parameter instructions define, ascending.
    """

    id: Numbers
    allocation: Numbers
    size: Numbers
    end: Numbers
    parameters: Numbers


class OccupancyColumns(NamedTuple):
    """`ingest.liveness.occupancy.Occupancy` of every allocation, `ABSENT` for None."""

    placed_values: Numbers
    placed_bytes: Numbers
    live_peak_time: Numbers
    live_peak_bytes: Numbers
    released_peak_bytes: Numbers
    parameter_value_id: Numbers
    live_out_value_id: Numbers


def occupancy_columns(
    allocations: int, placed: PlacedColumns, intervals: Intervals | None, liveness: Liveness | None
) -> OccupancyColumns:
    """Measure what each allocation holds; arguments as for `ingest.liveness.occupancy.occupancies`."""
    ids, owners, sizes, _, parameters = placed
    placed_bytes = np.zeros(allocations, np.int64)
    np.add.at(placed_bytes, owners, sizes)
    first = np.full(allocations, ABSENT)
    # Of assignments to one place the last one counts, so the smallest id comes last.
    first[owners[::-1]] = ids[::-1]
    of_parameters = parameters[::-1]
    first[owners[np.searchsorted(ids, of_parameters)]] = of_parameters
    time, live, released = (np.full(allocations, ABSENT) for _ in range(3))
    if intervals is not None and liveness is not None:
        groups = np.asarray(intervals.allocation, np.int64)
        for peaks in _peaks(groups, intervals, liveness):
            time[peaks.group], live[peaks.group] = peaks.time, peaks.live
            released[peaks.group] = peaks.released
    return OccupancyColumns(
        np.bincount(owners, minlength=allocations),
        placed_bytes,
        time,
        live,
        released,
        first,
        _leaving(allocations, placed),
    )


def color_peaks_of_many(
    intervals: Intervals, liveness: Liveness, colors: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return the same as `ingest.liveness.occupancy.color_peaks`."""
    groups = np.asarray(colors, np.int64)[np.asarray(intervals.allocation, np.int64)]
    return [
        (color, time, live)
        for peaks in _peaks(groups, intervals, liveness)
        for color, time, live in zip(
            peaks.group.tolist(), peaks.time.tolist(), peaks.live.tolist(), strict=True
        )
        if live
    ]


def _leaving(allocations: int, placed: PlacedColumns) -> Numbers:
    """Return the value of each allocation that lives longest, of these the largest, of these the last."""
    ids, owners, sizes, ends, _ = placed
    longest, largest = (np.full(allocations, ABSENT) for _ in range(2))
    np.maximum.at(longest, owners, ends)
    is_best = ends == longest[owners]
    np.maximum.at(largest, owners[is_best], sizes[is_best])
    is_best &= sizes == largest[owners]
    last = np.full(allocations, ABSENT)
    last[owners[is_best]] = ids[is_best]
    return last


class _Peaks(NamedTuple):
    """Of some groups of intervals: the first slot with the most live bytes, these, and these if values let
    go at the slot of their last use."""

    group: Numbers
    time: Numbers
    live: Numbers
    released: Numbers


def _peaks(groups: Numbers, intervals: Intervals, liveness: Liveness) -> Iterator[_Peaks]:
    """Yield the peaks of all groups, which ascend.

    Args:
        groups: of each interval.
        intervals: as for `occupancy_columns`.
        liveness: as for `occupancy_columns`.
    """
    columns = (intervals.start, intervals.end, intervals.size, liveness.gained, liveness.handover)
    arrays = [np.asarray(column, np.int64) for column in columns]
    order = np.argsort(groups, kind="stable")
    members = np.bincount(groups)
    borders = np.append(0, np.cumsum(members[members > 0]))
    first = 0
    while first < len(order):
        until = int(borders[int(np.searchsorted(borders, first + _AT_ONCE, "right")) - 1])
        if until > first:
            rows = order[first:until]
            yield _peaks_of_some(groups[rows], *(column[rows] for column in arrays))
        else:  # a group larger than that
            until = int(borders[int(np.searchsorted(borders, first, "right"))])
            yield _peak_of_one(int(groups[order[first]]), arrays, order[first:until])
        first = until


_AT_ONCE: Final = 1 << 17
"""Rows that are sorted or summed together."""


def _peaks_of_some(
    groups: Numbers, starts: Numbers, ends: Numbers, sizes: Numbers, gained: Numbers, handover: Numbers
) -> _Peaks:
    changes = np.concatenate([gained, handover - sizes])
    owners = np.concatenate([groups, groups])

    def highest(after: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        times = np.concatenate([starts, after])
        order = np.lexsort((times, owners))
        group, time, live = owners[order], times[order], np.cumsum(changes[order])  # 0 after each group
        settled = np.flatnonzero(np.append((np.diff(group) != 0) | (np.diff(time) != 0), True))
        group, time, live = group[settled], time[settled], live[settled]
        best = np.lexsort((time, -live, group))
        first = best[np.flatnonzero(np.diff(group[best], prepend=group[best[:1]] - 1))]
        return group[first], time[first], live[first]

    group, time, live = highest(ends + 1)
    return _Peaks(group, time, live, highest(ends)[2])


def _peak_of_one(group: int, arrays: Sequence[Numbers], rows: Numbers) -> _Peaks:
    """Sum over all slots: these are fewer than the intervals of a large arena."""
    live = _live(arrays, rows, 1)
    peak = int(live.max())
    starts = arrays[0]
    time = int(live.argmax()) if peak else min(int(starts[some].min()) for some in _parts(rows))
    del live  # of a gigabyte of text 13 MB, as its values when they let go at once
    found = (group, time, peak, int(_live(arrays, rows, 0).max()))
    return _Peaks(*(np.array([one], np.int64) for one in found))


def _live(arrays: Sequence[Numbers], rows: Numbers, held: int) -> Numbers:
    """Return the live bytes at each slot, of values that are held so many slots after their last."""
    starts, ends, sizes, gained, handover = arrays
    live = np.zeros(int(ends.max()) + 2, np.int64)
    for some in _parts(rows):
        np.add.at(live, starts[some], gained[some])
        np.subtract.at(live, ends[some] + held, sizes[some] - handover[some])
    return np.cumsum(live, out=live)


def _parts(rows: Numbers) -> Iterator[Numbers]:
    return (rows[at : at + _AT_ONCE] for at in range(0, len(rows), _AT_ONCE))
