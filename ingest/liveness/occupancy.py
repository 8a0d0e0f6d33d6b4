"""What each allocation holds: how many values, how full it gets, which values begin and end in it.

Several questions need these figures, and each of them takes a pass over all values. So they are measured
once, by the import, and stored with the allocation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from ingest.liveness.measure import Intervals, Liveness, allocation_peaks, by_allocation, peak_of

NOT_RANGED: Final = -1
"""End of a value whose live range is not known."""
LEAVES: Final = 0
"""The same, of a value of the entry result."""


class Placed(NamedTuple):
    """Every value of a run, column-wise, by ascending id.

    Attributes:
        id: of the HloValue.
        allocation: number of the allocation that holds it.
        size: bytes.
        end: last slot at which it is live, `NOT_RANGED` or `LEAVES`.
        parameters: ids of the values that parameter instructions define.
    """

    id: Sequence[int]
    allocation: Sequence[int]
    size: Sequence[int]
    end: Sequence[int]
    parameters: Collection[int]


class Occupancy(NamedTuple):
    """What one allocation holds, named as the columns of `allocations`.

    Attributes:
        placed_values: values placed in it, count.
        placed_bytes: sum of their sizes.
        live_peak_time: first slot with the most bytes live in it; None where no value in it has a range.
        live_peak_bytes: bytes live at that slot, each byte once.
        released_peak_bytes: most bytes live at one slot if values let go at the slot of their last use.
        parameter_value_id: the first value that a parameter instruction defines, else the first value.
        live_out_value_id: the value that lives longest, of these the largest, of these the last one.
    """

    placed_values: int = 0
    placed_bytes: int = 0
    live_peak_time: int | None = None
    live_peak_bytes: int | None = None
    released_peak_bytes: int | None = None
    parameter_value_id: int | None = None
    live_out_value_id: int | None = None

    def of(self, *, is_parameter: bool, leaves: bool) -> tuple[int | None, ...]:
        """Return the cells of an allocation that holds an entry parameter, or leaves the program, or not."""
        parameter, leaving = self.parameter_value_id, self.live_out_value_id
        return (*self[:5], parameter if is_parameter else None, leaving if leaves else None)


_Peak = tuple[int | None, int | None, int | None]
"""Slot of a peak, bytes live there, and the peak if values let go a slot earlier."""

_EMPTY: Final = Occupancy()
_NO_PEAK: Final[_Peak] = (None, None, None)


def occupancies(
    allocations: int, placed: Placed, intervals: Intervals | None, liveness: Liveness | None
) -> list[Occupancy]:
    """Measure what each allocation holds.

    Args:
        allocations: how many there are; they are numbered from 0.
        placed: all values.
        intervals: the values with a live range; None for a dump without ranges.
        liveness: what `ingest.liveness.measure.measure` found for the intervals.
    """
    ids, owners, sizes, ends, parameters = placed
    peaks = {} if intervals is None or liveness is None else _peaks(intervals, liveness)
    alone = dict(zip(owners, zip(ids, sizes, strict=True), strict=True))
    if len(alone) == len(owners):  # as in most tiny dumps, each value has an allocation of its own
        return [
            Occupancy(1, alone[one][1], *peaks.get(one, _NO_PEAK), alone[one][0], alone[one][0])
            if one in alone
            else _EMPTY
            for one in range(allocations)
        ]
    counts = Counter(owners)
    sums = [0] * allocations
    for owner, size in zip(owners, sizes, strict=True):
        sums[owner] += size
    first = dict(zip(reversed(owners), reversed(ids), strict=True))  # ids ascend
    if parameters:
        defined = [(owner, id_) for owner, id_ in zip(owners, ids, strict=True) if id_ in parameters]
        first.update(reversed(defined))
    by_end = sorted(zip(ends, sizes, ids, owners, strict=True))
    leaving = {owner: id_ for _, _, id_, owner in by_end}
    return [
        Occupancy(counts[one], sums[one], *peaks.get(one, _NO_PEAK), first[one], leaving[one])
        if one in leaving
        else _EMPTY
        for one in range(allocations)
    ]


def color_peaks(
    intervals: Intervals, liveness: Liveness, colors: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return color, first slot with the most live bytes, and these, of each memory space that holds any.

    Args:
        intervals: the values with a live range.
        liveness: what `ingest.liveness.measure.measure` found for them.
        colors: memory space of each allocation, by its number.
    """
    if liveness.peak_time is not None and len(set(colors)) == 1:
        return [(colors[0], liveness.peak_time, liveness.peak_bytes)] if liveness.peak_bytes else []
    by_color = intervals._replace(allocation=[colors[one] for one in intervals.allocation])
    peaks = allocation_peaks(by_color, liveness.gained, liveness.handover)
    return [(color, time, live) for color, (time, live) in sorted(peaks.items()) if live]


def _peaks(intervals: Intervals, liveness: Liveness) -> dict[int, _Peak]:
    """Return slot and bytes of the peak of each allocation, and its peak if values let go a slot earlier."""
    owners, _, sizes, starts, ends = intervals
    peaks: dict[int, _Peak] = {
        owner: (start, size, size if start < end else 0)
        for owner, size, start, end in zip(owners, sizes, starts, ends, strict=True)
    }
    if len(peaks) == len(owners):  # each is alone in its allocation
        return peaks
    gained, handover = liveness.gained, liveness.handover
    for members in by_allocation(owners):
        if len(members) > 1:
            time, live = peak_of(members, intervals, gained, handover)
            _, released = peak_of(members, intervals, gained, handover, until_gone=0)
            peaks[owners[members[0]]] = (time, live, released)
    return peaks
