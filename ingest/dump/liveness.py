"""How many bytes are live at each slot of the schedule, counted once each.

Live ranges are closed, so an operand and the result that reads it both count at the slot of the reader:
the hardware needs both. Aliases and in-place updates make two values share bytes at exactly that slot;
those bytes are handed over and count once. The live bytes at a slot are therefore

    sum(size of the values live there) - sum(handover of the values that end there)

which is the size of the union of their addresses, as long as no two values overlap in address and, beyond
a shared boundary slot, in time (none does in 5,504 public dumps; where one does, it is told).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Intervals(NamedTuple):
    """Live ranges with the bytes that they hold, column-wise: bytes and slots."""

    allocation: Sequence[int]
    offset: Sequence[int]
    size: Sequence[int]
    start: Sequence[int]
    end: Sequence[int]


class Liveness(NamedTuple):
    """Result of `measure`.

    Attributes:
        peak_time: first slot with the most live bytes; None without ranges.
        peak_bytes: bytes live there; None without ranges.
        handover: for each interval, its bytes that other live values own at its last slot.
        overlaps: pairs of intervals that share bytes beyond a boundary slot, at most one a value.
        is_exact: see below.
    """

    peak_time: int | None
    peak_bytes: int | None
    handover: array[int]
    overlaps: list[tuple[int, int]]
    is_exact: bool = True
    """False if so many values share bytes that not all of it was counted: live bytes are too high."""


def measure(intervals: Intervals, slots: int) -> Liveness:
    """Measure the live bytes of one run.

    Args:
        intervals: every value that has a range.
        slots: length of the schedule; no interval ends later.
    """
    count = len(intervals.start)
    handover = array("q", bytes(8 * count))
    overlaps: list[tuple[int, int]] = []
    work = _Work(_STEPS * count + _FREE_STEPS)
    for members in _by_allocation(intervals.allocation):
        if len(members) > 1:
            sized = array("q", (number for number in members if intervals.size[number]))
            _sweep(intervals, sized, handover, overlaps, work)
    if not count:
        return Liveness(None, None, handover, overlaps)
    if count + slots < _MANY:
        peak_time, peak_bytes = _peak_of_few(intervals, handover, slots)
        return Liveness(peak_time, peak_bytes, handover, overlaps, work.left > 0)
    import numpy as np  # late: it takes 0.07 s, and few intervals do without

    sizes = np.asarray(intervals.size, np.int64)
    ends = np.asarray(intervals.end, np.int64)
    handed = np.frombuffer(handover, np.int64)
    changes = np.zeros(slots + 2, np.int64)
    np.add.at(changes, np.asarray(intervals.start, np.int64), sizes)
    np.subtract.at(changes, ends, handed)
    np.subtract.at(changes, ends + 1, sizes - handed)
    live = np.cumsum(changes)
    peak_time = int(live.argmax())
    return Liveness(peak_time, int(live[peak_time]), handover, overlaps, work.left > 0)


def _peak_of_few(intervals: Intervals, handover: Sequence[int], slots: int) -> tuple[int, int]:
    """Return the first slot with the most live bytes, and these; in plain Python, which is faster for few."""
    changes = [0] * (slots + 2)
    for size, start, end, handed in zip(
        intervals.size, intervals.start, intervals.end, handover, strict=True
    ):
        changes[start] += size
        changes[end] -= handed
        changes[end + 1] -= size - handed
    live = list(accumulate(changes))
    peak = max(live)
    return live.index(peak), peak


class _Work:
    """Steps that may still be spent on values that share bytes: each pair of them takes one."""

    def __init__(self, left: int) -> None:
        self.left = left


_STEPS: Final = 100
"""Steps for each interval; real dumps take 1.1 at most."""
_FREE_STEPS: Final = 100_000


def _by_allocation(allocations: Sequence[int]) -> Iterable[Sequence[int]]:
    """Return the numbers of the intervals of each allocation."""
    if len(allocations) < _MANY:
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for number, allocation in enumerate(allocations):
            groups[allocation].append(number)
        return groups.values()
    import numpy as np

    array = np.array(allocations, np.int64)
    order = np.argsort(array, kind="stable")
    borders = [0, *(np.flatnonzero(np.diff(array[order])) + 1).tolist(), len(order)]
    return (_plain(order[start:end]) for start, end in pairwise(borders))


def _in_order(members: Sequence[int], keys: Sequence[int]) -> Sequence[int]:
    """Return the members sorted by their keys."""
    if len(members) < _MANY:
        return sorted(members, key=keys.__getitem__)
    import numpy as np

    numbers = np.array(members, np.int64)
    return _plain(numbers[np.argsort(np.asarray(keys)[numbers], kind="stable")])


def _plain(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> array[int]:
    return array("q", numbers.tobytes())


_MANY: Final = 20_000
"""Intervals from which sorting columns takes less memory than lists; below, it takes more time."""


def _sweep(
    intervals: Intervals,
    members: Sequence[int],
    handover: array[int],
    overlaps: list[tuple[int, int]],
    work: _Work,
) -> None:
    """Go through one allocation in time order; fill `handover` and `overlaps`."""
    _, offsets, _, start_of, end_of = intervals
    starts, ends = _in_order(members, start_of), _in_order(members, end_of)
    live: list[tuple[int, int]] = []  # (offset, number) of the values that live on beyond the slot
    ended = 0
    for time, group in groupby(starts, key=start_of.__getitem__):
        ending: list[int] = []
        while ended < len(ends) and end_of[ends[ended]] <= time:
            number = ends[ended]
            ended += 1
            if start_of[number] < time:
                del live[bisect_left(live, (offsets[number], number))]
            if end_of[number] == time:
                ending.append(number)
        for number in group:
            if end_of[number] > time:
                shared, other = _shared(intervals, live, number, work)
                if shared:
                    overlaps.append((number, other))
                insort(live, (offsets[number], number))
        if ending:
            _hand_over(intervals, live, ending, handover, work)


def _hand_over(
    intervals: Intervals,
    live: list[tuple[int, int]],
    ending: list[int],
    handover: array[int],
    work: _Work,
) -> None:
    """Set how many bytes of each value that ends in this slot are counted for another value."""
    covered: list[tuple[int, int]] = []  # (start, end) of bytes of ending values, disjoint and sorted
    for number in ending:
        offset, size = intervals.offset[number], intervals.size[number]
        shared, _ = _shared(intervals, live, number, work)
        if len(ending) > 1:
            shared += _cover(covered, offset, offset + size)
        handover[number] = min(shared, size)


def _shared(intervals: Intervals, live: list[tuple[int, int]], number: int, work: _Work) -> tuple[int, int]:
    """Return how many bytes of a value the live values hold, and the number of one of them."""
    _, offsets, sizes, _, _ = intervals
    low = offsets[number]
    high = low + sizes[number]
    shared, other = 0, -1
    at = bisect_right(live, (low, len(offsets)))
    if at:
        left = live[at - 1][1]
        before = min(offsets[left] + sizes[left], high) - low
        if before > 0:
            shared, other = before, left
    first, last = at, min(len(live), at + work.left)
    while at < last and live[at][0] < high:
        offset, other = live[at]
        shared += min(offset + sizes[other], high) - offset
        at += 1
    work.left -= at - first
    return shared, other


def _cover(covered: list[tuple[int, int]], low: int, high: int) -> int:
    """Add [low, high) to the disjoint intervals; return how many of its bytes were there already."""
    first = bisect_left(covered, (low, low))
    if first and covered[first - 1][1] > low:
        first -= 1
    last = first
    shared = 0
    start, end = low, high
    while last < len(covered) and covered[last][0] < high:
        shared += min(covered[last][1], high) - max(covered[last][0], low)
        start, end = min(start, covered[last][0]), max(end, covered[last][1])
        last += 1
    covered[first:last] = [(start, end)]
    return shared
