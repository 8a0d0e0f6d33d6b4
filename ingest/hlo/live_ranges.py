"""Derive uses, the flattened schedule and live ranges from a scheduled HLO module.

XLA prints them (`HloLiveRange::ToString`, `HloValue::ToString`) only since 2021 and only into text files. A
protobuf of a scheduled module implies them; the rules are those of `HloLiveRange` and `HloValue`:

* One schedule for the whole program: what a call, a conditional, an async-start or a loop (condition first)
  calls runs just before it, once. Bodies of fusions, reductions and the like take no slots.
* A use is an operand that reads the value. `tuple` and `domain` read nothing, `get-tuple-element` and `copy`
  the top level only, but the root of a computation uses whatever it hands on.
* A value is live from its definition (a parameter: from the first slot of its computation; within an
  asynchronous computation at least until the async-done) to its last position and its last use; the root's
  positions last one slot longer than their computation. A loop takes its operand at the first parameter of
  its body; a call uses nothing that its computation does not. An entry parameter without a donated result
  is live throughout.
* Values of one buffer take turns: each ends where the next one starts.

These are the rules of the releases up to jaxlib 0.12, but that on GPU the result of an asynchronous
computation starts at its async-start since 0.11.1. Sources of late 2026 let the values of such a computation
start with the computation around it; no release with that was seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ingest.hlo.fields import as_index
from ingest.hlo.graph import Graph, Index, Place
from ingest.hlo.records import Alias

_INLINED = frozenset({"call", "conditional", "while"})
_TOP_LEVEL_ONLY = frozenset({"get-tuple-element", "copy"})
_TRANSPARENT = frozenset({"tuple", "domain"})
_DEFERRING = frozenset({"call", "while"})
_ASYNC_CHAIN = frozenset({"async-update", "async-done"})


@dataclass(frozen=True, slots=True)
class Schedule:
    """The flattened schedule of a module.

    Attributes:
        rows: row of the instruction of each slot.
        slots: slot of each instruction by its row; those that take none are missing.
        spans: first slot of each computation, and the one after its last.
        asynchronous: the outermost asynchronous computation around each one that runs within one.
    """

    rows: Sequence[int]
    slots: Mapping[int, int]
    spans: Mapping[str, tuple[int, int]]
    asynchronous: Mapping[str, str]


class Use(NamedTuple):
    """An operand of an instruction that reads a part of a value's position."""

    row: int
    operand: int
    part: Index


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """What is derived of each value, by its id.

    Attributes:
        uses: by ascending (row, operand, part); () for a value that nothing reads.
        ranges: first and last slot, closed; missing for values of computations that take no slots.
    """

    uses: Mapping[int, tuple[Use, ...]]
    ranges: Mapping[int, tuple[int, int]]


def flatten_schedule(module: Graph) -> Schedule | None:
    """Return the order in which the whole module runs; None if its entry computation has no schedule."""
    order, opcodes, called = module.scheduled_rows, module.columns.opcode, module.columns.called_computations
    entry = module.entry_computation
    if entry is None or entry not in order:
        return None
    rows: list[int] = []
    slots: dict[int, int] = {}
    starts: dict[str, int] = {}
    spans: dict[str, tuple[int, int]] = {}
    asynchronous: dict[str, str] = {}
    # What is left to do, the next last: a computation to begin or to end, or an instruction to take a slot.
    # Calls may be nested deeper than Python's own stack goes.
    work: list[_Begin | str | int] = [_Begin(entry, None)]
    while work:
        item = work.pop()
        if isinstance(item, int):
            slots[item] = len(rows)
            rows.append(item)
        elif isinstance(item, str):
            spans[item] = (starts[item], len(rows))
        elif item.computation in order and item.computation not in starts:
            starts[item.computation] = len(rows)
            if item.asynchronous is not None:
                asynchronous[item.computation] = item.asynchronous
            work.append(item.computation)
            for row in reversed(order[item.computation]):
                work.append(row)
                if opcodes[row] in _INLINED:
                    work += (_Begin(name, item.asynchronous) for name in reversed(called[row]))
                elif opcodes[row] == "async-start":
                    work += (_Begin(name, name) for name in reversed(called[row]))
    return Schedule(rows, slots, spans, asynchronous)


class _Begin(NamedTuple):
    computation: str
    asynchronous: str | None


def derive_lifetimes(
    module: Graph,
    schedule: Schedule | None,
    positions: Mapping[int, Sequence[Place]],
    shared: Iterable[tuple[int, int]],
    aliases: Iterable[Alias],
) -> Lifetimes:
    """Derive uses and, with a schedule, live ranges.

    Args:
        module: the module.
        schedule: its flattened schedule; None if it has none.
        positions: where each value appears, by its id, the defining position first.
        shared: pairs of values that lie in one buffer.
        aliases: donated parameters, from the module's header.
    """
    users = _users(module, positions.values())
    uses = {value: _uses(module, places, users) for value, places in positions.items()}
    ranges: dict[int, tuple[int, int]] = {}
    if schedule is not None:
        rules = _RangeRules(module, schedule, users, aliases)
        for value, places in positions.items():
            if places[0].row in schedule.slots:
                ranges[value] = rules.range(places, uses[value])
        _take_turns(ranges, shared)
    return Lifetimes(uses, ranges)


_Users = Mapping[str, Sequence[tuple[int, int, Index]]]
"""By the name of an instruction: who takes it as an operand, the operand's number, and which part of it."""


def _users(module: Graph, positions: Iterable[Sequence[Place]]) -> _Users:
    """Return the users of instructions of all computations in which values appear."""
    columns, elements = module.columns, module.elements
    computations = {columns.computation[place.row] for places in positions for place in places}
    found: defaultdict[str, list[tuple[int, int, Index]]] = defaultdict(list)
    for row, (computation, operands) in enumerate(zip(columns.computation, columns.operands, strict=True)):
        if operands and computation in computations:
            parts = elements.get(row)
            for number, name in enumerate(operands):
                found[name].append((row, number, parts[number] if parts else ()))
    return found


def _uses(module: Graph, places: Sequence[Place], users: _Users) -> tuple[Use, ...]:
    columns = module.columns
    names, opcodes, is_root = columns.instruction, columns.opcode, columns.is_root
    found: list[Use] = []
    for row, whole in places:
        for user, operand, taken in users.get(names[row], ()):
            if taken and whole[: len(taken)] != taken:
                continue
            part = whole[len(taken) :] if taken else whole
            opcode = opcodes[user]
            reads = not part if opcode in _TOP_LEVEL_ONLY else opcode not in _TRANSPARENT
            if reads or (is_root[user] and any(place.row == user for place in places)):
                found.append(Use(user, operand, part))
    found.sort()
    return tuple(found)


class _RangeRules:
    """The rules for the range of one value, with what they need of the module."""

    def __init__(self, module: Graph, schedule: Schedule, users: _Users, aliases: Iterable[Alias]) -> None:
        self._module = module
        self._columns = module.columns
        self._schedule = schedule
        self._users = users
        self._donated = {(alias.parameter_number, alias.parameter_index) for alias in aliases}
        self._async_ends: dict[str, int] = {}

    def range(self, places: Sequence[Place], uses: Iterable[Use]) -> tuple[int, int]:
        defining = places[0]
        slots, spans = self._schedule.slots, self._schedule.spans
        computation = self._columns.computation[defining.row]
        is_parameter = self._columns.opcode[defining.row] == "parameter"
        start = spans[computation][0] if is_parameter else slots[defining.row]
        if is_parameter and computation == self._module.entry_computation:
            number = self._module.parameter_number(defining.row)
            if (number, as_index(defining.part)) not in self._donated:
                return start, len(self._schedule.rows)
        end = max(start, self._async_end(computation))
        is_root, opcode = self._columns.is_root, self._columns.opcode
        for row, _ in places:
            end = max(end, self._end_of_computation(row) if is_root[row] else slots.get(row, -1))
        for row, _, _ in uses:
            end = max(end, self._call_slot(row) if opcode[row] in _DEFERRING else slots.get(row, -1))
        return start, end

    def _end_of_computation(self, row: int) -> int:
        """Return the slot after the last one of an instruction's computation; -1 if that takes none."""
        span = self._schedule.spans.get(self._columns.computation[row])
        return -1 if span is None else span[1]

    def _call_slot(self, row: int) -> int:
        """Return when a call or loop reads its operand; -1 if it takes no slot, or leaves it to others."""
        opcode, called = self._columns.opcode[row], self._columns.called_computations[row]
        if opcode == "call" and called and called[0] in self._schedule.spans:
            return -1
        if opcode == "while" and called and called[-1] in self._schedule.spans:
            row = self._module.parameter_rows(called[-1]).get(0, row)
        return self._schedule.slots.get(row, -1)

    def _async_end(self, computation: str) -> int:
        """Return the slot of the async-done that ends the asynchronous computation around this one, or -1."""
        outermost = self._schedule.asynchronous.get(computation)
        if outermost is None:
            return -1
        if outermost not in self._async_ends:
            # From the async-start over its updates; the chain of a damaged module may end or turn back.
            opcodes, row = self._columns.opcode, self._module.caller_rows.get(outermost)
            seen: set[int] = set()
            while row is not None and row not in seen and opcodes[row] != "async-done":
                seen.add(row)
                users = self._users.get(self._columns.instruction[row], ())
                row = next((user for user, _, _ in users if opcodes[user] in _ASYNC_CHAIN), None)
            self._async_ends[outermost] = -1 if row is None else self._schedule.slots.get(row, -1)
        return self._async_ends[outermost]


def _take_turns(ranges: dict[int, tuple[int, int]], shared: Iterable[tuple[int, int]]) -> None:
    """Cut the ranges of values in one buffer, so that each ends where the next one starts."""
    buffers: dict[int, list[int]] = {}
    for value, other in shared:
        one, two = buffers.setdefault(value, [value]), buffers.setdefault(other, [other])
        if one is not two:
            if len(one) < len(two):
                one, two = two, one
            one += two
            buffers.update(dict.fromkeys(two, one))
    for buffer in {id(members): members for members in buffers.values()}.values():
        members = [value for value in buffer if value in ranges]
        members.sort(key=lambda value: (*ranges[value], value))
        for earlier, later in pairwise(members):
            (first, end), (start, last) = ranges[earlier], ranges[later]
            ranges[later] = start, max(end, last)
            ranges[earlier] = first, min(end, start)
