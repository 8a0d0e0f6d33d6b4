"""Read the header lines of allocations: size, and attributes of every era (FORMAT 1)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ingest.dump.grammar import INDEX, INT, LIMIT, SINT
from ingest.dump.records import allocation_kind
from ingest.errors import DumpError

HEADER_LINE: Final = re.compile(rf"allocation ({INT}): (?:(0x[0-9a-f]+), )?size ({INT})((?:,.*)?):\n")
"""Index, address, size, and the text that holds the attributes; see `read_header`."""
_ATTRIBUTES: Final = re.compile(
    rf"(?:, color ({SINT}))?(?:, page ({SINT}))?"
    rf"(?:, parameter ({INT})(?:, shape \|([^|]*)\|)?(?: at ShapeIndex ({INDEX}))?)?"
    r"(?:, output shape is \|([^|]*)\|)?"
    r"(, constant)?(, thread-local)?(, maybe-live-out)?(, preallocated-temp)?"
)
_ONE_ATTRIBUTE: Final = re.compile(r", ((?:[^,|]++|\|[^|]*+\|)*+)")
_NO_NEW_ATTRIBUTE: Final = re.compile(
    r"(?:color|page|parameter|output shape|constant|thread-local|maybe-live-out|preallocated-temp)\b"
)
"""How an attribute begins that is known: one that cannot be read, or is there twice, is damage."""


class Attributes(NamedTuple):
    """What a header says after the size."""

    color: int
    page: int | None
    parameter_number: int | None
    parameter_shape_index: str | None
    parameter_shape: str | None
    output_shape: str | None
    is_constant: bool
    is_thread_local: bool
    maybe_live_out: bool
    is_preallocated_temp: bool
    unknown: tuple[str, ...]
    kind: str
    """What the allocation is for; see `allocation_kind`."""


class Header(NamedTuple):
    """A header line; `values` is how many value lines follow it."""

    allocation: int
    address: str | None
    size: int
    attributes: Attributes
    values: int


def read_header(match: re.Match[str], values: int) -> Header:
    """Return a header line that matches `HEADER_LINE`, with so many value lines under it.

    Raises:
        DumpError: an attribute cannot be read.
    """
    index, address, size, tail = match.groups()
    return Header(int(index), address, int(size), _attributes(tail, index), values)


def last_header(text: str) -> Header | None:
    """Return the last header of a piece of the section; None without one that can be read."""
    at = text.rfind("\nallocation ") + 1
    match = HEADER_LINE.match(text, at)
    if match is None:
        return None
    try:
        return read_header(match, 0)
    except DumpError:
        return None


_memo: dict[str, Attributes] = {}


def _attributes(tail: str, allocation: str) -> Attributes:
    attributes = _memo.get(tail)
    if attributes is None:
        attributes = _parse_attributes(tail, allocation)
        # The shape of an output can have megabytes; such a tail is not kept.
        if len(tail) < 1000:
            if len(_memo) > 10_000:
                _memo.clear()
            _memo[tail] = attributes
    return attributes


def _parse_attributes(tail: str, allocation: str) -> Attributes:
    unknown: list[str] = []
    match = _ATTRIBUTES.fullmatch(tail)
    if match is None:
        # Known attributes in another order or among new ones: sort them, keep the rest by its text.
        known: dict[int, str] = {}
        at = 0
        while at < len(tail):
            one = next((m for m in _known_at(tail, at) if m is not None), None)
            if one is not None and one[0] not in known:
                known[one[0]] = one[1]
                at += len(one[1])
                continue
            other = _ONE_ATTRIBUTE.match(tail, at)
            if other is None or other.end() == at:
                unknown.append(tail[at:])
                break
            unknown.append(other[1])
            at = other.end()
        if any(_NO_NEW_ATTRIBUTE.match(attribute) for attribute in unknown):
            raise DumpError(
                "bad-line",
                f"an attribute of allocation {allocation} cannot be read; is the file damaged?",
                section="allocations",
                text=f"allocation {allocation}: ",
            )
        match = _ATTRIBUTES.fullmatch("".join(known[place] for place in sorted(known)))
        assert match is not None  # each part matched alone, and sorted they follow the grammar
    color, page, number, shape, index, output, constant, local, live_out, temp = match.groups()
    if any(digits and not -LIMIT <= int(digits) < LIMIT for digits in (color, page, number)):
        raise DumpError(
            "number-too-large",
            f"a number of allocation {allocation} does not fit 64 bits; is the file damaged?",
            section="allocations",
            text=f"allocation {allocation}: ",
        )
    return Attributes(
        int(color) if color else 0,
        int(page) if page else None,
        int(number) if number else None,
        index,
        shape,
        output,
        constant is not None,
        local is not None,
        live_out is not None,
        temp is not None,
        tuple(unknown),
        allocation_kind(number is not None, live_out is not None, constant is not None, local is not None),
    )


_KNOWN: Final = tuple(
    re.compile(pattern + r"(?=,|$)")
    for pattern in (
        rf", color {SINT}",
        rf", page {SINT}",
        rf", parameter {INT}(?:, shape \|[^|]*\|)?(?: at ShapeIndex {INDEX})?",
        r", output shape is \|[^|]*\|",
        r", constant",
        r", thread-local",
        r", maybe-live-out",
        r", preallocated-temp",
    )
)


def _known_at(tail: str, at: int) -> list[tuple[int, str] | None]:
    matches = ((place, pattern.match(tail, at)) for place, pattern in enumerate(_KNOWN))
    return [(place, match[0]) if match else None for place, match in matches]
