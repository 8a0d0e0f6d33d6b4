"""The resident peak: what a module keeps of memory space 0 at its fullest, if only arenas are reused.

Parameters, results and constants have allocations of their own, which are there from the start to the end.
Temporary arenas count with the bytes live in them, at the slot where these are most. This is the figure that
XProf's memory viewer calls peak heap (openxla/xprof, `hlo_proto_to_memory_visualization_utils.cc`): it adds
the peak of the heap simulator's trace to all allocations that are no arenas. As there, thread-local
scratch and the pointer tables of tuples within an arena do not count: neither is in a trace.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import NamedTuple

from ingest.dump.headers import Header
from ingest.liveness.measure import Intervals, Liveness, live_peak, measure


class MainMemory(NamedTuple):
    """What a module has in memory space 0: bytes of its own allocations, indexes of its arenas."""

    own_bytes: int = 0
    arenas: frozenset[int] = frozenset()

    def __or__(self, other: MainMemory) -> MainMemory:
        """Return both together, for a section read in pieces."""
        return MainMemory(self.own_bytes + other.own_bytes, self.arenas | other.arenas)


def main_memory(headers: Iterable[Header]) -> MainMemory:
    """Part the allocations of memory space 0; arenas of no bytes are left out."""
    own_bytes = 0
    arenas = set()
    for header in headers:
        flags = header.attributes
        if flags.color != 0 or flags.is_thread_local:
            continue
        if flags.parameter_number is not None or flags.maybe_live_out or flags.is_constant:
            own_bytes += header.size
        elif header.size:
            arenas.add(header.allocation)
    return MainMemory(own_bytes, frozenset(arenas))


def resident_peak(
    memory: MainMemory,
    intervals: Intervals | None = None,
    is_tuple: Sequence[int] = (),
    liveness: Liveness | None = None,
    slots: int = 0,
) -> int | None:
    """Return the resident peak, bytes; None where arenas are reused at slots that are not known.

    Args:
        memory: what there is of memory space 0.
        intervals: live ranges, None where the dump has none.
        is_tuple: whether each of them is the pointer table of a tuple.
        liveness: what `measure` found of them.
        slots: length of the schedule.
    """
    if not memory.arenas:
        return memory.own_bytes
    if intervals is None or liveness is None:
        return None
    tables = any(compress((one in memory.arenas for one in intervals.allocation), is_tuple))
    if tables:
        counts = bytes(
            allocation in memory.arenas and not table
            for allocation, table in zip(intervals.allocation, is_tuple, strict=True)
        )
        intervals = Intervals(*(array("q", compress(column, counts)) for column in intervals))
        liveness = measure(intervals, slots)
    peak = live_peak(intervals, liveness.gained, liveness.handover, slots, among=memory.arenas)
    return memory.own_bytes + (peak[1] if peak else 0)
