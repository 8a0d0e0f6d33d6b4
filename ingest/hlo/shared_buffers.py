"""Work out which values lie in one buffer, which a protobuf lists (`buffer_aliases`) and a text does not.

The rules are those of `HloAliasAnalysis`: the initial value, the parameters, the root and the result of a
loop; the roots of branches and the result of the conditional; what an instruction updates in place, and the
result; a donated parameter and the part of the result that is declared to take its buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ingest.hlo.graph import Graph, Index, Place
from ingest.hlo.positions import Places
from ingest.hlo.records import Alias, InPlace

_DESTINATION_OPERANDS: Final = 4
"""Operands of a collective-permute that writes into a buffer that it is given, the second one."""
_MAX_NESTING: Final = 50
"""Fusions within fusions that are followed; compilers nest two or three."""


def shared_values(
    module: Graph, places: Places, aliases: Iterable[Alias], declared: Mapping[int, Sequence[InPlace]]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of values that lie in one buffer; a value and itself may be such a pair.

    Args:
        module: the module.
        places: where which value appears.
        aliases: donations, from the module's header.
        declared: by row, what `output_to_operand_aliasing` states.
    """
    yield from _valued(places, _donations(module, aliases))
    updates = _Updates(module, declared)
    for row, opcode in enumerate(module.columns.opcode):
        if module.columns.computation[row] not in places.computations:
            continue
        if opcode == "while":
            yield from _valued(places, _loop(module, row))
        elif opcode == "conditional":
            yield from _valued(places, _branches(module, row))
        else:
            pairs = (
                (Place(row, one.result), Place(operand.row, operand.part + one.part))
                for one in updates.of(row)
                if (operand := module.operand(row, one.operand)) is not None
            )
            yield from _valued(places, pairs)


_Pairs = Iterator[tuple[Place, Place]]


def _valued(places: Places, pairs: _Pairs) -> Iterator[tuple[int, int]]:
    for one, other in pairs:
        first, second = places.value_at(*one), places.value_at(*other)
        if first is not None and second is not None:
            yield first, second


def _donations(module: Graph, aliases: Iterable[Alias]) -> _Pairs:
    entry = module.entry_computation
    root, parameters = module.root_rows.get(entry or ""), module.parameter_rows(entry)
    for alias in aliases:
        parameter = parameters.get(alias.parameter_number)
        if root is not None and parameter is not None:
            yield Place(root, _parsed(alias.output_index)), Place(parameter, _parsed(alias.parameter_index))


def _loop(module: Graph, row: int) -> _Pairs:
    operand = module.operand(row, 0)
    called = module.columns.called_computations[row]
    parameters = [module.parameter_rows(name).get(0) for name in called]
    ends = [*parameters, module.root_rows.get(called[-1]) if called else None]
    for index in module.indexes(row):
        result = Place(row, index)
        if operand is not None:
            yield result, Place(operand.row, operand.part + index)
        yield from ((result, Place(end, index)) for end in ends if end is not None)


def _branches(module: Graph, row: int) -> _Pairs:
    roots = [module.root_rows.get(name) for name in module.columns.called_computations[row]]
    for index in module.indexes(row):
        yield from ((Place(row, index), Place(root, index)) for root in roots if root is not None)


class _Updates:
    """What instructions update in place."""

    def __init__(self, module: Graph, declared: Mapping[int, Sequence[InPlace]]) -> None:
        self._module = module
        self._declared = declared
        self._fusions: dict[int, Sequence[InPlace]] = {}
        self._nesting = 0

    def of(self, row: int) -> Sequence[InPlace]:
        """Return the parts of operands that one instruction overwrites."""
        module = self._module
        opcode, operands = module.columns.opcode[row], module.operand_count(row)
        if opcode in ("dynamic-update-slice", "set-dimension-size"):
            return (InPlace(0, (), ()),)
        if opcode == "scatter":
            return _one_to_one((operands - 1) // 2)
        if opcode == "all-reduce-start":
            return _one_to_one(operands)
        if opcode == "ragged-all-to-all":
            return (InPlace(1, (), ()),)
        if opcode in ("collective-permute", "collective-permute-start"):
            return self._into_destination(row) if operands == _DESTINATION_OPERANDS else ()
        if opcode == "fusion":
            return (*self._of_fusion(row), *self._declared.get(row, ()))
        return self._declared.get(row, ())

    def _into_destination(self, row: int) -> Sequence[InPlace]:
        module = self._module
        destination = module.operand(row, 1)
        if destination is None:
            return ()
        result = (1,) if module.columns.opcode[row].endswith("-start") else ()
        depth = len(destination.part)
        parts = (
            index[depth:] for index in module.indexes(destination.row) if index[:depth] == destination.part
        )
        return [InPlace(1, part, result + part) for part in parts if len(part) <= 1]

    def _of_fusion(self, row: int) -> Sequence[InPlace]:
        """Return which parameters the outputs of a fusion overwrite.

        An output does so where what makes it, tuples aside, updates in place what comes from a parameter
        with nothing but tuples, a fusion of its own or a bitcast in between.
        """
        found = self._fusions.get(row)
        if found is None:
            self._fusions[row] = ()  # a damaged fusion that calls itself has nothing in place
            self._nesting += 1
            if self._nesting <= _MAX_NESTING:
                self._fusions[row] = list(self._follow_fusion(row))
            self._nesting -= 1
            found = self._fusions[row]
        return found

    def _follow_fusion(self, row: int) -> Iterator[InPlace]:
        module = self._module
        called = module.columns.called_computations[row]
        root = module.root_rows.get(called[0]) if called else None
        if root is None:
            return
        indexes = module.indexes(row)
        tables = {index[:-1] for index in indexes if index}
        for index in indexes:
            if index in tables:
                continue
            source = self._behind_tuples(Place(root, index))
            overwritten = source and self._overwritten(source)
            if overwritten is None:
                continue
            if module.columns.opcode[overwritten.row] == "fusion":
                inner = self._overwritten(overwritten)
                overwritten = inner or overwritten
            if module.columns.opcode[overwritten.row] == "bitcast":
                operand = module.operand(overwritten.row, 0)
                if operand is None or operand.part:
                    continue
                overwritten = Place(operand.row, overwritten.part)
            if module.columns.opcode[overwritten.row] == "parameter":
                yield InPlace(module.parameter_number(overwritten.row), overwritten.part, index)

    def _overwritten(self, result: Place) -> Place | None:
        """Return where the bytes come from that a result overwrites, tuples aside; None if it does not."""
        for one in self.of(result.row):
            if one.result == result.part:
                operand = self._module.operand(result.row, one.operand)
                if operand is not None:
                    return self._behind_tuples(Place(operand.row, operand.part + one.part))
        return None

    def _behind_tuples(self, place: Place) -> Place | None:
        """Follow tuples and then their elements back; None where a damaged module turns back."""
        module, opcodes = self._module, self._module.columns.opcode
        seen: set[Place] = set()
        for opcode in ("tuple", "get-tuple-element"):
            while opcodes[place.row] == opcode and (opcode != "tuple" or place.part):
                is_tuple = opcode == "tuple"
                operand = module.operand(place.row, place.part[0] if is_tuple else 0)
                if operand is None or place in seen:
                    return None
                seen.add(place)
                rest = place.part[1:] if is_tuple else (module.tuple_index(place.row), *place.part)
                place = Place(operand.row, operand.part + rest)
        return place


def _one_to_one(operands: int) -> Sequence[InPlace]:
    if operands == 1:
        return (InPlace(0, (), ()),)
    return [InPlace(number, (), (number,)) for number in range(operands)]


def _parsed(index: str) -> Index:
    return tuple(int(number) for number in index.strip("{}").split(",") if number.strip())
