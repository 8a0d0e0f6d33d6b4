"""How many bytes are live at each slot of the schedule, counted once each.

Live ranges are closed, so an operand and the result that reads it both count at the slot of the reader:
the hardware needs both. Aliases and in-place updates make two values share bytes at exactly that slot;
those bytes are handed over and count once. The live bytes at a slot are therefore

    sum(size of the values live there) - sum(handover of the values that end there)

which is the size of the union of their addresses, as long as no two values overlap in address and, beyond
a shared boundary slot, in time (none does in 5,504 public dumps; where one does, it is told).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple


class Interval(NamedTuple):
    """A live range with the bytes that it holds."""

    allocation: int
    offset: int
    size: int
    start: int
    end: int


class Liveness(NamedTuple):
    """Result of `measure`.

    Attributes:
        peak_time: first slot with the most live bytes; None without ranges.
        peak_bytes: bytes live there; None without ranges.
        handover: for each interval, its bytes that other live values own at its last slot.
        overlaps: pairs of intervals that share bytes beyond a boundary slot, at most one a value.
    """

    peak_time: int | None
    peak_bytes: int | None
    handover: list[int]
    overlaps: list[tuple[int, int]]


def measure(intervals: Sequence[Interval]) -> Liveness:
    """Measure the live bytes of one run.

    Args:
        intervals: every value that has a range; bytes and slots.
    """
    handover = [0] * len(intervals)
    overlaps: list[tuple[int, int]] = []
    by_allocation: defaultdict[int, list[int]] = defaultdict(list)
    for number, interval in enumerate(intervals):
        if interval.size:
            by_allocation[interval.allocation].append(number)
    for members in by_allocation.values():
        if len(members) > 1:
            _sweep(intervals, members, handover, overlaps)
    changes: defaultdict[int, int] = defaultdict(int)
    for interval, handed in zip(intervals, handover, strict=True):
        changes[interval.start] += interval.size
        changes[interval.end] -= handed
        changes[interval.end + 1] -= interval.size - handed
    peak_time: int | None = None
    peak = -1
    live = 0
    for time in sorted(changes):
        live += changes[time]
        if live > peak:
            peak_time, peak = time, live
    return Liveness(peak_time, peak if peak_time is not None else None, handover, overlaps)


def _sweep(
    intervals: Sequence[Interval],
    members: list[int],
    handover: list[int],
    overlaps: list[tuple[int, int]],
) -> None:
    """Go through one allocation in time order; fill `handover` and `overlaps`."""
    starts = sorted(members, key=lambda number: intervals[number].start)
    ends = sorted(members, key=lambda number: intervals[number].end)
    live: list[tuple[int, int]] = []  # (offset, number) of the values that live on beyond the slot
    ended = 0
    for time, group in groupby(starts, key=lambda number: intervals[number].start):
        starting = list(group)
        ending: list[int] = []
        while ended < len(ends) and intervals[ends[ended]].end <= time:
            number = ends[ended]
            ended += 1
            interval = intervals[number]
            if interval.start < time:
                del live[bisect_left(live, (interval.offset, number))]
                if interval.end == time:
                    ending.append(number)
            elif interval.end == time:
                ending.append(number)  # starts and ends in this slot
        for number in starting:
            interval = intervals[number]
            if interval.end > time:
                shared, other = _shared(intervals, live, interval)
                if shared:
                    overlaps.append((number, other))
                insort(live, (interval.offset, number))
        if ending:
            _hand_over(intervals, live, ending, handover)


def _hand_over(
    intervals: Sequence[Interval], live: list[tuple[int, int]], ending: list[int], handover: list[int]
) -> None:
    """Set how many bytes of each value that ends in this slot are counted for another value."""
    covered: list[tuple[int, int]] = []  # (start, end) of bytes of ending values, disjoint and sorted
    for number in ending:
        interval = intervals[number]
        shared, _ = _shared(intervals, live, interval)
        if len(ending) > 1:
            shared += _cover(covered, interval.offset, interval.offset + interval.size)
        handover[number] = min(shared, interval.size)


def _shared(
    intervals: Sequence[Interval], live: list[tuple[int, int]], interval: Interval
) -> tuple[int, int]:
    """Return how many bytes of `interval` the live values hold, and the number of one of them."""
    low, high = interval.offset, interval.offset + interval.size
    shared, other = 0, -1
    at = bisect_right(live, (low, len(intervals)))
    if at:
        number = live[at - 1][1]
        before = min(intervals[number].offset + intervals[number].size, high) - low
        if before > 0:
            shared, other = before, number
    while at < len(live) and live[at][0] < high:
        offset, number = live[at]
        shared += min(offset + intervals[number].size, high) - offset
        other = number
        at += 1
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
