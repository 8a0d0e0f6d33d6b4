"""Read a BufferAssignmentProto: values with their places, positions, allocations and heap traces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ingest.hlo import messages
from ingest.hlo.assignment import (
    BufferAlias,
    HeapEvent,
    HeapTrace,
    PeakBuffers,
    ProtoAllocation,
    ProtoValue,
)
from ingest.hlo.fields import as_index, as_text, message, number, within
from ingest.hlo.module import Module
from ingest.hlo.shape_text import dtype_of
from ingest.hlo.wire import VARINT, Field, Wire

__all__ = ["AssignmentReader"]

_EVENTS: Final = ("alloc", "free", "share")
_MERGING: Final = frozenset({"while", "conditional"})
_FLAGS: Final = {3: "thread_local", 5: "parameter", 7: "live_out", 11: "tuple", 12: "constant", 13: "aliased"}


class AssignmentReader:
    """Collect what an assignment's message holds; instructions are found when the module is read."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.found = False
        self.allocations: list[ProtoAllocation] = []
        self.peak_buffers: list[PeakBuffers] = []
        self._traces: list[tuple[bool, tuple[HeapEvent, ...]]] = []
        self._buffers: list[Any] = []
        self._aliases: list[Any] = []
        self._assigned: dict[int, tuple[int, Any]] = {}

    def read(self, field: Field) -> None:
        """Read the assignment's message."""
        wire = self._wire
        self.found = True
        for part in within(wire, field):
            match part.number:
                case 1:
                    self._buffers.append(message(wire, part, messages.LogicalBuffer))
                case 2:
                    self._aliases.append(message(wire, part, messages.BufferAlias))
                case 3:
                    self._read_allocation(part)
                case 4:
                    self._read_trace(part)
                case 5:
                    peak = message(wire, part, messages.PeakBuffers)
                    self.peak_buffers.append(PeakBuffers(peak.index, tuple(peak.logical_buffer_ids)))

    def values(self, module: Module) -> Iterator[ProtoValue]:
        """Yield the values that have an allocation, by ascending id."""
        for buffer in sorted(self._buffers, key=lambda buffer: buffer.id):
            place = self._assigned.get(buffer.id)
            if place is None:
                module.problem(f"value {buffer.id} is in no allocation")
                continue
            yield self._value(module, buffer, *place)
        known = {buffer.id for buffer in self._buffers}
        for id_ in self._assigned.keys() - known:
            module.problem(f"allocation {self._assigned[id_][0]} holds the unknown value {id_}")

    def _value(self, module: Module, buffer: Any, allocation: int, assigned: Any) -> ProtoValue:
        location, columns = buffer.defined_at, module.columns
        row = module.row_of(location.instruction_id, as_text(location.instruction_name))
        index = tuple(location.shape_index)
        if row is None:
            module.problem(f"value {buffer.id} is defined by an instruction that the module lacks")
        return ProtoValue(
            value_id=buffer.id,
            allocation_index=allocation,
            computation=(as_text(location.computation_name) or None)
            if row is None
            else columns.computation[row],
            instruction=as_text(location.instruction_name) if row is None else columns.instruction[row],
            shape_index=as_index(index),
            is_phi=row is not None and _is_phi(module, row),
            color=buffer.color,
            offset=assigned.offset,
            size=assigned.size,
            logical_size=buffer.size,
            shape=None if row is None else module.part_text(row, index),
            opcode=None if row is None else columns.opcode[row],
            element_type=dtype_of(assigned.element_type),
            is_array=row is not None and not columns.shape[row].startswith("("),
        )

    def buffer_aliases(self, module: Module) -> Iterator[BufferAlias]:
        """Yield the pairs of values that share a buffer, as written."""
        ids = {}
        for buffer in self._buffers:
            location = buffer.defined_at
            row = module.row_of(location.instruction_id, as_text(location.instruction_name))
            ids[row, tuple(location.shape_index)] = buffer.id
        for alias in self._aliases:
            location = alias.location
            row = module.row_of(location.instruction_id, as_text(location.instruction_name))
            if row is None:
                module.problem(f"value {alias.source_buffer_id} shares a buffer with an unknown instruction")
                continue
            index = tuple(location.shape_index)
            name = module.columns.instruction[row]
            yield BufferAlias(alias.source_buffer_id, ids.get((row, index)), name, as_index(index))

    def heap_traces(self) -> Iterator[HeapTrace]:
        """Yield the traces.

        The allocation is that of the values. The one that a trace names itself is stale: allocations get
        their final order after it is written (right in 7 of the 156 traces of the corpus).
        """
        for whole, events in self._traces:
            places = {
                self._assigned[event.value_id][0] for event in events if event.value_id in self._assigned
            }
            yield HeapTrace(places.pop() if len(places) == 1 else None, whole, events)

    def _read_allocation(self, field: Field) -> None:
        wire = self._wire
        numbers = {1: 0, 2: 0, 6: 0, 8: 0}
        flags = dict.fromkeys(_FLAGS.values(), False)
        index: list[int] = []
        assigned: list[Any] = []
        for part in within(wire, field):
            if part.number in numbers:
                numbers[part.number] = number(wire, part)
            elif part.number in _FLAGS:
                flags[_FLAGS[part.number]] = bool(number(wire, part))
            elif part.number == 9:
                assigned.append(message(wire, part, messages.Assigned))
            elif part.number == 10:
                index += self._integers(part)
        allocation = ProtoAllocation(
            index=numbers[1],
            size=numbers[2],
            color=numbers[8],
            parameter_number=numbers[6] if flags["parameter"] else None,
            parameter_shape_index=as_index(index) if flags["parameter"] else None,
            is_constant=flags["constant"],
            is_thread_local=flags["thread_local"],
            maybe_live_out=flags["live_out"],
            is_tuple=flags["tuple"],
            is_parameter_aliased_with_output=flags["aliased"],
        )
        self.allocations.append(allocation)
        for item in assigned:
            self._assigned[item.logical_buffer_id] = (allocation.index, item)

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
            match part.number:
                case 1:
                    event = message(wire, part, messages.Event)
                    if not 0 <= event.kind < len(_EVENTS):
                        raise wire.error(f"an event of the heap simulator has the unknown kind {event.kind}")
                    events.append(
                        HeapEvent(
                            _EVENTS[event.kind],
                            event.buffer_id,
                            as_text(event.computation_name) or None,
                            as_text(event.instruction_name) or None,
                            event.share_with_canonical_id if event.kind == 2 else None,
                        )
                    )
                case 2:
                    whole = bool(number(wire, part))
        self._traces.append((whole, tuple(events)))


def _is_phi(module: Module, row: int) -> bool:
    opcode = module.columns.opcode[row]
    if opcode == "parameter":
        return module.columns.computation[row] in module.loop_computations
    return opcode in _MERGING
