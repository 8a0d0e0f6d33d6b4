"""The instructions of a module and how they hang together, whichever file they were read from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from ingest.hlo.records import InstructionColumns

Index = tuple[int, ...]
"""A ShapeIndex."""

_NESTED: Final = ("(", "b(")
"""Starts of shapes that have parts: tuples and buffers."""
_TOP: Final[tuple[Index, ...]] = ((),)


class Place(NamedTuple):
    """A part of an instruction's result."""

    row: int
    part: Index


class Graph(ABC):
    """A module's instructions by row, and what leads from one to another.

    Attributes:
        columns: the instructions in the order of the file.
        numbers: by row, the number of a parameter and the index of a get-tuple-element that is not 0.
        elements: by row, for each operand which part of the instruction named it is; rows all of whose
            operands are whole results are missing.
    """

    columns: InstructionColumns
    numbers: Mapping[int, int]
    elements: Mapping[int, Sequence[Index]] = MappingProxyType({})

    def __init__(self) -> None:
        self._part_sets: dict[str, frozenset[Index]] = {}
        self._branches: dict[int, dict[str, int]] = {}

    @property
    @abstractmethod
    def entry_computation(self) -> str | None:
        """Name of the entry computation."""

    @property
    @abstractmethod
    def scheduled_rows(self) -> Mapping[str, Sequence[int]]:
        """Rows of each scheduled computation in the order in which they run."""

    @abstractmethod
    def _nested_indexes(self, row: int) -> tuple[Index, ...]:
        """Return every ShapeIndex of a result that has parts, parents before their parts."""

    def indexes(self, row: int) -> tuple[Index, ...]:
        """Return every ShapeIndex of an instruction's result, parents before their parts."""
        return self._nested_indexes(row) if self.columns.shape[row].startswith(_NESTED) else _TOP

    def has_part(self, row: int, index: Index) -> bool:
        """Return whether an instruction's result has a part at a ShapeIndex."""
        shape = self.columns.shape[row]
        if not index or not shape.startswith(_NESTED):
            return not index
        parts = self._part_sets.get(shape)
        if parts is None:
            parts = self._part_sets[shape] = frozenset(self.indexes(row))
        return index in parts

    def operand(self, row: int, number: int) -> Place | None:
        """Return what one operand of an instruction is; None if it has fewer."""
        operands = self.columns.operands[row]
        operand = self.row_of_name.get(operands[number]) if number < len(operands) else None
        if operand is None:
            return None
        parts = self.elements.get(row)
        return Place(operand, parts[number] if parts else ())

    def operand_count(self, row: int) -> int:
        """Return how many operands an instruction has."""
        return len(self.columns.operands[row])

    def parameter_number(self, row: int) -> int:
        """Return the number of a parameter."""
        return self.numbers.get(row, 0)

    def tuple_index(self, row: int) -> int:
        """Return which element a get-tuple-element takes."""
        return self.numbers.get(row, 0)

    def parameter_rows(self, computation: str | None) -> Mapping[int, int]:
        """Return the row of each parameter of a computation by its number."""
        return self._parameter_rows.get(computation or "", {})

    def branch_number(self, row: int, computation: str) -> int:
        """Return which of the computations that an instruction calls this one is."""
        called = self._branches.get(row)
        if called is None:
            names = self.columns.called_computations[row]
            called = self._branches[row] = {name: at for at, name in reversed(list(enumerate(names)))}
        return called[computation]

    @cached_property
    def root_rows(self) -> dict[str, int]:
        """Row of the root of each computation."""
        columns = self.columns
        return {columns.computation[row]: row for row, is_root in enumerate(columns.is_root) if is_root}

    @cached_property
    def caller_rows(self) -> dict[str, int]:
        """Row of the first instruction that calls each computation."""
        callers: dict[str, int] = {}
        for row, called in enumerate(self.columns.called_computations):
            for name in called:
                callers.setdefault(name, row)
        return callers

    @cached_property
    def row_of_name(self) -> dict[str, int]:
        """Row of each instruction."""
        return {name: row for row, name in enumerate(self.columns.instruction)}

    @cached_property
    def _parameter_rows(self) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {}
        computations = self.columns.computation
        for row in [row for row, opcode in enumerate(self.columns.opcode) if opcode == "parameter"]:
            found.setdefault(computations[row], {})[self.numbers.get(row, 0)] = row
        return found
