"""A module that was read from its HLO text, with what leads from one instruction to another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from ingest.hlo.assignment import DerivedLifetimes, ProtoPosition
from ingest.hlo.budget import Budget
from ingest.hlo.compare import comparable_shape
from ingest.hlo.derivation import Derivation
from ingest.hlo.graph import Graph, Index, Place
from ingest.hlo.records import HloText
from ingest.hlo.shared_buffers import shared_values

_TOKEN: Final = re.compile(r"b?\(|\)|, (?:/\*index=[0-9]+\*/)?")


class PlacedValue(NamedTuple):
    """A value that a dump lists."""

    id: int
    instruction: str
    part: str
    """ShapeIndex as printed; "" for none."""
    shape: str
    """With layout."""


class DerivedOfText(NamedTuple):
    """What an HLO text implies of the values of its dump."""

    positions: Sequence[ProtoPosition]
    lifetimes: DerivedLifetimes
    left_out: int
    """Operands that are parts of a tuple: the text leaves out the get-tuple-elements that take them."""


class TextModule(Graph):
    """The instructions of an HLO text; see `Graph`."""

    def __init__(self, text: HloText, budget: Budget, file: str) -> None:
        """Take a text that was read with links, and what the parts of its shapes may cost."""
        super().__init__()
        assert text.links is not None  # it was read for this
        self.columns = text.instructions
        self.numbers = text.links.numbers
        self.elements = text.links.elements
        self._text = text
        self._budget = budget
        self._file = file
        self._indexes: dict[str, tuple[Index, ...]] = {}
        self._shapes: dict[str, dict[Index, str]] = {}

    @cached_property
    def entry_computation(self) -> str | None:
        """Name of the entry computation."""
        return self._text.entry_computation

    @cached_property
    def scheduled_rows(self) -> dict[str, list[int]]:
        """Rows of each computation in the order of the text; none where that is not the schedule."""
        found: dict[str, list[int]] = {}
        if self._text.header.is_scheduled:
            for row, computation in enumerate(self.columns.computation):
                found.setdefault(computation, []).append(row)
        return found

    def part_text(self, row: int, index: Index) -> str | None:
        """Return the text of an instruction's shape at a ShapeIndex; None if it has no such part."""
        shape = self.columns.shape[row]
        if not index:
            return shape
        parts = self._shapes.get(shape)
        if parts is None:
            parts = self._shapes[shape] = dict(self._parts(shape))
        return parts.get(index)

    def _nested_indexes(self, row: int) -> tuple[Index, ...]:
        shape = self.columns.shape[row]
        found = self._indexes.get(shape)
        if found is None:
            found = self._indexes[shape] = tuple(sorted({(), *(index for index, _ in self._parts(shape))}))
        # The same shape again: its places are others.
        self._budget.spend(self._file, len(found), len(found) * len(found[-1]))
        return found

    def _parts(self, shape: str) -> Iterator[tuple[Index, str]]:
        """Yield all parts of a shape with their texts."""
        # Of the tuples that are open: where each starts and the number of the element at hand.
        starts: list[int] = []
        path: list[int] = []
        inner, start = 0, 0  # open parentheses of a layout; where the element at hand starts
        for token in _TOKEN.finditer(shape):
            text = token[0]
            if text.endswith("("):
                if token.start() == start:
                    starts.append(start)
                    path.append(0)
                    start = token.end()
                else:
                    inner += 1
                continue
            if inner:
                inner -= text == ")"
                continue
            if not path:
                break
            if start < token.start():
                self._budget.spend(self._file, 1, len(path) + token.start() - start)
                yield tuple(path), shape[start : token.start()]
            if text == ")":
                path.pop()
                begun = starts.pop()
                self._budget.spend(self._file, 1, len(path) + token.end() - begun)
                yield tuple(path), shape[begun : token.end()]
                start = len(shape)
            else:
                path[-1] += 1
                start = token.end()


def derive_of_text(
    text: HloText, values: Iterable[PlacedValue], budget: Budget, file: str
) -> DerivedOfText | str:
    """Derive positions, uses and, where the text is a schedule, live ranges of the values of a dump.

    Returns:
        What is derived, or a sentence on the first value that does not fit the text.

    Raises:
        DumpError: it is beyond the budget.
    """
    module = TextModule(text, budget, file)
    definitions: dict[Place, int] = {}
    for value in values:
        row = module.row_of_name.get(value.instruction)
        index = tuple(map(int, value.part.strip("{}").split(","))) if len(value.part) > 2 else ()
        shape = None if row is None else module.part_text(row, index)
        if row is None or shape is None:
            place = f"{value.instruction}{value.part}"
            return f"it has no {place}, where value {value.id} is defined"
        if shape != value.shape and comparable_shape(shape) != comparable_shape(value.shape):
            return f"{value.instruction}{value.part} is {shape} in it, and {value.shape} in the dump"
        definitions[Place(row, index)] = value.id
    derivation = Derivation(module, definitions)
    aliases = text.header.aliases
    assert text.links is not None
    shared = shared_values(module, derivation.places, aliases, text.links.in_place)
    lifetimes = derivation.lifetimes(shared, aliases)
    left_out = sum(map(bool, (part for parts in module.elements.values() for part in parts)))
    return DerivedOfText(tuple(derivation.positions()), lifetimes, left_out)
