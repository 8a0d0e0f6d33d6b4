"""Read an HloModuleProto: computations, instructions, schedule and aliases."""

from __future__ import annotations

from typing import Final, NamedTuple

from ingest.hlo import messages
from ingest.hlo.fields import as_index, as_text, message, number, parse, string, stripped, within
from ingest.hlo.frames_proto import FrameReader
from ingest.hlo.records import Alias, InstructionColumns, ModuleHeader
from ingest.hlo.shape_text import shape_text, tuple_text
from ingest.hlo.wire import BYTES, Field, Wire

__all__ = ["Computation", "ModuleReader"]

_LARGE: Final = 1 << 20
"""Bytes from which an instruction loses what is not wanted (constants, configurations) before parsing."""

_WANTED: Final = frozenset(messages.Instruction.DESCRIPTOR.fields_by_number)
_MUST_ALIAS: Final = 2


class Computation(NamedTuple):
    """A computation and the rows of its instructions."""

    id: int
    name: str
    root_id: int
    first: int
    end: int


class ModuleReader:
    """Collect what a module's message holds; `ingest.hlo.module.Module` puts names for its ids.

    `ids`, `operand_ids`, `called_ids` and `raw_shapes` run parallel to `columns`, in the order of the file.
    `numbers` holds, by row, the number of a parameter and the index of a get-tuple-element if it is not 0.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.name = ""
        self.entry_name = ""
        self.entry_id: int | None = None
        self.computations: list[Computation] = []
        self.sequences: dict[int, tuple[int, ...]] = {}
        self.columns = InstructionColumns()
        self.ids: list[int] = []
        self.operand_ids: list[tuple[int, ...]] = []
        self.called_ids: list[tuple[int, ...]] = []
        self.raw_shapes: list[bytes] = []
        self.numbers: dict[int, int] = {}
        self.frames = FrameReader(wire)
        self._is_scheduled = False
        self._aliases: list[Alias] = []
        self._layout: str | None = None
        self._replica_count: int | None = None
        self._num_partitions: int | None = None
        self._shape_texts: dict[bytes, str] = {}
        self._strings: dict[bytes, str] = {}

    def read(self, field: Field) -> None:
        """Read the module's message."""
        wire = self._wire
        for part in within(wire, field):
            match part.number:
                case 1:
                    self.name = string(wire, part)
                case 2:
                    self.entry_name = string(wire, part)
                case 3:
                    self._read_computation(part)
                case 4:
                    self._read_program_shape(part)
                case 6:
                    self.entry_id = number(wire, part)
                case 7:
                    self._is_scheduled = True
                    self._read_schedule(part)
                case 8:
                    self._read_aliases(part)
                case 15:
                    replicas = message(wire, part, messages.Replicas)
                    self._replica_count = replicas.replica_count or None
                    self._num_partitions = replicas.computation_count or None
                case 17:
                    self.frames.read(part)

    def header(self) -> ModuleHeader:
        """Return what the module tells of itself."""
        return ModuleHeader(
            self.name,
            self._is_scheduled,
            self._num_partitions,
            self._replica_count,
            self._layout,
            tuple(self._aliases),
        )

    def _read_computation(self, field: Field) -> None:
        wire, first = self._wire, len(self.ids)
        name, id_, root_id = "", 0, 0
        for part in within(wire, field):
            match part.number:
                case 1:
                    name = string(wire, part)
                case 2:
                    self._read_instruction(part)
                case 5:
                    id_ = number(wire, part)
                case 6:
                    root_id = number(wire, part)
        self.computations.append(Computation(id_, name, root_id, first, len(self.ids)))
        self.columns.computation += [name] * (len(self.ids) - first)

    def _read_instruction(self, field: Field) -> None:
        wire, columns, known = self._wire, self.columns, self._known
        if field.wire_type == BYTES and field.value > _LARGE:
            read = parse(wire, stripped(wire, field, _WANTED), messages.Instruction)
        else:
            read = message(wire, field, messages.Instruction)
        if not read.name or not read.opcode:
            raise wire.error("an instruction has no name or opcode: the file is no HloProto")
        columns.instruction.append(as_text(read.name))
        columns.opcode.append(known(read.opcode))
        columns.shape.append(self._shape_text(read.shape))
        metadata = read.metadata
        columns.op_name.append(known(metadata.op_name) or None)
        columns.source_file.append(known(metadata.source_file) or None)
        columns.source_line.append(metadata.source_line or None)
        columns.stack_frame_id.append(metadata.stack_frame_id or None)
        self.ids.append(read.id)
        self.operand_ids.append(tuple(read.operand_ids))
        self.called_ids.append(tuple(read.called_computation_ids))
        self.raw_shapes.append(read.shape)
        number_ = read.parameter_number or read.tuple_index
        if number_:
            self.numbers[len(self.ids) - 1] = number_

    def _known(self, data: bytes) -> str:
        """Decode a string that comes again and again; equal ones share their memory."""
        text = self._strings.get(data)
        if text is None:
            text = self._strings[data] = as_text(data)
        return text

    def _shape_text(self, data: bytes) -> str:
        text = self._shape_texts.get(data)
        if text is None:
            text = self._shape_texts[data] = shape_text(parse(self._wire, data, messages.Shape))
        return text

    def _read_program_shape(self, field: Field) -> None:
        wire = self._wire
        parameters, result = [], ""
        for part in within(wire, field):
            if part.number == 1:
                parameters.append(shape_text(message(wire, part, messages.Shape)))
            elif part.number == 2:
                result = shape_text(message(wire, part, messages.Shape))
        self._layout = f"{{{tuple_text(parameters)}->{result}}}"

    def _read_schedule(self, field: Field) -> None:
        wire = self._wire
        for entry in within(wire, field):
            if entry.number == 1:
                key, ids = 0, ()
                for part in within(wire, entry):
                    if part.number == 1:
                        key = number(wire, part)
                    elif part.number == 2:
                        ids = tuple(message(wire, part, messages.Sequence).instruction_ids)
                self.sequences[key] = ids

    def _read_aliases(self, field: Field) -> None:
        for part in within(self._wire, field):
            if part.number == 1:
                entry = message(self._wire, part, messages.Alias)
                self._aliases.append(
                    Alias(
                        as_index(entry.output_shape_index),
                        entry.parameter_number,
                        as_index(entry.parameter_shape_index),
                        "must" if entry.kind == _MUST_ALIAS else "may",
                    )
                )
