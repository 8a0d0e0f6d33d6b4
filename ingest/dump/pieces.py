"""Scan and check pieces of a dump, each with what it must know of the pieces before it.

Into which pieces a text is cut makes no difference: what a piece cannot know by itself is handed on
(`AllocationsBefore`, the next slot, the values of its blocks), so pieces can be scanned in any order, by any
process. The first thing wrong with a piece raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ingest.dump.allocations import ReuseLine, UsedLine, scan_allocations, style_of
from ingest.dump.check import (
    check_bounds,
    check_colors,
    check_headers,
    check_operands,
    check_range,
    check_same_values,
    check_unique,
    check_values_follow,
)
from ingest.dump.entry import entry_parameters
from ingest.dump.headers import Header, last_header
from ingest.dump.live_range import SLOT, scan_ranges
from ingest.dump.notices import Notices, note
from ingest.dump.resident import MainMemory, main_memory
from ingest.dump.used_values import UsedScan, embedded, scan_used_values


class AllocationsBefore(NamedTuple):
    """What the allocations before a piece hand on to it."""

    style: str | None = None
    """How the section prints values, see `ingest.dump.allocations.style_of`; None without values."""
    headers: int = 0
    """Allocations so far."""
    size: int = 0
    """Bytes of the last one, to which values at the start of the piece belong."""
    color: int = 0
    """Its color."""

    def after(self, text: str) -> AllocationsBefore:
        """Return what this and a piece of text hand on to the piece after it."""
        style = style_of(text) if self.style is None else self.style
        last = last_header(text)
        if last is None:
            return self._replace(style=style)
        return AllocationsBefore(style, last.allocation + 1, last.size, last.attributes.color)


class OtherColor(NamedTuple):
    """A value of another color than its allocation's."""

    allocation: int
    id: int
    color: str
    of_allocation: int


@dataclass(slots=True)
class Facts:
    """What the rules of a whole dump need of a piece, or of all pieces until now; nothing by default.

    Attributes:
        headers: allocations that begin.
        last_size: bytes of the last of them; 0 without any.
        ends_in_value: the last allocation has values.
        size: sum of the sizes of the allocations, bytes.
        value_size: sum of the sizes of the values, bytes.
        parameters: see `ingest.dump.entry.entry_parameters`.
        is_tiled: a shape has a tiled layout.
        without_text: the first block of `Used values:` without instruction text.
        slots: of the instruction sequence.
    """

    features: set[str] = field(default_factory=set)
    notices: Notices = field(default_factory=Notices)
    headers: int = 0
    last_size: int = 0
    ends_in_value: bool = False
    size: int = 0
    value_size: int = 0
    reuse: list[ReuseLine] = field(default_factory=list)
    other_colors: list[OtherColor] = field(default_factory=list)
    memory: MainMemory = field(default_factory=MainMemory)
    parameters: list[tuple[int, str]] = field(default_factory=list)
    is_tiled: bool = False
    without_text: UsedLine | None = None
    slots: int = 0

    def add(self, piece: Facts) -> None:
        """Add those of the next piece."""
        self.features |= piece.features
        note(self.notices, piece.notices)
        if piece.headers:
            self.headers += piece.headers
            self.last_size, self.ends_in_value = piece.last_size, piece.ends_in_value
        else:
            self.ends_in_value |= piece.ends_in_value
        self.size += piece.size
        self.value_size += piece.value_size
        self.reuse += piece.reuse
        self.other_colors += piece.other_colors
        self.memory |= piece.memory
        self.parameters += piece.parameters
        self.is_tiled |= piece.is_tiled
        self.without_text = self.without_text or piece.without_text
        self.slots += piece.slots

    def add_used(self, used: UsedScan) -> None:
        """Add those of the next piece of `Used values:`."""
        self.features |= used.features
        note(self.notices, used.notices)
        if self.without_text is None:
            self.without_text = next((UsedLine._make(row) for row in used.blocks if not row[-1]), None)


class AllocationPiece(NamedTuple):
    """A piece of the allocations section; columns of the values in print order, `rows` as `ValueLine`."""

    facts: Facts
    headers: list[Header]
    rows: Sequence[tuple[str, ...]]
    ids: Sequence[int]
    allocation_of: Sequence[int]
    offsets: Sequence[int]
    sizes: Sequence[int]
    used: UsedScan | None
    """Of TF 1.15, whose allocations print positions and uses."""


class RangePiece(NamedTuple):
    """A piece of the live ranges, column-wise."""

    names: Sequence[str]
    indices: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]


def scan_allocation_piece(text: str, line: int, file: str, before: AllocationsBefore) -> AllocationPiece:
    """Scan and check a piece of the allocations section.

    Raises:
        DumpError: it cannot be read, or breaks a rule.
    """
    scan = scan_allocations(text, line, file, before.style)
    headers, rows = scan.headers, scan.values
    check_headers(headers, before.headers)
    if not before.headers:
        check_values_follow(rows[: scan.orphans])
    own = [header.allocation for header in headers for _ in range(header.values)]
    allocation_of = [before.headers - 1] * scan.orphans + own if scan.orphans else own
    columns: Sequence[Sequence[str]] = list(zip(*rows, strict=True)) or [()] * 8
    ids, sizes, offsets = (list(map(int, columns[place])) for place in (0, 5, 6))
    check_bounds(
        ids, offsets, sizes, allocation_of, [before.size, *(one.size for one in headers)], before.headers - 1
    )
    if len(set(ids)) < len(ids):
        # Also found when all pieces are there; but a file may repeat one line for gigabytes.
        check_unique(sorted(ids))
    check_colors(rows)
    used = embedded(scan.used, file) if scan.used else None
    if used is not None:
        check_operands(used.uses)
    numbers = [header.allocation for header in headers] + [before.headers - 1]  # -1: the one before
    facts = Facts(
        scan.features if used is None else scan.features | used.features,
        scan.notices,
        headers=len(headers),
        last_size=headers[-1].size if headers else 0,
        ends_in_value=headers[-1].values > 0 if headers else scan.orphans > 0,
        size=sum(header.size for header in headers),
        value_size=sum(sizes),
        reuse=[one._replace(header=numbers[one.header]) for one in scan.reuse],
        other_colors=_other_colors(columns[4], ids, allocation_of, headers, before),
        memory=main_memory(headers),
        parameters=entry_parameters(headers),
        is_tiled=any("T(" in shape for shape in set(columns[7])),
    )
    return AllocationPiece(facts, headers, rows, ids, allocation_of, offsets, sizes, used)


def _other_colors(
    colors: Sequence[str],
    ids: Sequence[int],
    allocation_of: Sequence[int],
    headers: Sequence[Header],
    before: AllocationsBefore,
) -> list[OtherColor]:
    of_allocations = [before.color, *[header.attributes.color for header in headers]]
    printed = list(map(str, of_allocations))
    if len({*colors, *printed}) == 1:
        return []
    first = before.headers - 1
    return [
        OtherColor(owner, id_, color, of_allocations[owner - first])
        for color, id_, owner in zip(colors, ids, allocation_of, strict=True)
        if color and color != printed[owner - first]
    ]


def scan_used_piece(text: str, line: int, file: str, rows: Sequence[tuple[str, ...]]) -> UsedScan:
    """Scan and check a piece of `Used values:`, whose blocks must be of the values in `rows`.

    Raises:
        DumpError: it cannot be read, or breaks a rule.
    """
    used = scan_used_values(text, line, file)
    check_same_values(rows, used.blocks)
    check_operands(used.uses)
    return used


def slot_after(text: str, slot: int) -> int:
    """Return the slot that must follow a piece of the instruction sequence which begins with `slot`."""
    end = len(text)
    while (at := text.rfind("\n", 0, max(end - 1, 0)) + 1) > 0:
        if last := SLOT.match(text, at):
            return int(last[1]) + 1
        end = at
    first = SLOT.match(text)
    return int(first[1]) + 1 if first else slot


def scan_range_piece(text: str, line: int, file: str, slots: int, notices: Notices) -> RangePiece:
    """Scan and check a piece of the live ranges of a schedule of so many slots; add to the notices.

    Raises:
        DumpError: it cannot be read, or breaks a rule.
    """
    found = scan_ranges(text, line, file, notices)
    names, indices, starts, ends = zip(*found, strict=True) if found else ((), (), (), ())
    first, last = list(map(int, starts)), list(map(int, ends))
    for name, index, start, end in zip(names, indices, first, last, strict=True):
        if not start <= end <= slots:
            check_range(name, index, start, end, slots, file)
    return RangePiece(names, indices, first, last)
