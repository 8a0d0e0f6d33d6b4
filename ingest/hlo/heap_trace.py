"""The heap simulator's steps played back: how many bytes of an arena they hold at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ingest.dump.resident import MainMemory
from ingest.hlo.assignment import HeapEvent, HloProto, ProtoValue


def traced_resident_peak(memory: MainMemory, proto: HloProto) -> int | None:
    """Return the resident peak as XProf works it out; see `ingest.dump.resident`.

    The trace is that of the arena in memory space 0; where that has none, the one with the most steps of
    values of color 0, whose arena has a color of its own (GPU, xla_gpu_temp_buffer_use_separate_color).

    None with several arenas, of which XProf takes one, as each has a trace of its own and how their steps
    interleave is not known; and where an arena holds more than pointer tables of tuples and has no trace.
    """
    sizes = {value.value_id: value.size for value in proto.values}
    traces = [trace for trace in proto.heap_traces if trace.allocation_index in memory.arenas]
    if len(traces) > 1:
        return None
    if traces:
        return memory.own_bytes + simulated_peak(traces[0].events, sizes)
    if any(value.allocation_index in memory.arenas and not _is_tuple(value) for value in proto.values):
        return None
    main = {value.value_id for value in proto.values if value.color == 0}
    steps = [sum(event.value_id in main for event in trace.events) for trace in proto.heap_traces]
    if not any(steps):
        return memory.own_bytes
    trace = proto.heap_traces[steps.index(max(steps))]
    return memory.own_bytes + simulated_peak(trace.events, sizes)


def _is_tuple(value: ProtoValue) -> bool:
    return (value.shape or "").startswith("(")


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
