"""Work out where values appear, which a protobuf does not list.

A value appears where it is defined and wherever an instruction hands it on without a copy: in tuples and
their elements, bitcasts, parameters of loops and branches, halves of asynchronous operations. Each such
place has exactly one place that it comes from, so that it leads step by step to the definition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from ingest.hlo.graph import Graph, Index, Place

_SAME_INDEX: Final = frozenset(
    {"bitcast", "while", "optimization-barrier", "opt-barrier", "domain", "add-dependency", "async-update"}
    | {"all-reduce-done"}
)
"""Opcodes whose result, where it is no value of its own, is their first operand."""

_SECOND_PART: Final = frozenset({"async-done", "all-gather-done", "collective-permute-done"})
"""Opcodes whose result is part {1} of their operand."""

_FIRST_PART_IS_OPERAND: Final = frozenset({"all-gather-start", "collective-permute-start", "send"})
"""Opcodes whose part {0} is their operand, or the tuple of their operands."""

_RUNNING: Final = frozenset({"call", "while", "conditional", "async-start"})
"""Opcodes that run other computations step by step."""


class Places:
    """Places of a module and the values that appear there.

    Attributes:
        computations: those that define values or hand them on; bodies of fusions do not.
    """

    def __init__(self, module: Graph, definitions: Mapping[Place, int]) -> None:
        """Take a module and the value that is defined at each defining place."""
        self._module = module
        self._values: dict[Place, int | None] = dict(definitions)
        self.computations = _run_by(module, {module.columns.computation[place.row] for place in definitions})

    def value_at(self, row: int, index: Index = ()) -> int | None:
        """Return the value that appears at a place; None if it cannot be worked out."""
        path: list[Place] = []
        place: Place | None = Place(row, index)
        while place is not None and place not in self._values:
            self._values[place] = None  # a way that comes back here leads nowhere
            path.append(place)
            place = self._source(place)
            if place is not None and not self._module.has_part(*place):
                place = None  # in a damaged file a chain of elements would grow its index for ever
        value = None if place is None else self._values[place]
        for passed in path:
            self._values[passed] = value
        return value

    def all(self) -> Iterator[tuple[Place, int]]:
        """Yield every place of a value, in the order of instructions and of their parts."""
        known, indexes = self._values, self._module.indexes
        for row, computation in enumerate(self._module.columns.computation):
            if computation in self.computations:
                for index in indexes(row):
                    place = Place(row, index)
                    value = known[place] if place in known else self.value_at(row, index)
                    if value is not None:
                        yield place, value

    def _source(self, place: Place) -> Place | None:
        """Return the place that a place has its value from."""
        row, index = place
        module = self._module
        opcode = module.columns.opcode[row]
        if opcode == "get-tuple-element":
            return self._operand(row, 0, (module.tuple_index(row), *index))
        if opcode == "tuple":
            return self._operand(row, index[0], index[1:]) if index else None
        if opcode in _SAME_INDEX:
            return self._operand(row, 0, index)
        if opcode == "parameter":
            return self._argument(row, index)
        if opcode in ("call", "conditional"):
            return self._root(row, index)
        if opcode == "copy-done":
            return self._operand(row, 0, (0, *index))
        if opcode == "recv-done":
            return self._operand(row, 0, index)
        if opcode in _SECOND_PART:
            return self._operand(row, 0, (1, *index))
        if not index:
            return None
        if opcode == "copy-start":
            return self._operand(row, 0, index[1:]) if index[0] == 1 else None
        if opcode == "async-start":
            if index[0] == 0:
                return self._operand(row, index[1], index[2:]) if len(index) > 1 else None
            return self._root(row, index[1:]) if index[0] == 1 else None
        if opcode in _FIRST_PART_IS_OPERAND and index[0] == 0:
            several = module.operand_count(row) > 1 and opcode != "send" and len(index) > 1
            return self._operand(row, index[1], index[2:]) if several else self._operand(row, 0, index[1:])
        return None

    def _operand(self, row: int, number: int, index: Index) -> Place | None:
        operand = self._module.operand(row, number)
        return None if operand is None else Place(operand.row, operand.part + index)

    def _root(self, row: int, index: Index) -> Place | None:
        called = self._module.columns.called_computations[row]
        root = self._module.root_rows.get(called[0]) if called else None
        return None if root is None else Place(root, index)

    def _argument(self, row: int, index: Index) -> Place | None:
        """Return where a parameter of a called computation comes from."""
        module = self._module
        computation = module.columns.computation[row]
        caller = module.caller_rows.get(computation)
        if caller is None:
            return None
        opcode = module.columns.opcode[caller]
        if opcode == "while":
            return self._operand(caller, 0, index)
        if opcode == "conditional":
            return self._operand(caller, 1 + module.branch_number(caller, computation), index)
        if opcode in ("call", "async-start"):
            return self._operand(caller, module.parameter_number(row), index)
        return None


def _run_by(module: Graph, computations: set[str]) -> frozenset[str]:
    """Return computations and those that they run step by step, which may only hand values on."""
    columns = module.columns
    called: defaultdict[str, set[str]] = defaultdict(set)
    for row, opcode in enumerate(columns.opcode):
        if opcode in _RUNNING:
            called[columns.computation[row]].update(columns.called_computations[row])
    found, waiting = set(computations), list(computations)
    while waiting:
        new = called.pop(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return frozenset(found)
