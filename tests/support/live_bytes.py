"""Live bytes by brute force: the union of the addresses of what is live, one slot after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby

from ingest.liveness.measure import Intervals


def union_at(time: int, intervals: Intervals) -> dict[int, int]:
    """Return the bytes of each allocation that some interval holds in a slot."""
    live = sorted(
        (allocation, offset, offset + size)
        for allocation, offset, size, start, end in zip(*intervals, strict=True)
        if start <= time <= end
    )
    return {
        allocation: _length((low, high) for _, low, high in places)
        for allocation, places in groupby(live, key=lambda place: place[0])
    }


def _length(places: Iterable[tuple[int, int]]) -> int:
    """Return the length of the union of places in ascending order."""
    total = reached = 0
    for low, high in places:
        total += max(0, high - max(low, reached))
        reached = max(reached, high)
    return total


def union_curves(intervals: Intervals) -> dict[int, dict[int, int]]:
    """Return, for each slot at which something starts or has just ended, the union of each allocation."""
    times = sorted({*intervals.start, *(end + 1 for end in intervals.end)})
    return {time: union_at(time, intervals) for time in times}


def summed_curves(
    intervals: Intervals, gained: Sequence[int], handover: Sequence[int]
) -> dict[int, dict[int, int]]:
    """Return the same as sums of what the intervals gain and give back."""
    changes: defaultdict[int, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for allocation, _, size, start, end, new, handed in zip(*intervals, gained, handover, strict=True):
        changes[start][allocation] += new
        changes[end + 1][allocation] -= size - handed
    live: defaultdict[int, int] = defaultdict(int)
    curves = {}
    for time in sorted(changes):
        for allocation, change in changes[time].items():
            live[allocation] += change
        curves[time] = dict(live)
    return curves


def differences(found: dict[int, dict[int, int]], expected: dict[int, dict[int, int]]) -> list[object]:
    """Return (slot, allocation, bytes found, bytes expected) wherever two curves differ."""
    return [
        (time, allocation, found[time].get(allocation, 0), expected[time].get(allocation, 0))
        for time in expected
        for allocation in {*found[time], *expected[time]}
        if found[time].get(allocation, 0) != expected[time].get(allocation, 0)
    ]
