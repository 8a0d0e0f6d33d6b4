"""Read a BufferAssignmentProto off the wire; `ingest.hlo.placement` joins it with the module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from ingest.hlo import messages
from ingest.hlo.assignment import HeapEvent, PeakBuffers
from ingest.hlo.fields import as_text, message, number, within
from ingest.hlo.wire import VARINT, Field, Wire

__all__ = ["AssignmentReader", "RawAllocation"]

_EVENTS: Final[tuple[Literal["alloc", "free", "share"], ...]] = ("alloc", "free", "share")
# BufferAllocationProto
_ASSIGNED, _PARAMETER_INDEX = 9, 10


@dataclass(frozen=True, slots=True)
class RawAllocation:
    """A BufferAllocationProto without what is assigned to it."""

    index: int
    size: int
    color: int
    is_parameter: bool
    parameter_number: int
    parameter_index: tuple[int, ...]
    is_constant: bool
    is_thread_local: bool
    maybe_live_out: bool
    is_tuple: bool
    is_aliased: bool


class AssignmentReader:
    """Collect what an assignment's message holds.

    Attributes:
        found: there is such a message.
        buffers: LogicalBuffer messages.
        aliases: BufferAlias messages.
        assigned: for each value the index of its allocation and the Assigned message.
        traces: whether a heap trace is of the whole module, and its events.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.found = False
        self.allocations: list[RawAllocation] = []
        self.peak_buffers: list[PeakBuffers] = []
        self.traces: list[tuple[bool, tuple[HeapEvent, ...]]] = []
        self.buffers: list[Any] = []
        self.aliases: list[Any] = []
        self.assigned: dict[int, tuple[int, Any]] = {}

    def read(self, field: Field) -> None:
        """Read the assignment's message."""
        wire = self._wire
        self.found = True
        for part in within(wire, field):
            match part.number:
                case 1:
                    self.buffers.append(message(wire, part, messages.LogicalBuffer))
                case 2:
                    self.aliases.append(message(wire, part, messages.BufferAlias))
                case 3:
                    self._read_allocation(part)
                case 4:
                    self._read_trace(part)
                case 5:
                    peak = message(wire, part, messages.PeakBuffers)
                    self.peak_buffers.append(PeakBuffers(peak.index, tuple(peak.logical_buffer_ids)))

    def _read_allocation(self, field: Field) -> None:
        wire = self._wire
        numbers: dict[int, int] = {}
        index: list[int] = []
        assigned: list[Any] = []
        for part in within(wire, field):
            if part.number == _ASSIGNED:
                assigned.append(message(wire, part, messages.Assigned))
            elif part.number == _PARAMETER_INDEX:
                index += self._integers(part)
            elif part.wire_type == VARINT:
                numbers[part.number] = number(wire, part)
        get = numbers.get
        allocation = RawAllocation(
            index=get(1, 0),
            size=get(2, 0),
            color=get(8, 0),
            is_parameter=bool(get(5)),
            parameter_number=get(6, 0),
            parameter_index=tuple(index),
            is_constant=bool(get(12)),
            is_thread_local=bool(get(3)),
            maybe_live_out=bool(get(7)),
            is_tuple=bool(get(11)),
            is_aliased=bool(get(13)),
        )
        self.allocations.append(allocation)
        for item in assigned:
            self.assigned[item.logical_buffer_id] = (allocation.index, item)

    def _integers(self, field: Field) -> list[int]:
        """Return numbers of a repeated field, packed or one by one."""
        if field.wire_type == VARINT:
            return [number(self._wire, field)]
        return [number(self._wire, Field(field.number, VARINT, value)) for value in self._wire.packed(field)]

    def _read_trace(self, field: Field) -> None:
        wire = self._wire
        events: list[HeapEvent] = []
        whole = False
        for part in within(wire, field):
            if part.number == 1:
                events.append(self._event(message(wire, part, messages.Event)))
            elif part.number == 2:
                whole = bool(number(wire, part))
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
