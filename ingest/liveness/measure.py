"""How many bytes are live at each slot of the schedule: the union of the addresses, each byte once.

Live ranges are closed, so an operand and the result that reads it both count at the slot of the reader:
the hardware needs both. Values share bytes where one is an alias or an in-place update of the other, which
are live together in one slot, and where they lie in different branches of a conditional, which can be live
together in many. Whatever they share, at every slot

    live bytes = sum(gained of the values started by then) - sum(size - handover of the values ended before)

for a whole run and for each of its allocations (see `ingest.liveness.union`).
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, compress, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ingest.liveness.union import Rectangles, gains_and_losses

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
    """Result of `measure`; arrays run in parallel to the intervals.

    Attributes:
        peak_time: first slot with the most live bytes; None without ranges.
        peak_bytes: bytes live there; None without ranges.
        gained: bytes that become live at the first slot of an interval.
        handover: bytes of an interval that other values own at its last slot.
        at_peak: bytes of an interval that count at the peak, `NOT_LIVE` where it is not live there; bytes
            that several values hold count for one of them.
        overlaps: pairs of intervals that share bytes in more than a boundary slot, at most one a value.
    """

    peak_time: int | None
    peak_bytes: int | None
    gained: array[int]
    handover: array[int]
    at_peak: array[int]
    overlaps: list[tuple[int, int]]

    def shares(self) -> tuple[array[int], array[int], array[int]]:
        """Return handover_bytes, gained_bytes and peak_bytes of `ranges`; `NOT_LIVE` stands for NULL."""
        return self.handover, self.gained, self.at_peak


NOT_LIVE: Final = -1


def measure(intervals: Intervals, slots: int) -> Liveness:
    """Measure the live bytes of one run.

    Args:
        intervals: every value that has a range.
        slots: length of the schedule; no interval ends later.
    """
    count = len(intervals.start)
    gained, handover = array("q", intervals.size), array("q", bytes(8 * count))
    overlaps: list[tuple[int, int]] = []
    if len(set(intervals.allocation)) < count:
        for members in by_allocation(intervals.allocation):
            if len(members) > 1:
                _share(intervals, members, gained, handover, overlaps)
    peak = live_peak(intervals, gained, handover, slots)
    if peak is None:
        return Liveness(None, None, gained, handover, array("q"), overlaps)
    at_peak = _at(peak[0], intervals, handover)
    return Liveness(*peak, gained, handover, at_peak, overlaps)


def live_peak(
    intervals: Intervals,
    gained: Sequence[int],
    handover: Sequence[int],
    slots: int,
    among: Collection[int] | None = None,
) -> tuple[int, int] | None:
    """Return the first slot with the most live bytes, and these; None without intervals.

    Args:
        intervals: as for `measure`.
        gained: what `measure` found.
        handover: what `measure` found.
        slots: as for `measure`.
        among: allocations that count; None for all.
    """
    if len(intervals.start) >= _MANY:
        return _peak_of_many(intervals, gained, handover, slots, among)
    owners, _, sizes, starts, ends = intervals
    counts = [True] * len(owners) if among is None else [owner in among for owner in owners]
    if True not in counts:
        return None
    changes = [0] * (slots + 2)
    rows = zip(sizes, starts, ends, gained, handover, strict=True)
    for size, start, end, new, handed in rows if among is None else compress(rows, counts):
        changes[start] += new
        changes[end + 1] -= size - handed
    curve = list(accumulate(changes))
    peak = max(curve)
    return curve.index(peak), peak


def _peak_of_many(
    intervals: Intervals,
    gained: Sequence[int],
    handover: Sequence[int],
    slots: int,
    among: Collection[int] | None,
) -> tuple[int, int] | None:
    import numpy as np  # late: it takes 0.07 s, and few intervals do without

    wanted = None if among is None else np.fromiter(among, np.int64, len(among))
    columns = [np.asarray(column, np.int64) for column in (*intervals, gained, handover)]
    steps = np.zeros(slots + 2, np.int64)
    count = 0
    for first in range(0, len(columns[0]), _AT_ONCE):
        some = [column[first : first + _AT_ONCE] for column in columns]
        if wanted is not None:
            chosen = np.flatnonzero(np.isin(some[0], wanted))
            some = [column[chosen] for column in some]
        _, _, size, start, end, new, handed = some
        count += len(start)
        np.add.at(steps, start, new)
        np.subtract.at(steps, end + 1, size - handed)
    if not count:
        return None
    live = np.cumsum(steps)
    time = int(live.argmax())
    return time, int(live[time])


def allocation_peaks(
    intervals: Intervals, gained: Sequence[int], handover: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """Return, for each allocation with intervals, its first slot with the most live bytes, and these."""
    return {
        intervals.allocation[members[0]]: peak_of(members, intervals, gained, handover)
        for members in by_allocation(intervals.allocation)
    }


def peak_of(
    members: Iterable[int],
    intervals: Intervals,
    gained: Sequence[int],
    handover: Sequence[int],
    until_gone: int = 1,
) -> tuple[int, int]:
    """Return the first slot at which some of the intervals have the most live bytes, and these.

    Args:
        members: numbers of the intervals, one at least.
        intervals: as for `measure`.
        gained: what `measure` found.
        handover: what `measure` found.
        until_gone: slots from the end of an interval to that in which its bytes are gone; 0 if values let go
            at the slot of their last use.
    """
    _, _, sizes, starts, ends = intervals
    changes: defaultdict[int, int] = defaultdict(int)
    for one in members:
        changes[starts[one]] += gained[one]
        changes[ends[one] + until_gone] -= sizes[one] - handover[one]
    live, peak_time, peak_bytes = 0, 0, -1
    for time in sorted(changes):
        live += changes[time]
        if live > peak_bytes:
            peak_time, peak_bytes = time, live
    return peak_time, peak_bytes


def _at(time: int, intervals: Intervals, handover: Sequence[int]) -> array[int]:
    """Return the bytes of each interval that count at a slot, `NOT_LIVE` where it is not live.

    A value that ends there counts with what it does not hand over. Of those that live on, which next to
    never overlap, what two hold counts for the one at the lower address.
    """
    counted = array("q", [NOT_LIVE]) * len(intervals.start)
    ends = intervals.end
    living_on: list[tuple[int, int, int]] = []
    for number, start in enumerate(intervals.start):
        if start <= time <= (end := ends[number]):
            if end == time:
                counted[number] = intervals.size[number] - handover[number]
            else:
                living_on.append((intervals.allocation[number], intervals.offset[number], number))
    living_on.sort()
    inside, reached = -1, 0
    for allocation, offset, number in living_on:
        if allocation != inside:
            inside, reached = allocation, 0
        after = offset + intervals.size[number]
        counted[number] = max(0, after - max(offset, reached))
        reached = max(reached, after)
    return counted


def by_allocation(allocations: Sequence[int]) -> Iterable[Sequence[int]]:
    """Return the numbers of the intervals of each allocation."""
    if len(allocations) < _MANY:
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for number, allocation in enumerate(allocations):
            groups[allocation].append(number)
        return groups.values()
    import numpy as np  # 70 ms

    columns = np.array(allocations, np.int64)
    order = np.argsort(columns, kind="stable")
    borders = [0, *(np.flatnonzero(np.diff(columns[order])) + 1).tolist(), len(order)]
    return (_plain(order[start:end]) for start, end in pairwise(borders))


def _plain(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> array[int]:
    return array("q", numbers.tobytes())


_MANY: Final = 20_000
"""Intervals from which sorting columns takes less memory than lists; below, it takes more time."""
_AT_ONCE: Final = 1 << 18
"""Intervals whose columns are summed together."""


def _share(
    intervals: Intervals,
    members: Sequence[int],
    gained: array[int],
    handover: array[int],
    overlaps: list[tuple[int, int]],
) -> None:
    """Fill in what the values of one allocation share."""
    _, offsets, sizes, starts, ends = intervals
    sized = [number for number in members if sizes[number]]
    if len(sized) < 2:
        return
    pairs: list[tuple[int, int]] = []
    for together in _touching(sized, offsets, sizes):
        if _take_turns(together, intervals, gained, handover):
            continue
        together.sort()
        found = gains_and_losses(
            Rectangles(
                [offsets[number] for number in together],
                [offsets[number] + sizes[number] for number in together],
                [starts[number] for number in together],
                [ends[number] for number in together],
            )
        )
        for number, new, freed in zip(together, found.gained, found.freed, strict=True):
            gained[number] = new
            handover[number] = sizes[number] - freed
        pairs += [(together[one], together[other]) for one, other in found.overlaps]
    overlaps += sorted(pairs, key=lambda pair: (starts[pair[0]], pair[0]))


def _touching(sized: Sequence[int], offsets: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the values of each stretch of addresses that no other value reaches into, of two or more."""
    together: list[int] = []
    reached = 0
    for number in sorted(sized, key=offsets.__getitem__):
        low = offsets[number]
        after = low + sizes[number]
        if low < reached:
            together.append(number)
            if after > reached:
                reached = after
            continue
        if len(together) > 1:
            yield together
        together, reached = [number], after
    if len(together) > 1:
        yield together


def _take_turns(
    together: Sequence[int], intervals: Intervals, gained: array[int], handover: array[int]
) -> bool:
    """Fill in the shares of values that hold the same bytes one after the other, as most do.

    Each may begin in the slot in which the one before ends, whose bytes it then takes over. Return False,
    with nothing filled in, where it is not as simple as that.
    """
    _, offsets, sizes, starts, ends = intervals
    low, size = offsets[together[0]], sizes[together[0]]
    taken_over: list[tuple[int, int]] = []
    before = -1
    start_before = end_before = -1
    for number in sorted(together, key=starts.__getitem__):
        start, end = starts[number], ends[number]
        if (
            offsets[number] != low
            or sizes[number] != size
            or start < end_before
            or start == start_before
            or end == end_before
        ):
            return False
        if start == end_before:
            taken_over.append((before, number))
        before, start_before, end_before = number, start, end
    for before, number in taken_over:
        gained[number] = 0
        handover[before] = size
    return True
