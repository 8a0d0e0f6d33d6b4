"""The heap simulator's steps played back: how many bytes of an arena they hold at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ingest.dump.resident import MainMemory
from ingest.hlo.assignment import HeapEvent, HloProto

__all__ = ["simulated_peak", "traced_resident_peak"]


def traced_resident_peak(memory: MainMemory, proto: HloProto) -> int | None:
    """Return the resident peak of a module without live ranges; see `ingest.dump.resident`.

    None without a trace of its arena, and with several arenas: each has a trace of its own, and how their
    steps interleave is not told. Pointer tables of tuples are in no trace.
    """
    arenas = {
        value.allocation_index
        for value in proto.values
        if value.allocation_index in memory.arenas and not (value.shape or "").startswith("(")
    }
    if not arenas:
        return memory.own_bytes
    traces = [trace.events for trace in proto.heap_traces if trace.allocation_index in arenas]
    if len(arenas) != 1 or len(traces) != 1:
        return None
    sizes = {value.value_id: value.size for value in proto.values}
    return memory.own_bytes + simulated_peak(traces[0], sizes)


def simulated_peak(events: Iterable[HeapEvent], sizes: Mapping[int, int]) -> int:
    """Return the most bytes that are allocated at once.

    A `share` takes over the memory of another value, which then goes with the last value that holds it; it
    may come after that one was freed, and then allocates it again.

    Args:
        events: steps of one trace, in order.
        sizes: bytes by value_id; steps of other values are passed over.
    """
    first: dict[int, int] = {}  # the value whose memory a value has
    holders: Counter[int] = Counter()
    live = peak = 0
    for event in events:
        if event.value_id not in sizes:
            continue
        shared = event.shares_with
        if shared is not None and shared in sizes:
            first[event.value_id] = first.get(shared, shared)
        owner = first.get(event.value_id, event.value_id)
        if event.kind == "free":
            holders[owner] -= 1
            if not holders[owner]:
                live -= sizes[owner]
        else:
            if not holders[owner]:
                live += sizes[owner]
                peak = max(peak, live)
            holders[owner] += 1
    return peak
