"""Hold a dump's text against the protobuf of the same module.

Both list allocations and values. In all eras they agree in every fact that both state (206 pairs from TF 1.14
to jaxlib 0.11.2), so a difference means that the files are of different compilations or that one is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ingest.dump.headers import Header
from ingest.hlo.assignment import HloProto, ProtoAllocation

MAX_DIFFERENCES: Final = 20
"""Differences of which the message is kept; of the rest only the number is."""

_Fact = tuple[str, str, object, object]

_INDEX_COMMENT: Final = re.compile(r"/\*index=[0-9]+\*/")


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact in which the text and the protobuf differ."""

    kind: str
    """Which fact: a word of `size offset color flags parameter assignment instruction shape`, or
    `allocations` and `values` where one of them has what the other lacks."""
    message: str
    """A sentence with both figures."""
    allocation_index: int | None = None
    value_id: int | None = None


class Comparison:
    """Holds the allocations and values of a dump against those of a protobuf, in any number of pieces.

    What only one of them has a word for (FORMAT 8) is no difference. Takes linear time: a shape that comes
    again is looked at once.

    Attributes:
        count: differences found so far.
        first: the first of them, at most MAX_DIFFERENCES.
    """

    def __init__(self, proto: HloProto) -> None:
        self.count = 0
        self.first: list[Difference] = []
        self._allocations = {allocation.index: allocation for allocation in proto.allocations}
        self._values = {value.value_id: value for value in proto.values}
        self._seen_allocations: set[int] = set()
        self._seen_values: set[int] = set()
        self._shapes: dict[str, str] = {}
        self._is_finished = False

    def take_allocations(self, headers: Iterable[Header]) -> None:
        """Compare allocations."""
        for header in headers:
            self._seen_allocations.add(header.allocation)
            other = self._allocations.get(header.allocation)
            if other is not None:
                self._note(
                    _allocation_facts(header, other), f"allocation {header.allocation}", header.allocation
                )

    def take_values(
        self,
        lines: Sequence[tuple[str, ...]],
        ids: Sequence[int],
        allocation_of: Sequence[int],
        offsets: Sequence[int],
        sizes: Sequence[int],
    ) -> None:
        """Compare values: their lines (as `ValueLine`) and what these say as numbers."""
        self._seen_values.update(ids)
        for line, id_, allocation, offset, size in zip(
            lines, ids, allocation_of, offsets, sizes, strict=True
        ):
            other = self._values.get(id_)
            if other is None:
                continue
            _, instruction, index, _, color, _, _, shape = line
            same = (
                allocation == other.allocation_index
                and offset == other.offset
                and size == other.size == other.logical_size
                and instruction == other.instruction
                and (index or "{}") == other.shape_index
                and (not color or int(color) == other.color)
                and (other.shape is None or shape == other.shape or self._same_shape(shape, other.shape))
            )
            if not same:
                facts = [
                    ("assignment", "allocation", allocation, other.allocation_index),
                    ("offset", "offset", offset, other.offset),
                    ("size", "size", size, other.size),
                    ("size", "size of the buffer itself", size, other.logical_size),
                    ("instruction", "defining instruction", instruction, other.instruction),
                    ("instruction", "ShapeIndex", index or "{}", other.shape_index),
                    ("color", "color", int(color) if color else other.color, other.color),
                ]
                if other.shape is not None and not self._same_shape(shape, other.shape):
                    facts.append(("shape", "shape", shape, other.shape))
                self._note(facts, f"value {id_}", allocation, id_)

    def finish(self) -> None:
        """Compare what there is: nothing more is taken. May be called again."""
        if self._is_finished:
            return
        self._is_finished = True
        self._note_missing("allocations", self._allocations.keys(), self._seen_allocations)
        self._note_missing("values", self._values.keys(), self._seen_values)

    def _same_shape(self, one: str, other: str) -> bool:
        return self._comparable(one) == self._comparable(other)

    def _comparable(self, shape: str) -> str:
        text = self._shapes.get(shape)
        if text is None:
            text = self._shapes[shape] = comparable_shape(shape)
        return text

    def _note(
        self, facts: Iterable[_Fact], subject: str, allocation: int | None = None, value: int | None = None
    ) -> None:
        for kind, name, ours, theirs in facts:
            if ours != theirs:
                self._add(
                    kind,
                    f"{subject}: the {name} is {_shown(ours)} in the text, {_shown(theirs)} in the protobuf",
                    allocation,
                    value,
                )

    def _note_missing(self, kind: str, of_proto: Iterable[int], of_text: set[int]) -> None:
        proto_ids = set(of_proto)
        for where, other, ids in (
            ("text", "protobuf", of_text - proto_ids),
            ("protobuf", "text", proto_ids - of_text),
        ):
            if ids:
                shown = ", ".join(map(str, sorted(ids)[:5])) + (", ..." if len(ids) > 5 else "")
                self._add(
                    kind,
                    f"{len(of_text)} {kind} in the text, {len(proto_ids)} in the protobuf: the {where} alone"
                    f" has {shown}, which the {other} lacks",
                )

    def _add(self, kind: str, message: str, allocation: int | None = None, value: int | None = None) -> None:
        self.count += 1
        if len(self.first) < MAX_DIFFERENCES:
            self.first.append(Difference(kind, message, allocation, value))


def comparable_shape(shape: str) -> str:
    """Return a shape without the numbers of tuple elements, which TF <= 2.4 does not print."""
    return _INDEX_COMMENT.sub("", shape)


def _allocation_facts(header: Header, proto: ProtoAllocation) -> Iterator[_Fact]:
    """Yield the facts of an allocation that both have: kind, name, that of the text, that of the protobuf."""
    text = header.attributes
    yield "size", "size", header.size, proto.size
    yield "color", "color", text.color, proto.color
    yield "parameter", "parameter number", text.parameter_number, proto.parameter_number
    yield "flags", "constant", text.is_constant, proto.is_constant
    yield "flags", "thread-local", text.is_thread_local, proto.is_thread_local
    yield "flags", "maybe-live-out", text.maybe_live_out, proto.maybe_live_out
    if text.parameter_shape_index is not None:
        yield "parameter", "ShapeIndex", text.parameter_shape_index, proto.parameter_shape_index or "{}"


def _shown(fact: object) -> str:
    if fact is None:
        return "none"
    if isinstance(fact, bool):
        return "set" if fact else "not set"
    return f"{fact:,}" if isinstance(fact, int) else str(fact)
