"""Put names for the ids of a module that was read from a protobuf.

An instruction's id is unique in the module; since jaxlib 0.7.2 it is the computation's id in the upper 32
bits and a number within the computation in the lower ones. Protobufs of TensorFlow <= 2.9 name
instructions where later ones give the id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from operator import eq
from typing import Any, Final

from ingest.hlo import messages
from ingest.hlo.assignment import ScheduledComputation
from ingest.hlo.fields import as_text
from ingest.hlo.graph import Graph, Index
from ingest.hlo.module_proto import ModuleReader
from ingest.hlo.program import program_sha256
from ingest.hlo.records import InstructionColumns
from ingest.hlo.shape_text import part_of, shape_indexes, shape_text

_LOCAL: Final = 0xFFFF_FFFF
_MAX_PROBLEMS: Final = 20


class Module(Graph):
    """A module whose instructions can be found by id or name.

    Attributes:
        problems: what does not fit together, as sentences; at most 20.
    """

    def __init__(self, reader: ModuleReader) -> None:
        super().__init__()
        self._reader = reader
        self.columns = reader.columns
        self.numbers = reader.numbers
        self.problems: list[str] = []
        self._row_of_id = {id_: row for row, id_ in enumerate(reader.ids)}
        if len(self._row_of_id) < len(reader.ids):
            self.problem(f"{len(reader.ids) - len(self._row_of_id)} instructions have the id of another one")
        self._parts: dict[tuple[bytes, tuple[int, ...], bool], str | None] = {}
        self._indexes: dict[bytes, tuple[Index, ...]] = {}
        self._parsed: dict[bytes, Any] = {}
        self._name_columns()

    def problem(self, message: str) -> None:
        """Note what does not fit together."""
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(message)

    def row_of(self, id_: int, name: bytes = b"") -> int | None:
        """Return the row of an instruction by its name if it has one, else by its id."""
        return self.row_of_name.get(as_text(name)) if name else self._row_of_id.get(id_)

    def part_text(self, row: int, index: Sequence[int], *, layout: bool = True) -> str | None:
        """Return the text of an instruction's shape at a ShapeIndex; None if it has no such part."""
        if not index and layout:
            return self.columns.shape[row]
        key = (self._reader.raw_shapes[row], tuple(index), layout)
        if key not in self._parts:
            part = part_of(self._shape(row), index)
            text = self._parts[key] = None if part is None else shape_text(part, layout=layout)
            self._reader.count(0, len(text or ""))
        return self._parts[key]

    def _nested_indexes(self, row: int) -> tuple[Index, ...]:
        data = self._reader.raw_shapes[row]
        found = self._indexes.get(data)
        if found is None:
            found = self._indexes[data] = tuple(shape_indexes(self._shape(row)))
        # The same shape again: its places are others.
        self._reader.count(len(found), len(found) * len(found[-1]))
        return found

    @cached_property
    def has_split_ids(self) -> bool:
        """Ids hold the computation's in their upper half: written by jaxlib 0.7.2 or later."""
        return any(id_ > _LOCAL for id_ in self._reader.ids)

    def _shape(self, row: int) -> Any:
        data = self._reader.raw_shapes[row]
        if data not in self._parsed:
            self._parsed[data] = messages.Shape.FromString(data)
        return self._parsed[data]

    @cached_property
    def entry_computation(self) -> str | None:
        """Name of the entry computation."""
        reader = self._reader
        names = (item.name for item in reader.computations if item.id == reader.entry_id)
        return next(names, None) or reader.entry_name or None

    @cached_property
    def scheduled_rows(self) -> dict[str, list[int]]:
        """Rows of each scheduled computation in the order in which they run; computations as in the file.

        A damaged file may hold many computations of one id: the schedule is the first one's.
        """
        sequences, row_of = dict(self._reader.sequences), self._row_of_id
        known: dict[str, list[int]] = {}
        for item in self._reader.computations:
            rows = [row for id_ in sequences.pop(item.id, ()) if (row := row_of.get(id_)) is not None]
            known.setdefault(item.name, rows)
        return {name: rows for name, rows in known.items() if rows}

    def schedule(self) -> Iterator[ScheduledComputation]:
        """Yield the order of instructions of each scheduled computation, in the order of the file."""
        for name, rows in self.scheduled_rows.items():
            yield ScheduledComputation(name, tuple(self.columns.instruction[row] for row in rows))

    def in_order(self) -> InstructionColumns:
        """Return the instructions, each scheduled computation's in the order in which they run."""
        order = self._order
        if all(map(eq, order, range(len(order)))):
            return self.columns
        return InstructionColumns(*([*map(column.__getitem__, order)] for column in _lists(self.columns)))

    def program_sha256(self, ordered: InstructionColumns) -> str | None:
        """Return the fingerprint of the program, of the instructions in order; None if parts do not fit."""
        if self.problems:
            return None
        contents = [*map(self._reader.contents.__getitem__, self._order)]
        return program_sha256(ordered, contents, self.entry_computation, self._reader.header())

    @cached_property
    def _order(self) -> list[int]:
        order: list[int] = []
        for item in self._reader.computations:
            rows = self.scheduled_rows.get(item.name, [])
            whole = range(item.first, item.end)
            order += rows if len(rows) == len(whole) and set(rows) == set(whole) else whole
        return order

    @cached_property
    def loop_computations(self) -> frozenset[str]:
        """Names of the conditions and bodies of loops."""
        rows = zip(self.columns.opcode, self.columns.called_computations, strict=True)
        return frozenset(name for opcode, called in rows if opcode == "while" for name in called)

    def _name_columns(self) -> None:
        """Fill the columns that hold names of other instructions and of computations."""
        reader, columns = self._reader, self.columns
        # Of several instructions of one id the last counts, as in `_row_of_id`.
        name_of = dict(zip(reader.ids, columns.instruction, strict=True)).__getitem__
        computation_names = {item.id: item.name for item in reader.computations}
        for item in reader.computations:
            columns.is_root += map(item.root_id.__eq__, reader.ids[item.first : item.end])
            for row in range(item.first, item.end):
                ids = reader.operand_ids[row]
                try:
                    columns.operands.append(tuple(map(name_of, ids)) if ids else ())
                except KeyError:
                    columns.operands.append(self._operands(row, item.id))
                called = reader.called_ids[row]
                columns.called_computations.append(self._called(row, computation_names) if called else ())

    def _operands(self, row: int, computation_id: int) -> tuple[str, ...]:
        """Return operands some of whose ids are only the number within the computation, or are unknown."""
        found = []
        for id_ in self._reader.operand_ids[row]:
            operand = self._row_of_id.get(id_, self._row_of_id.get(computation_id << 32 | id_ & _LOCAL))
            if operand is None:
                self.problem(f"{self.columns.instruction[row]} has an operand with the unknown id {id_}")
            else:
                found.append(self.columns.instruction[operand])
        return tuple(found)

    def _called(self, row: int, names: dict[int, str]) -> tuple[str, ...]:
        ids = self._reader.called_ids[row]
        if self.columns.opcode[row] == "while":
            ids = ids[::-1]  # the text names the condition first, the protobuf the body
        unknown = [id_ for id_ in ids if id_ not in names]
        if unknown:
            caller = self.columns.instruction[row]
            self.problem(f"{caller} calls a computation with the unknown id {unknown[0]}")
        return tuple(names[id_] for id_ in ids if id_ in names)


def _lists(columns: InstructionColumns) -> list[list[Any]]:
    return [getattr(columns, field.name) for field in fields(columns)]
