"""How many bytes are live at each slot of the schedule: the union of the addresses, each byte once.

Live ranges are closed, so an operand and the result that reads it both count at the slot of the reader:
the hardware needs both. Values share bytes where one is an alias or an in-place update of the other, which
are live together in one slot, and where they lie in different branches of a conditional, which can be live
together in many. Whatever they share, at every slot

    live bytes = sum(gained of the values started by then) - sum(size - handover of the values ended before)

for a whole run and for each of its allocations (see `ingest.dump.union`).
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ingest.dump.union import Rectangles, gains_and_losses

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

    def columns(self) -> tuple[Sequence[int | None], ...]:
        """Return handover_bytes, gained_bytes and peak_bytes of `ranges`."""
        peak = [None if counted == NOT_LIVE else counted for counted in self.at_peak]
        return self.handover, self.gained, peak


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
    if among is not None:
        chosen = [number for number, one in enumerate(intervals.allocation) if one in among]
        intervals = Intervals(*([column[number] for number in chosen] for column in intervals))
        gained, handover = ([column[number] for number in chosen] for column in (gained, handover))
    count = len(intervals.start)
    if not count:
        return None
    if count + slots < _MANY:
        changes = [0] * (slots + 2)
        for size, start, end, new, handed in zip(
            intervals.size, intervals.start, intervals.end, gained, handover, strict=True
        ):
            changes[start] += new
            changes[end + 1] -= size - handed
        curve = list(accumulate(changes))
        peak = max(curve)
        return curve.index(peak), peak
    import numpy as np  # late: it takes 0.07 s, and few intervals do without

    steps = np.zeros(slots + 2, np.int64)
    np.add.at(steps, np.asarray(intervals.start, np.int64), np.asarray(gained, np.int64))
    freed = np.asarray(intervals.size, np.int64) - np.asarray(handover, np.int64)
    np.subtract.at(steps, np.asarray(intervals.end, np.int64) + 1, freed)
    live = np.cumsum(steps)
    time = int(live.argmax())
    return time, int(live[time])


def allocation_peaks(
    intervals: Intervals, gained: Sequence[int], handover: Sequence[int]
) -> dict[int, tuple[int, int]]:
    """Return, for each allocation with intervals, its first slot with the most live bytes, and these."""
    if len(intervals.start) < _MANY:
        changes: defaultdict[int, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        for allocation, _, size, start, end, new, handed in zip(*intervals, gained, handover, strict=True):
            changes[allocation][start] += new
            changes[allocation][end + 1] -= size - handed
        return {allocation: _highest(sorted(steps.items())) for allocation, steps in changes.items()}
    import numpy as np

    allocations, _, sizes, starts, ends = (np.asarray(column, np.int64) for column in intervals)
    steps = np.concatenate([np.asarray(gained, np.int64), np.asarray(handover, np.int64) - sizes])
    owners, times = np.concatenate([allocations, allocations]), np.concatenate([starts, ends + 1])
    order = np.lexsort((times, owners))
    owners, times, live = owners[order], times[order], np.cumsum(steps[order])  # back at 0 after each owner
    settled = np.flatnonzero(np.append((np.diff(owners) != 0) | (np.diff(times) != 0), True))
    owners, times, live = owners[settled], times[settled], live[settled]
    best = np.lexsort((times, -live, owners))
    first = best[np.flatnonzero(np.diff(owners[best], prepend=owners[best[:1]] - 1))]
    peaks = zip(times[first].tolist(), live[first].tolist(), strict=True)
    return dict(zip(owners[first].tolist(), peaks, strict=True))


def _highest(changes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the first slot at which the sum of the changes is highest, and that sum."""
    live, peak_time, peak_bytes = 0, 0, -1
    for time, change in changes:
        live += change
        if live > peak_bytes:
            peak_time, peak_bytes = time, live
    return peak_time, peak_bytes


def _at(time: int, intervals: Intervals, handover: Sequence[int]) -> array[int]:
    """Return the bytes of each interval that count at a slot, `NOT_LIVE` where it is not live.

    A value that ends there counts with what it does not hand over. Of those that live on, which next to
    never overlap, what two hold counts for the one at the lower address.
    """
    counted = array("q", [NOT_LIVE]) * len(intervals.start)
    living_on: list[tuple[int, int, int]] = []
    for number, (start, end) in enumerate(zip(intervals.start, intervals.end, strict=True)):
        if start <= time <= end:
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
    import numpy as np

    columns = np.array(allocations, np.int64)
    order = np.argsort(columns, kind="stable")
    borders = [0, *(np.flatnonzero(np.diff(columns[order])) + 1).tolist(), len(order)]
    return (_plain(order[start:end]) for start, end in pairwise(borders))


def _plain(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> array[int]:
    return array("q", numbers.tobytes())


_MANY: Final = 20_000
"""Intervals from which sorting columns takes less memory than lists; below, it takes more time."""


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
    found = gains_and_losses(
        Rectangles(
            [offsets[number] for number in sized],
            [offsets[number] + sizes[number] for number in sized],
            [starts[number] for number in sized],
            [ends[number] for number in sized],
        )
    )
    for number, new, freed in zip(sized, found.gained, found.freed, strict=True):
        gained[number] = new
        handover[number] = sizes[number] - freed
    overlaps += [(sized[one], sized[other]) for one, other in found.overlaps]
