"""Read a BufferAssignmentProto off the wire; `ingest.hlo.placement` joins it with the module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from ingest.hlo import messages
from ingest.hlo.assignment import HeapEvent, PeakBuffers
from ingest.hlo.fields import as_text, pieces
from ingest.hlo.wire import Field, Wire

_EVENTS: Final[tuple[Literal["alloc", "free", "share"], ...]] = ("alloc", "free", "share")
# BufferAssignmentProto
_ALLOCATIONS: Final = 3
_TRACES: Final = 4


class AssignmentReader:
    """Collect what an assignment's message holds.

    Attributes:
        found: there is such a message.
        allocations: Allocation messages.
        buffers: LogicalBuffer messages.
        aliases: BufferAlias messages.
        assigned: for each value the index of its allocation and the Assigned message.
        traces: whether a heap trace is of the whole module, and its events.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.found = False
        self.allocations: list[Any] = []
        self.peak_buffers: list[PeakBuffers] = []
        self.traces: list[tuple[bool, tuple[HeapEvent, ...]]] = []
        self.buffers: list[Any] = []
        self.aliases: list[Any] = []
        self.assigned: dict[int, tuple[int, Any]] = {}

    def tells_aliased(self) -> bool:
        """Say whether something shows a release that writes is_parameter_aliased_with_output.

        It writes true alone (jaxlib 0.7 and later); what no parameter has there looks like what an older
        release never had. Element types of what is assigned came after it (0.8), peak buffers too (0.10.2).
        """
        return (
            bool(self.peak_buffers)
            or any(one.is_aliased for one in self.allocations)
            or any(one.element_type for _, one in self.assigned.values())
        )

    def read(self, field: Field) -> None:
        """Read the assignment's message."""
        wire = self._wire
        self.found = True
        for piece in pieces(wire, field, messages.Assignment, (_ALLOCATIONS, _TRACES)):
            if not isinstance(piece, Field):
                self._take(piece)
            elif piece.number == _ALLOCATIONS:
                self._take_allocation(tuple(pieces(wire, piece, messages.Allocation)))
            else:
                self._take_trace(pieces(wire, piece, messages.HeapTrace))

    def _take(self, assignment: Any) -> None:
        """Take an assignment, or a piece of one."""
        self._wire.count(len(assignment.buffers) + len(assignment.aliases) + len(assignment.peak_buffers))
        self.buffers += assignment.buffers
        self.aliases += assignment.aliases
        for allocation in assignment.allocations:
            self._take_allocation((allocation,))
        for trace in assignment.traces:
            self._take_trace((trace,))
        for peak in assignment.peak_buffers:
            self._wire.count(0, len(peak.logical_buffer_ids))
            self.peak_buffers.append(PeakBuffers(peak.index, tuple(peak.logical_buffer_ids)))

    def _take_allocation(self, parts: Sequence[Any]) -> None:
        """Take an allocation by its pieces."""
        one = parts[0] if parts else messages.Allocation()
        for part in parts[1:]:
            one.MergeFrom(part)
        self._wire.count(1 + len(one.assigned), 16 * len(one.parameter_index))
        self.allocations.append(one)
        index = one.index
        for assigned in one.assigned:
            self.assigned[assigned.logical_buffer_id] = (index, assigned)

    def _take_trace(self, parts: Iterable[Any]) -> None:
        """Take a heap trace by its pieces."""
        events: list[HeapEvent] = []
        whole = False
        self._wire.count()
        for part in parts:
            self._wire.count(len(part.events))
            events += map(self._event, part.events)
            whole = whole or part.whole_module
        self.traces.append((whole, tuple(events)))

    def _event(self, event: Any) -> HeapEvent:
        if not 0 <= event.kind < len(_EVENTS):
            raise self._wire.error(f"an event of the heap simulator has the unknown kind {event.kind}")
        kind = _EVENTS[event.kind]
        return HeapEvent(
            kind,
            event.buffer_id,
            as_text(event.computation_name) or None,
            as_text(event.instruction_name) or None,
            event.share_with_canonical_id if kind == "share" else None,
        )
