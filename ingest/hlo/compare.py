"""Hold a dump's text against the protobuf of the same module.

Both tell allocations and values. In all eras they agree in every fact that both tell (206 pairs from TF 1.14
to jaxlib 0.11.2), so a difference means that the files are of different compilations or that one is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ingest.dump.records import Allocation, Dump, Value
from ingest.hlo.assignment import HloProto, ProtoAllocation, ProtoValue

__all__ = ["Difference", "comparable_shape", "compare"]

_INDEX_COMMENT: Final = re.compile(r"/\*index=[0-9]+\*/")


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that the text and the protobuf tell differently."""

    kind: str
    """Which fact: a word of `size offset color flags parameter assignment instruction shape`, or
    `allocations` and `values` where one of them has what the other lacks."""
    message: str
    """A sentence with both figures."""
    allocation_index: int | None = None
    value_id: int | None = None


def compare(proto: HloProto, dump: Dump) -> tuple[Difference, ...]:
    """Return how the text differs from the protobuf; () if they agree.

    What only one of them tells (FORMAT 8) is no difference.
    """
    return (*_compare_allocations(proto, dump), *_compare_values(proto, dump))


def comparable_shape(shape: str) -> str:
    """Return a shape without the numbers of tuple elements, which TF <= 2.4 does not print."""
    return _INDEX_COMMENT.sub("", shape)


def _compare_allocations(proto: HloProto, dump: Dump) -> Iterator[Difference]:
    told = {allocation.index: allocation for allocation in proto.allocations}
    yield from _missing("allocations", told.keys(), {item.index for item in dump.allocations})
    for text in dump.allocations:
        other = told.get(text.index)
        if other is not None:
            yield from _compare_allocation(text, other)


def _compare_allocation(text: Allocation, proto: ProtoAllocation) -> Iterator[Difference]:
    facts: list[tuple[str, str, object, object]] = [
        ("size", "size", text.size, proto.size),
        ("color", "color", text.color, proto.color),
        ("parameter", "parameter number", text.parameter_number, proto.parameter_number),
        ("flags", "constant", text.is_constant, proto.is_constant),
        ("flags", "thread-local", text.is_thread_local, proto.is_thread_local),
        ("flags", "maybe-live-out", text.maybe_live_out, proto.maybe_live_out),
    ]
    if text.parameter_shape_index is not None:
        facts.append(
            ("parameter", "ShapeIndex", text.parameter_shape_index, proto.parameter_shape_index or "{}")
        )
    for kind, name, ours, theirs in facts:
        if ours != theirs:
            yield Difference(kind, _sentence(f"allocation {text.index}", name, ours, theirs), text.index)


def _compare_values(proto: HloProto, dump: Dump) -> Iterator[Difference]:
    told = {value.value_id: value for value in proto.values}
    yield from _missing("values", told.keys(), {value.id for value in dump.values})
    for text in dump.values:
        other = told.get(text.id)
        if other is not None:
            yield from _compare_value(text, other)


def _compare_value(text: Value, proto: ProtoValue) -> Iterator[Difference]:
    facts: list[tuple[str, str, object, object]] = [
        ("assignment", "allocation", text.allocation_index, proto.allocation_index),
        ("offset", "offset", text.offset, proto.offset),
        ("size", "size", text.size, proto.size),
        ("size", "size of the buffer itself", text.size, proto.logical_size),
        ("instruction", "defining instruction", text.instruction, proto.instruction),
        ("instruction", "ShapeIndex", text.shape_index or "{}", proto.shape_index),
    ]
    if text.color is not None:
        facts.append(("color", "color", text.color, proto.color))
    if proto.shape is not None:
        facts.append(("shape", "shape", comparable_shape(text.shape), comparable_shape(proto.shape)))
    for kind, name, ours, theirs in facts:
        if ours != theirs:
            yield Difference(
                kind, _sentence(f"value {text.id}", name, ours, theirs), text.allocation_index, text.id
            )


def _missing(kind: str, proto: Iterable[int], text: set[int]) -> Iterator[Difference]:
    proto_ids = set(proto)
    for where, other, ids in (
        ("text", "protobuf", text - proto_ids),
        ("protobuf", "text", proto_ids - text),
    ):
        if ids:
            shown = ", ".join(map(str, sorted(ids)[:5])) + (", ..." if len(ids) > 5 else "")
            yield Difference(
                kind,
                f"{len(text)} {kind} in the text, {len(proto_ids)} in the protobuf: the {where} alone has "
                f"{shown}, which the {other} lacks",
            )


def _sentence(subject: str, fact: str, text: object, proto: object) -> str:
    return f"{subject}: the {fact} is {_shown(text)} in the text, {_shown(proto)} in the protobuf"


def _shown(fact: object) -> str:
    if fact is None:
        return "none"
    if isinstance(fact, bool):
        return "set" if fact else "not set"
    return f"{fact:,}" if isinstance(fact, int) else str(fact)
