"""What each allocation holds: how many values, how full it gets, which values begin and end in it.

Several questions need these figures, and each of them takes a pass over all values. So they are measured
once, by the import, and stored with the allocation.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from ingest.liveness.measure import Intervals, Liveness, allocation_peaks, by_allocation

__all__ = ["NOT_RANGED", "Occupancy", "Placed", "color_peaks", "occupancies"]

NOT_RANGED: Final = -1
"""End of a value whose live range is not known."""


class Placed(NamedTuple):
    """Every value of a run, column-wise, by ascending id.

    Attributes:
        id: of the HloValue.
        allocation: number of the allocation that holds it.
        size: bytes.
        end: last slot at which it is live, or `NOT_RANGED`.
        parameters: ids of the values that parameter instructions define.
    """

    id: Iterable[int]
    allocation: Iterable[int]
    size: Iterable[int]
    end: Iterable[int]
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

    def of(self, *, is_parameter: bool, leaves: bool) -> Occupancy:
        """Return the same for an allocation that holds an entry parameter, or leaves the program, or not."""
        parameter, leaving = self.parameter_value_id, self.live_out_value_id
        return Occupancy(*self[:5], parameter if is_parameter else None, leaving if leaves else None)


class _Peak(NamedTuple):
    time: int | None
    live: int | None
    released: int | None


_EMPTY: Final = Occupancy()
_NO_PEAK: Final = _Peak(None, None, None)


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
    counts, sums = [0] * allocations, [0] * allocations
    first: list[int | None] = [None] * allocations
    last: list[tuple[int, int, int] | None] = [None] * allocations
    parameters: dict[int, int] = {}
    for id_, owner, size, end in zip(*placed[:4], strict=True):
        counts[owner] += 1
        sums[owner] += size
        before = last[owner]
        if before is None:
            first[owner] = id_
            last[owner] = (end, size, id_)
        elif (end, size, id_) > before:
            last[owner] = (end, size, id_)
        if id_ in placed.parameters:
            parameters.setdefault(owner, id_)
    peaks = {} if intervals is None or liveness is None else _peaks(intervals, liveness)
    found = []
    for owner in range(allocations):
        leaving = last[owner]
        if leaving is None:
            found.append(_EMPTY)
            continue
        parameter = parameters.get(owner, first[owner])
        peak = peaks.get(owner, _NO_PEAK)
        found.append(Occupancy(counts[owner], sums[owner], *peak, parameter, leaving[2]))
    return found


def color_peaks(
    intervals: Intervals, liveness: Liveness, colors: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return color, first slot with the most live bytes, and these, of each memory space that holds any.

    Args:
        intervals: the values with a live range.
        liveness: what `ingest.liveness.measure.measure` found for them.
        colors: memory space of each allocation, by its number.
    """
    by_color = intervals._replace(allocation=_chosen(colors, intervals.allocation))
    peaks = allocation_peaks(by_color, liveness.gained, liveness.handover)
    return [(color, time, live) for color, (time, live) in sorted(peaks.items()) if live]


def _peaks(intervals: Intervals, liveness: Liveness) -> dict[int, _Peak]:
    """Return slot and bytes of the peak of each allocation, and its peak if values let go a slot earlier."""
    peaks: dict[int, _Peak] = {}
    together: list[int] = []
    for members in by_allocation(intervals.allocation):
        if len(members) > 1:
            together += members
            continue
        [one] = members
        start, size = intervals.start[one], intervals.size[one]
        released = size if start < intervals.end[one] else 0
        peaks[intervals.allocation[one]] = _Peak(start, size, released)
    if together:
        some = Intervals(*(_chosen(column, together) for column in intervals))
        gained, handover = (_chosen(column, together) for column in (liveness.gained, liveness.handover))
        # What a value frees is then gone in the slot of its end, where it was gone in the next one.
        sooner = some._replace(end=array("q", (end - 1 for end in some.end)))
        released_peaks = allocation_peaks(sooner, gained, handover)
        for owner, (time, live) in allocation_peaks(some, gained, handover).items():
            peaks[owner] = _Peak(time, live, released_peaks[owner][1])
    return peaks


def _chosen(column: Sequence[int], numbers: Iterable[int]) -> array[int]:
    return array("q", map(column.__getitem__, numbers))
