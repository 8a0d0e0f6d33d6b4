"""What a parsed dump is: frozen records with every fact that the text holds.

`ingest.dump.parse.parse_dump` makes a `Dump`; a renderer in the tests prints one back byte for byte. The
bulk import keeps the same facts in columns instead (`ingest.staging.batch`). Sizes and offsets are bytes,
times are slots of the flattened schedule. A fact that the text does not state is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


def allocation_kind(is_parameter: bool, live_out: bool, constant: bool, thread_local: bool) -> str:
    """Return parameter, output, parameter+output (donated), constant, thread-local or temp."""
    if is_parameter:
        return "parameter+output" if live_out else "parameter"
    if live_out:
        return "output"
    if constant:
        return "constant"
    return "thread-local" if thread_local else "temp"


def role_within(is_parameter: bool, constant: bool) -> str:
    """Return what a value is to the program that an allocation holds, unless a parameter defines it.

    Constants lie in allocations of their own.
    """
    if constant:
        return "constant"
    return "donated" if is_parameter else "result"


@dataclass(frozen=True, slots=True)
class Allocation:
    """One BufferAllocation: its header line."""

    index: int
    size: int
    color: int = 0
    page: int | None = None
    parameter_number: int | None = None
    parameter_shape_index: str | None = None
    parameter_shape: str | None = None
    output_shape: str | None = None
    is_constant: bool = False
    is_thread_local: bool = False
    maybe_live_out: bool = False
    is_preallocated_temp: bool = False
    address: str | None = None
    """Heap address that TF <= 2.10 printed, e.g. 0x7f644805cf20; meaningless."""
    unknown: tuple[str, ...] = ()
    """Attributes that this version does not know, verbatim, in print order after the known ones."""

    @property
    def kind(self) -> str:
        """What it is for; see `allocation_kind`."""
        return allocation_kind(
            self.parameter_number is not None, self.maybe_live_out, self.is_constant, self.is_thread_local
        )


@dataclass(frozen=True, slots=True)
class Position:
    """A place where a value appears; `shape_index` is None where none is printed."""

    instruction: str
    shape_index: str | None


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a value as (part of) an operand; `operand_index` is None where none is printed."""

    instruction: str
    operand_number: int
    operand_index: str | None


@dataclass(frozen=True, slots=True)
class Value:
    """One HloValue: its line in an allocation joined with its block under `Used values`."""

    id: int
    allocation_index: int
    instruction: str
    shape_index: str | None
    is_phi: bool | None
    """Merges several definitions; None up to TF 1.14, which prints none."""
    color: int | None
    offset: int
    size: int
    shape: str
    positions: tuple[Position, ...] | None = None
    uses: tuple[Use, ...] | None = None
    instruction_text: str | None = None


@dataclass(frozen=True, slots=True)
class ColorReuse:
    """A line under `reused by buffers of a different color:`."""

    allocation_index: int
    value_id: int
    instruction: str
    shape_index: str | None
    is_phi: bool
    value_color: int | None
    color: int


@dataclass(frozen=True, slots=True)
class LiveRange:
    """A closed interval of slots in which a value is live."""

    instruction: str
    shape_index: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PeakLine:
    """A line of the printed peak list; sizes are unpadded."""

    instruction: str
    shape_index: str | None
    bytes: int
    cumulative: int | None


class StackNode(NamedTuple):
    """A node of the printed stack-trace tree; `parent` is the position of the parent node."""

    depth: int
    parent: int | None
    label: str
    percent: str
    total: int
    current: int
    remaining: int


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning: something unusual but legal."""

    file: str
    line: int | None
    kind: str
    message: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Dump:
    """One dump set, parsed whole.

    `features` names what the text showed; see `ingest.dump.features`. The sections that a set lacks are
    None (`schedule`, `ranges`, `peak_lines`, `stack_nodes`), a section that is there but empty is ().
    """

    features: frozenset[str]
    allocations: tuple[Allocation, ...]
    values: tuple[Value, ...]
    color_reuse: tuple[ColorReuse, ...]
    total_bytes: int | None
    schedule_length: int | None
    schedule: tuple[str, ...] | None
    ranges: tuple[LiveRange, ...] | None
    peak_time: int | None
    peak_lines: tuple[PeakLine, ...] | None
    stack_total: int | None
    stack_nodes: tuple[StackNode, ...] | None
    notices: tuple[Notice, ...]
    content_sha256: str
    text_bytes: int
