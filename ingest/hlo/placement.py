"""Join a buffer assignment that was read from a protobuf with its module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ingest.hlo.assignment import (
    BufferAlias,
    DerivedLifetimes,
    HeapTrace,
    ProtoAllocation,
    ProtoPosition,
    ProtoValue,
)
from ingest.hlo.assignment_proto import AssignmentReader
from ingest.hlo.derivation import Derivation
from ingest.hlo.fields import as_index, as_text
from ingest.hlo.graph import Place
from ingest.hlo.module import Module
from ingest.hlo.records import Alias
from ingest.hlo.shape_text import dtype_of

_MERGING: Final = frozenset({"while", "conditional"})


class _Location(NamedTuple):
    """Where a value is defined; `row` is None where the module lacks the instruction."""

    row: int | None
    instruction: str
    computation: str | None
    part: tuple[int, ...]


class Placement:
    """Values, positions and allocations of a module, with names for ids.

    What does not fit together is reported by `module.problem`.
    """

    def __init__(self, reader: AssignmentReader, module: Module) -> None:
        self._reader = reader
        self._module = module
        self._buffers: list[tuple[Any, _Location]] = sorted(
            ((buffer, self._locate(buffer.defined_at)) for buffer in reader.buffers),
            key=lambda item: int(item[0].id),
        )
        self._definitions = {
            Place(place.row, place.part): int(buffer.id)
            for buffer, place in self._buffers
            if place.row is not None
        }
        self._derivation = Derivation(module, self._definitions)

    def values(self) -> Iterator[ProtoValue]:
        """Yield the values that have an allocation, by ascending id."""
        assigned = self._reader.assigned
        for buffer, place in self._buffers:
            if place.row is None:
                self._module.problem(f"value {buffer.id} is defined by an instruction that the module lacks")
            if buffer.id in assigned:
                yield self._value(buffer, place, *assigned[buffer.id])
            else:
                self._module.problem(f"value {buffer.id} is in no allocation")
        for id_ in sorted(assigned.keys() - {buffer.id for buffer, _ in self._buffers}):
            self._module.problem(f"allocation {assigned[id_][0]} holds the unknown value {id_}")

    def positions(self) -> Iterator[ProtoPosition]:
        """Yield where values appear, ordered by value, each value's defining place first."""
        return self._derivation.positions()

    def lifetimes(self, shared: Iterable[BufferAlias], aliases: Iterable[Alias]) -> DerivedLifetimes:
        """Derive uses, schedule and live ranges.

        Args:
            shared: what `buffer_aliases` yields.
            aliases: donated parameters, from the module's header.
        """
        pairs = ((one.value_id, one.alias_id) for one in shared if one.alias_id is not None)
        return self._derivation.lifetimes(pairs, aliases)

    def buffer_aliases(self) -> Iterator[BufferAlias]:
        """Yield the pairs of values that share a buffer, as written."""
        module, names = self._module, self._module.columns.instruction
        values = self._definitions.get
        for alias in self._reader.aliases:
            location = alias.location
            row = module.row_of(location.instruction_id, location.instruction_name)
            if row is None:
                module.problem(f"value {alias.source_buffer_id} shares a buffer with an unknown one")
                continue
            index = tuple(location.shape_index)
            other = values(Place(row, index))
            yield BufferAlias(alias.source_buffer_id, other, names[row], as_index(index))

    def allocations(self) -> Iterator[ProtoAllocation]:
        """Yield the allocations as written: by ascending index."""
        module = self._module
        root = module.root_rows.get(module.entry_computation or "")
        output = None if root is None else self._derivation.places.value_at(root)
        holder, _ = self._reader.assigned.get(-1 if output is None else output, (None, None))
        parameters = module.parameter_rows(module.entry_computation)
        tells_aliased = self._reader.tells_aliased()
        for raw in self._reader.allocations:
            yield ProtoAllocation(
                index=raw.index,
                size=raw.size,
                color=raw.color,
                parameter_number=raw.parameter_number if raw.is_parameter else None,
                parameter_shape_index=as_index(raw.parameter_index) if raw.is_parameter else None,
                parameter_shape=self._parameter_shape(raw, parameters) if raw.is_parameter else None,
                output_shape=None
                if root is None or raw.index != holder
                else module.part_text(root, (), layout=False),
                is_constant=raw.is_constant,
                is_thread_local=raw.is_thread_local,
                maybe_live_out=raw.maybe_live_out,
                is_tuple=raw.is_tuple,
                is_parameter_aliased_with_output=raw.is_aliased if tells_aliased else None,
            )

    def heap_traces(self) -> Iterator[HeapTrace]:
        """Yield the traces.

        The allocation is that of the values. The one that a trace names itself is stale: allocations get
        their final order after it is written (right in 7 of the 156 traces of the corpus).
        """
        assigned = self._reader.assigned
        for whole, events in self._reader.traces:
            holders = {assigned[event.value_id][0] for event in events if event.value_id in assigned}
            yield HeapTrace(holders.pop() if len(holders) == 1 else None, whole, events)

    def _locate(self, location: Any) -> _Location:
        columns, name = self._module.columns, location.instruction_name
        row = self._module.row_of(location.instruction_id, name)
        index = tuple(location.shape_index)
        if row is None:
            return _Location(None, as_text(name), as_text(location.computation_name) or None, index)
        return _Location(row, columns.instruction[row], columns.computation[row], index)

    def _value(self, buffer: Any, place: _Location, allocation: int, assigned: Any) -> ProtoValue:
        module, columns = self._module, self._module.columns
        row, instruction, computation, part = place
        # By position: names cost as much as the cells.
        return ProtoValue(
            buffer.id,
            allocation,
            computation,
            instruction,
            as_index(part),
            row is not None and self._is_phi(row),
            buffer.color,
            assigned.offset,
            assigned.size,
            buffer.size,
            module.part_text(row, part) if row is not None else None,
            columns.opcode[row] if row is not None else None,
            dtype_of(assigned.element_type),
            row is not None and not columns.shape[row].startswith("("),
        )

    def _is_phi(self, row: int) -> bool:
        opcode = self._module.columns.opcode[row]
        if opcode == "parameter":
            return self._module.columns.computation[row] in self._module.loop_computations
        return opcode in _MERGING

    def _parameter_shape(self, raw: Any, parameters: Mapping[int, int]) -> str | None:
        row = parameters.get(raw.parameter_number)
        if row is None:
            self._module.problem(f"allocation {raw.index} holds the unknown parameter {raw.parameter_number}")
            return None
        # The text came to print the part in the release that split the ids.
        index = tuple(raw.parameter_index) if self._module.has_split_ids else ()
        return self._module.part_text(row, index, layout=False)
