"""Read an HloModuleProto: computations, instructions, schedule and aliases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from ingest.hlo import messages
from ingest.hlo.fields import as_index, as_text, as_texts, message, parse, pieces
from ingest.hlo.frames_proto import FrameReader
from ingest.hlo.program import contents_of
from ingest.hlo.records import Alias, Donor, InstructionColumns, ModuleHeader
from ingest.hlo.shape_text import shape_text, tuple_text
from ingest.hlo.wire import Field, Wire

_COMPUTATIONS: Final = 3
_SCHEDULE: Final = 7
_FRAMES: Final = 17
_APART: Final = (_COMPUTATIONS, _SCHEDULE, _FRAMES)
"""Fields of a module that may be large; one computation has its instructions in field 2."""
_INSTRUCTIONS: Final = 2
_MUST_ALIAS: Final = 2
_NO_PROGRAM: Final = (
    "name", "metadata", "id", "operand_ids", "called_computation_ids", "control_predecessor_ids", "sharding",
    "channel_id", "all_reduce_id", "frontend_attributes", "statistics", "original_value",
)  # fmt: skip
"""Fields of an instruction that are not part of the program, or that `ingest.hlo.program` takes otherwise."""

_LARGEST_SHAPE: Final = 1 << 20
"""Bytes of a shape, 40,000 arrays in a tuple. Two bytes may stand for a part, which takes 100 when parsed."""
_SMALL_TEXT: Final = 100
_MOST_SHAPES: Final = 20_000
_SMALL_SHAPES: Final[dict[bytes, str]] = {}
"""Texts of small shapes; modules of one program have the same ones."""


class Computation(NamedTuple):
    """A computation and the rows of its instructions."""

    id: int
    name: str
    root_id: int
    first: int
    end: int


class _Strings(dict[bytes, str]):
    """Strings that come again and again; equal ones share their memory."""

    def __missing__(self, data: bytes) -> str:
        text = self[data] = as_text(data)
        return text


class ModuleReader:
    """Collect what a module's message holds; `ingest.hlo.module.Module` puts names for its ids.

    `ids`, `operand_ids`, `called_ids`, `raw_shapes` and `contents` run parallel to `columns`, in the order of
    the file. `numbers` holds, by row, the number of a parameter and the index of a get-tuple-element that is
    not 0.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.name = ""
        self.entry_name = ""
        self.entry_id: int | None = None
        self.computations: list[Computation] = []
        self.sequences: dict[int, Sequence[int]] = {}
        self.columns = InstructionColumns()
        self.ids: list[int] = []
        self.operand_ids: list[list[int]] = []
        self.called_ids: list[list[int]] = []
        self.raw_shapes: list[bytes] = []
        self.contents: list[bytes] = []
        self.numbers: dict[int, int] = {}
        self.frames = FrameReader(wire)
        self._is_scheduled = False
        self._aliases: list[Alias] = []
        self._donors: list[Donor] = []
        self._channels: dict[int, int] = {}
        self._layout: str | None = None
        self._replica_count: int | None = None
        self._num_partitions: int | None = None
        self._shape_texts: dict[bytes, str] = {}
        self._strings = _Strings()

    def read(self, field: Field) -> None:
        """Read the module's message."""
        wire = self._wire
        for piece in pieces(wire, field, messages.Module, _APART):
            if not isinstance(piece, Field):
                self._take(piece)
            elif piece.number == _COMPUTATIONS:
                self._take_computation(pieces(wire, piece, messages.Computation, (_INSTRUCTIONS,)))
            elif piece.number == _SCHEDULE:
                for part in pieces(wire, piece, messages.Schedule):
                    self._take_schedule(part)
            else:
                for part in pieces(wire, piece, messages.FrameIndex):
                    self.frames.take(part)

    def count(self, records: int, small: int = 0) -> None:
        """Count what is kept besides; see `Budget.spend`, and raises as that."""
        self._wire.count(records, small)

    def header(self) -> ModuleHeader:
        """Return what the head of the module states."""
        return ModuleHeader(
            self.name,
            self._is_scheduled,
            self._num_partitions,
            self._replica_count,
            self._layout,
            tuple(self._aliases),
            tuple(self._donors),
        )

    def _take(self, module: Any) -> None:
        """Take a module, or a piece of one."""
        self.name = as_text(module.name) or self.name
        self.entry_name = as_text(module.entry_computation_name) or self.entry_name
        self.entry_id = module.entry_computation_id or self.entry_id
        self._take_computations(module.computations)
        if module.HasField("program_shape"):
            shape = module.program_shape
            self._layout = f"{{{tuple_text(map(shape_text, shape.parameters))}->{shape_text(shape.result)}}}"
        if module.HasField("schedule"):
            self._take_schedule(module.schedule)
        self._wire.count(len(module.aliases.entries))
        self._aliases += (
            Alias(
                as_index(entry.output_shape_index),
                entry.parameter_number,
                as_index(entry.parameter_shape_index),
                "must" if entry.kind == _MUST_ALIAS else "may",
            )
            for entry in module.aliases.entries
        )
        self._wire.count(len(module.donors.entries))
        self._donors += (
            Donor(entry.parameter_number, as_index(entry.parameter_shape_index))
            for entry in module.donors.entries
        )
        if module.HasField("replicas"):
            self._replica_count = module.replicas.replica_count or None
            self._num_partitions = module.replicas.computation_count or None
        if module.HasField("frames"):
            self.frames.take(module.frames)

    def _take_computations(self, read: Sequence[Any]) -> None:
        """Take whole computations: all their instructions at once, as each call has its cost."""
        first = len(self.ids)
        self._wire.count(len(read))
        self._take_instructions([one for computation in read for one in computation.instructions])
        for computation in read:
            end = first + len(computation.instructions)
            name = as_text(computation.name)
            self.columns.computation += [name] * (end - first)
            self.computations.append(Computation(computation.id, name, computation.root_id, first, end))
            first = end

    def _take_computation(self, parts: Iterable[Any]) -> None:
        """Take a large computation by its pieces; a large instruction is one of them, as a field."""
        first = len(self.ids)
        name, id_, root_id = b"", 0, 0
        self._wire.count()
        for part in parts:
            if isinstance(part, Field):
                self._take_instructions((message(self._wire, part, messages.Instruction),))
            else:
                name, id_, root_id = part.name or name, part.id or id_, part.root_id or root_id
                self._take_instructions(part.instructions)
        end = len(self.ids)
        self.columns.computation += [as_text(name)] * (end - first)
        self.computations.append(Computation(id_, as_text(name), root_id, first, end))

    def _take_instructions(self, read: Sequence[Any]) -> None:
        first, known, columns = len(self.ids), self._strings, self.columns
        names, opcodes = [one.name for one in read], [one.opcode for one in read]
        if not (all(names) and all(opcodes)):
            raise self._wire.error("an instruction has no name or opcode: the file is no HloProto")
        # A slice is a list, in half the time of an iteration over the field.
        operands = [one.operand_ids[:] for one in read]
        called = [one.called_computation_ids[:] for one in read]
        self._wire.count(len(read), sum(map(len, operands)) + sum(map(len, called)))
        shapes = [one.shape for one in read]
        metadata = [one.metadata for one in read]
        columns.instruction += as_texts(names)
        columns.opcode += map(known.__getitem__, opcodes)
        columns.shape += map(self._shape_text, shapes)
        columns.op_name += [known[one.op_name] or None for one in metadata]
        columns.source_file += [known[one.source_file] or None for one in metadata]
        columns.source_line += [one.source_line or None for one in metadata]
        columns.stack_frame_id += [one.stack_frame_id or None for one in metadata]
        self.ids += [one.id for one in read]
        self.operand_ids += operands
        self.called_ids += called
        self.raw_shapes += shapes
        for row, one in enumerate(read, first):
            if number := one.parameter_number or one.tuple_index:
                self.numbers[row] = number
        self.contents += map(self._content, read)

    def _content(self, instruction: Any) -> bytes:
        """Return what an instruction is, names and numbers aside; takes these from it."""
        channel = instruction.channel_id or instruction.all_reduce_id
        any(map(instruction.ClearField, _NO_PROGRAM))  # all of them, as none returns anything
        content = instruction.SerializeToString(deterministic=True)
        if channel:
            content += b"%d" % self._channels.setdefault(channel, len(self._channels))
        return contents_of(content)

    def _shape_text(self, data: bytes) -> str:
        text = self._shape_texts.get(data) or _SMALL_SHAPES.get(data)
        if text is None:
            if len(data) > _LARGEST_SHAPE:
                raise self._wire.error(f"a shape of {len(data):,} bytes is larger than any that XLA writes")
            text = self._shape_texts[data] = shape_text(parse(self._wire, data, messages.Shape))
            self._wire.count(0, len(text))
            if len(text) <= _SMALL_TEXT and len(_SMALL_SHAPES) < _MOST_SHAPES:
                _SMALL_SHAPES[data] = text
        return text

    def _take_schedule(self, schedule: Any) -> None:
        self._is_scheduled = True
        for entry in schedule.sequences:
            self._wire.count(1, len(entry.value.instruction_ids))
            self.sequences[entry.key] = tuple(entry.value.instruction_ids)
