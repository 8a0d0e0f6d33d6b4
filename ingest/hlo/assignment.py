"""A module's buffer assignment as the compiler's protobuf has it.

Sizes and offsets are bytes. Indexes are ShapeIndexes as XLA prints them, `{}` for the whole. What a release
did not write reads as the protobuf's default, so facts that came later are None where the file has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ingest.dump.records import Notice, allocation_kind
from ingest.hlo.records import InstructionColumns, ModuleHeader, SourceFrame


@dataclass(frozen=True, slots=True)
class ProtoAllocation:
    """One BufferAllocation."""

    index: int
    size: int
    color: int
    parameter_number: int | None
    parameter_shape_index: str | None
    parameter_shape: str | None
    """Without layout, as the text prints it: of the whole parameter up to jaxlib 0.7.0, then of the part."""
    output_shape: str | None
    """Shape of the entry result without layout, where this holds its top level."""
    is_constant: bool
    is_thread_local: bool
    maybe_live_out: bool
    is_tuple: bool
    """Holds the pointer table of a tuple; the text does not say so."""
    is_parameter_aliased_with_output: bool | None
    """The module declares the parameter as donated; None where the release may not write this."""

    @property
    def is_preallocated_temp(self) -> bool:
        """Scratch arena: what is nothing else."""
        return not (
            self.parameter_number is not None
            or self.is_constant
            or self.is_thread_local
            or self.maybe_live_out
        )

    @property
    def kind(self) -> str:
        """What it is for; see `ingest.dump.records.allocation_kind`."""
        return allocation_kind(
            self.parameter_number is not None, self.maybe_live_out, self.is_constant, self.is_thread_local
        )


class ProtoValue(NamedTuple):
    """One logical buffer (HloValue) with its place."""

    value_id: int
    allocation_index: int
    computation: str | None
    instruction: str
    shape_index: str
    is_phi: bool
    """Merges several definitions. The protobuf does not say so; it is so for what `while` and `conditional`
    and the parameters of a loop's computations define, and for nothing else (corpus: since TF 1.15)."""
    color: int
    offset: int
    size: int
    """As assigned."""
    logical_size: int
    """As the buffer itself has it."""
    shape: str | None
    """With layout, as XLA prints it; None where the module lacks the instruction."""
    opcode: str | None
    element_type: str | None
    """Of the assigned part, since jaxlib 0.8."""
    is_array: bool
    """The defining instruction has no tuple shape: the text prints no index for it."""


class BufferAlias(NamedTuple):
    """Two values that share one buffer: a while's initial value, its parameter and its result, for one."""

    value_id: int
    alias_id: int | None
    """The other value; None where the place is no value's (TF <= 1.14)."""
    instruction: str
    """Where the other value is defined."""
    shape_index: str


class ProtoPosition(NamedTuple):
    """A place where a value appears, worked out by `ingest.hlo.positions`; the defining place is one."""

    value_id: int
    instruction: str
    shape_index: str


@dataclass(frozen=True, slots=True)
class DerivedLifetimes:
    """What a protobuf implies of when values are live; see `ingest.hlo.live_ranges`.

    Attributes:
        uses: by value_id, (instruction, number of the operand, ShapeIndex) of each use.
        schedule: instruction of each slot; None where the module has no schedule.
        ranges: by value_id, first and last slot, closed; {} without a schedule.
        leaving: ids of the values of the entry result; empty with a schedule, as ranges say it then.
    """

    uses: Mapping[int, tuple[tuple[str, int, str], ...]]
    schedule: tuple[str, ...] | None
    ranges: Mapping[int, tuple[int, int]]
    leaving: frozenset[int] = frozenset()


class HeapEvent(NamedTuple):
    """A step of the heap simulator."""

    kind: Literal["alloc", "free", "share"]
    value_id: int
    computation: str | None
    instruction: str | None
    """Instruction that was being processed."""
    shares_with: int | None
    """Value whose memory a `share` takes over."""


@dataclass(frozen=True, slots=True)
class HeapTrace:
    """Steps that laid out one allocation, in order."""

    allocation_index: int | None
    """None for a trace without events."""
    whole_module: bool
    events: tuple[HeapEvent, ...]


@dataclass(frozen=True, slots=True)
class PeakBuffers:
    """Values that are live at the peak of an allocation (since jaxlib 0.10.2)."""

    allocation_index: int
    value_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScheduledComputation:
    """Order in which the instructions of one computation run."""

    computation: str
    instructions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HloProto:
    """An HloProto file: the module and its buffer assignment.

    `problems` lists what does not fit together; everything else stands.
    """

    header: ModuleHeader
    frames: tuple[SourceFrame, ...]
    """By ascending frame_id."""
    instructions: InstructionColumns
    """Of each scheduled computation in the order of its schedule, else as written."""
    entry_computation: str | None
    program_sha256: str | None
    """Fingerprint of the program, see `ingest.hlo.program`; None where parts do not fit together."""
    schedule: tuple[ScheduledComputation, ...]
    has_assignment: bool
    """The file holds a buffer assignment; protobufs of earlier stages have none."""
    allocations: tuple[ProtoAllocation, ...]
    values: tuple[ProtoValue, ...]
    """By ascending value_id."""
    positions: tuple[ProtoPosition, ...]
    """Ordered by value, the defining place first."""
    lifetimes: DerivedLifetimes | None
    """None unless they were asked for."""
    buffer_aliases: tuple[BufferAlias, ...]
    heap_traces: tuple[HeapTrace, ...]
    peak_buffers: tuple[PeakBuffers, ...]
    problems: tuple[Notice, ...]
    content_sha256: str
    """Of the uncompressed bytes, hexadecimal."""
    proto_bytes: int
    """Uncompressed."""
