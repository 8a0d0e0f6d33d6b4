"""What the HLO text and the protobuf of a module say, as records and, for the many, as columns.

The two readers, `ingest.hlo.text` and `ingest.hlo.proto`, make the same records, so that either file can
stand for the other. A fact that a file does not state is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ingest.dump.records import Notice


@dataclass(frozen=True, slots=True)
class Alias:
    """A part of the entry result that shares a parameter's buffer: a donation.

    Indexes are ShapeIndexes as XLA prints them, `{}` for the whole.
    """

    output_index: str
    parameter_number: int
    parameter_index: str
    kind: Literal["may", "must"]
    """`must`: the compiler relies on it; `may`: the runtime decides."""


@dataclass(frozen=True, slots=True)
class Donor:
    """A part of a parameter whose buffer the program may use for any result: donated, paired with none."""

    parameter_number: int
    parameter_index: str
    """ShapeIndex as XLA prints it."""


@dataclass(frozen=True, slots=True)
class ModuleHeader:
    """What the head of a module states."""

    name: str
    is_scheduled: bool = False
    """On CPU since jaxlib 0.4.36; text and protobuf say the same (corpus)."""
    num_partitions: int | None = None
    """None where it is not stated: texts up to TF 2.6, protobufs without a device assignment."""
    replica_count: int | None = None
    """As num_partitions."""
    entry_computation_layout: str | None = None
    """Shapes with layout of parameters and result, e.g. `{(f32[8]{0})->f32[8]{0}}`; since TF 2.6."""
    aliases: tuple[Alias, ...] = ()
    donors: tuple[Donor, ...] = ()
    """Donations that are in no alias: buffer_donor, since 2023."""


class SourceFrame(NamedTuple):
    """One frame of a Python stack; `parent_frame_id` is the frame that called it, None for the outermost."""

    frame_id: int
    parent_frame_id: int | None
    function: str | None
    file: str | None
    line: int | None
    end_line: int | None = None
    column: int | None = None
    end_column: int | None = None


@dataclass(slots=True)
class InstructionColumns:
    """HLO instructions column-wise, in the order of the file; all lists are equally long.

    100,000 of them take 35 MB here; to make records of them takes half the time of reading again.
    """

    computation: list[str] = field(default_factory=list)
    instruction: list[str] = field(default_factory=list)
    """Names are unique within the module."""
    opcode: list[str] = field(default_factory=list)
    shape: list[str] = field(default_factory=list)
    """With layout, verbatim."""
    operands: list[tuple[str, ...]] = field(default_factory=list)
    """Names of instructions. Where the text leaves out a get-tuple-element (`%x#1`, since jaxlib 0.11) this
    is the instruction that makes the tuple; the protobuf has them all."""
    op_name: list[str | None] = field(default_factory=list)
    stack_frame_id: list[int | None] = field(default_factory=list)
    called_computations: list[tuple[str, ...]] = field(default_factory=list)
    is_root: list[bool] = field(default_factory=list)
    source_file: list[str | None] = field(default_factory=list)
    """As the metadata states it (up to jaxlib 0.7); see `ingest.hlo.frames` for what a frame says."""
    source_line: list[int | None] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.instruction)


class InPlace(NamedTuple):
    """A part of an operand that a part of the result overwrites; parts are ShapeIndexes."""

    operand: int
    part: tuple[int, ...]
    result: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Links:
    """What else an HLO text says of how its instructions hang together, by row.

    Attributes:
        numbers: the number of a parameter, or which element a get-tuple-element takes, where it is not 0.
        elements: for each operand the part that it is of the instruction named (`%x#1`), () for the whole;
            for rows with such operands.
        in_place: what `output_to_operand_aliasing` states.
    """

    numbers: dict[int, int] = field(default_factory=dict)
    elements: dict[int, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    in_place: dict[int, tuple[InPlace, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HloText:
    """An HLO module's text, read whole.

    `problems` lists what could not be read; everything else stands.
    """

    header: ModuleHeader
    frames: tuple[SourceFrame, ...]
    """By ascending frame_id; () also where the text has no tables (before jaxlib 0.8)."""
    instructions: InstructionColumns
    entry_computation: str | None
    program_sha256: str | None
    """Fingerprint of the program, see `ingest.hlo.program`; None where a part cannot be read."""
    problems: tuple[Notice, ...]
    content_sha256: str
    """Of the uncompressed bytes, hexadecimal."""
    text_bytes: int
    """Uncompressed."""
    links: Links | None = None
    """None unless they were asked for."""
