"""How many bytes each of many live ranges adds to, and takes from, the union of their addresses.

A live range is a rectangle: addresses [low, high) in slots [start, end], both slots included. Rectangles may
overlap in any way. For each one, `gains_and_losses` returns

    gained: bytes that become live at its start, held by no range that is live there already
    freed: bytes that are live no more after its end

so that at every slot

    union = sum(gained of ranges started by then) - sum(freed of ranges ended before)

Of ranges that start in one slot the first one gains what they share; of ranges that end in one slot the
first one frees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import neg
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Rectangles(NamedTuple):
    """Ranges of one allocation, column-wise; no range is empty, and none ends before it starts."""

    low: Sequence[int]
    high: Sequence[int]
    start: Sequence[int]
    end: Sequence[int]


class Union(NamedTuple):
    """Result of `gains_and_losses`: bytes gained and freed by each, and pairs that overlap.

    `overlaps` holds ranges that share bytes in more than one slot, or in one that is inside of both. It
    names one such pair for each range at most, and is cut short where ranges overlap all over.
    """

    gained: Sequence[int]
    freed: Sequence[int]
    overlaps: list[tuple[int, int]]


def gains_and_losses(ranges: Rectangles) -> Union:
    """Measure ranges of one allocation; O(n log n) for any input."""
    cuts, low, high = _compress(ranges)
    overlaps: list[tuple[int, int]] = []
    gained = _paint(cuts, low, high, ranges.start, ranges.end, overlaps)
    if gained is not None:
        # What is freed is what is gained when time runs backwards.
        freed = _paint(cuts, low, high, [*map(neg, ranges.end)], [*map(neg, ranges.start)], [])
        if freed is not None:
            return Union(gained, freed, overlaps)
    return Union(*_count(cuts, low, high, ranges.start, ranges.end), overlaps)


def _compress(ranges: Rectangles) -> tuple[list[int], list[int], list[int]]:
    """Return all borders in ascending order, and for each range the numbers of its two borders."""
    if len(ranges.low) < _MANY:
        cuts = sorted({*ranges.low, *ranges.high})
        number = {cut: at for at, cut in enumerate(cuts)}
        return cuts, [number[one] for one in ranges.low], [number[one] for one in ranges.high]
    import numpy as np  # late: it takes 0.07 s, and few ranges do without

    borders: np.ndarray[Any, np.dtype[np.int64]] = np.concatenate(
        [np.asarray(ranges.low, np.int64), np.asarray(ranges.high, np.int64)]
    )
    distinct, numbers = np.unique(borders, return_inverse=True)
    count = len(ranges.low)
    return distinct.tolist(), numbers[:count].tolist(), numbers[count:].tolist()


_MANY: Final = 20_000
"""Ranges from which NumPy sorts faster than a list."""


def _paint(
    cuts: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    start: Sequence[int],
    end: Sequence[int],
    overlaps: list[tuple[int, int]],
) -> list[int] | None:
    """Return the bytes that each range gains; None if that takes too many steps.

    The addresses are parted into pieces, each painted with the range that holds it the longest. A range
    walks over the pieces below it and paints those that it outlasts, so that they become one. Where ranges
    take turns, as nearly all do, every piece is painted over once: 2 to 4 steps a range.
    """
    count = len(low)
    last = len(cuts) - 1  # pieces start at 0 .. last - 1
    gained = [0] * count
    stop = [last] * (last + 1)
    until = [min(start) - 1] * (last + 1)
    owner = [-1] * (last + 1)
    begins = _Marks(last + 1)
    begins.add(0)
    steps = _STEPS * count
    for number in sorted(range(count), key=start.__getitem__):
        at, to, opened, closed = low[number], high[number], start[number], end[number]
        before = begins.last_up_to(at)
        if before < at:
            stop[at], until[at], owner[at] = stop[before], until[before], owner[before]
            stop[before] = at
            begins.add(at)
        painted = other = -1
        fresh = 0
        while at < to:
            steps -= 1
            after, held = stop[at], until[at]
            if after > to:
                stop[to], until[to], owner[to] = after, held, owner[at]
                begins.add(to)
                after = stop[at] = to
            if held < opened:
                fresh += cuts[after] - cuts[at]
            elif held > opened and closed > opened:
                other = owner[at]
            if held >= closed:
                painted = -1
            elif painted < 0:
                painted, until[at], owner[at] = at, closed, number
            else:
                stop[painted] = after
                begins.discard(at)
            at = after
        if steps < 0:
            return None
        if other >= 0:
            overlaps.append((number, other))
        gained[number] = fresh
    return gained


_STEPS: Final = 16
"""Steps for each range after which another algorithm is used; real dumps take 4 at most."""


class _Marks:
    """A set of small numbers that finds the last one up to a given one: a bitmap with a summary."""

    def __init__(self, size: int) -> None:
        self._words = [0] * ((size >> _SHIFT) + 1)
        self._summary = 0

    def add(self, number: int) -> None:
        at = number >> _SHIFT
        self._words[at] |= _BIT[number & _MASK]
        self._summary |= 1 << at

    def discard(self, number: int) -> None:
        at = number >> _SHIFT
        self._words[at] &= ~_BIT[number & _MASK]
        if not self._words[at]:
            self._summary &= ~(1 << at)

    def last_up_to(self, number: int) -> int:
        at = number >> _SHIFT
        found = self._words[at] & _UP_TO[number & _MASK]
        if not found:
            at = (self._summary & ((1 << at) - 1)).bit_length() - 1
            found = self._words[at]
        return (at << _SHIFT) + found.bit_length() - 1


_SHIFT: Final = 9
_MASK: Final = (1 << _SHIFT) - 1
_BIT: Final = [1 << bit for bit in range(1 << _SHIFT)]
_UP_TO: Final = [(2 << bit) - 1 for bit in range(1 << _SHIFT)]


def _count(
    cuts: Sequence[int], low: Sequence[int], high: Sequence[int], start: Sequence[int], end: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the bytes that each range gains and frees, for ranges that overlap all over.

    A segment tree over the addresses counts how many ranges cover each node and how many bytes are covered
    below it: some 40 steps for each start and end, whatever the ranges.
    """
    size = len(cuts) - 1
    length = [0] * size + [right - left for left, right in pairwise(cuts)]
    for node in range(size - 1, 0, -1):
        length[node] = length[2 * node] + length[2 * node + 1]
    counts = [0] * (2 * size)
    covered = [0] * (4 * size)  # below the leaves nothing is

    def change(number: int, by: int) -> int:
        before = covered[1]
        first, last = low[number] + size, high[number] + size
        left, right = first, last
        while left < right:
            if left & 1:
                counts[left] += by
                covered[left] = length[left] if counts[left] else covered[2 * left] + covered[2 * left + 1]
                left += 1
            if right & 1:
                right -= 1
                counts[right] += by
                covered[right] = (
                    length[right] if counts[right] else covered[2 * right] + covered[2 * right + 1]
                )
            left >>= 1
            right >>= 1
        for leaf in (first, last - 1):
            node = leaf >> 1
            while node:
                covered[node] = length[node] if counts[node] else covered[2 * node] + covered[2 * node + 1]
                node >>= 1
        return covered[1] - before

    count = len(low)
    gained, freed = [0] * count, [0] * count
    # The last of those that end in a slot goes first, so that what they share is freed by the first.
    ending = sorted(range(count - 1, -1, -1), key=end.__getitem__)
    ended = 0
    for number in sorted(range(count), key=start.__getitem__):
        while end[ending[ended]] < start[number]:
            freed[ending[ended]] = -change(ending[ended], -1)
            ended += 1
        gained[number] = change(number, 1)
    for number in ending[ended:]:
        freed[number] = -change(number, -1)
    return gained, freed
