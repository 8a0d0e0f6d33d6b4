"""Hold the rows of a dump in plain lists, scanning each piece at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

from ingest.dump.allocations import ValueLine
from ingest.dump.columns import Joined, Place, Text
from ingest.dump.live_range import scan_sequence
from ingest.dump.parsed import ParsedDump
from ingest.dump.pieces import (
    AllocationsBefore,
    Facts,
    scan_allocation_piece,
    scan_range_piece,
    scan_used_piece,
)
from ingest.dump.used_values import UsedScan, embedded
from ingest.liveness.measure import Intervals

_T = TypeVar("_T")


class Lists:
    """Fills the columns of a `ParsedDump`; see `ingest.dump.columns.Columns`."""

    reads_files = False

    def __init__(self, dump: ParsedDump) -> None:
        self.facts = Facts(dump.features, dump.notices)
        self._dump = dump
        self._embedded: list[UsedScan] = []
        self._file = ""

    @property
    def ids(self) -> Sequence[int]:
        """The values' ids, in order."""
        return self._dump.ids

    def scan_allocations(self, text: Text, at: Place, before: AllocationsBefore) -> None:
        """Scan a piece and add its rows."""
        dump = self._dump
        piece = scan_allocation_piece(_plain(text), *at, before)
        dump.headers += piece.headers
        dump.values += piece.rows
        dump.ids += piece.ids
        dump.allocation_of += piece.allocation_of
        dump.offsets += piece.offsets
        dump.sizes += piece.sizes
        if piece.used is not None:
            self._embedded.append(piece.used)
            self._file = at.file
        self.facts.add(piece.facts)

    def sort_values(self) -> None:
        """Put the rows of the values in order of their ids."""
        dump = self._dump
        order = sorted(range(len(dump.ids)), key=dump.ids.__getitem__)
        dump.values = _taken(dump.values, order)
        dump.allocation_of = _taken(dump.allocation_of, order)
        dump.offsets = _taken(dump.offsets, order)
        dump.sizes = _taken(dump.sizes, order)
        dump.ids = _taken(dump.ids, order)
        if len(self._embedded) == 1:
            [dump.used] = self._embedded
        elif self._embedded:
            dump.used = embedded([block for piece in self._embedded for block in piece.blocks], self._file)

    def repeated(self) -> Sequence[int]:
        """Return two ids that are equal, or none."""
        return next((pair for pair in pairwise(self._dump.ids) if pair[0] == pair[1]), ())

    def places(self, ids: Sequence[int]) -> Mapping[int, tuple[str, str, int]]:
        """Return where values are."""
        dump, wanted = self._dump, set(ids)
        return {
            id_: (value.instruction, value.shape_index, allocation)
            for id_, value, allocation in zip(
                dump.ids, map(ValueLine._make, dump.values), dump.allocation_of, strict=True
            )
            if id_ in wanted
        }

    def lines(self, low: int, high: int) -> Sequence[tuple[str, ...]]:
        """Return some rows of values."""
        return self._dump.values[low:high]

    def scan_used(self, text: Text, at: Place, low: int, high: int) -> None:
        """Scan a piece and add its positions and uses."""
        piece = scan_used_piece(_plain(text), *at, self.lines(low, high))
        used = self._dump.used
        if used is None:
            self._dump.used = piece
        else:
            used.blocks.extend(piece.blocks)
            used.positions.extend(piece.positions)
            used.position_counts.extend(piece.position_counts)
            used.uses.extend(piece.uses)
            used.use_counts.extend(piece.use_counts)
        self.facts.add_used(piece)

    def scan_sequence(self, text: Text, at: Place, first: int) -> None:
        """Scan a piece and add its slots."""
        names = scan_sequence(_plain(text), first, *at, self.facts.notices)
        if self._dump.schedule is None:
            self._dump.schedule = names
        else:
            self._dump.schedule += names
        self.facts.slots += len(names)

    def scan_ranges(self, text: Text, at: Place, slots: int) -> None:
        """Scan a piece and add its ranges."""
        piece = scan_range_piece(_plain(text), *at, slots, self.facts.notices)
        if self._dump.ranges is None:
            self._dump.ranges = []
        self._dump.ranges += zip(piece.names, piece.indices, piece.starts, piece.ends, strict=True)

    def join(self) -> Joined:
        """Find the value of each range; of several values in one place, which no dump has, the first."""
        dump = self._dump
        ranges = dump.ranges or []
        _, names, indices, _, _, _, _, shapes = zip(*dump.values, strict=True) if dump.values else [()] * 8
        keys = [(name, index or "{}") for name, index in zip(names, indices, strict=True)]
        rows = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        dump.range_values = [rows.get((name, index), -1) for name, index, _, _ in ranges]
        missing: list[str] = []
        ranged, found = dump.range_values, ranges
        if -1 in ranged:
            parts = list(zip(ranged, ranges, strict=True))
            missing = [name + index for row, (name, index, _, _) in parts if row < 0]
            ranged, found = [row for row in ranged if row >= 0], [one for row, one in parts if row >= 0]
        intervals = Intervals(
            _taken(dump.allocation_of, ranged),
            _taken(dump.offsets, ranged),
            _taken(dump.sizes, ranged),
            *([*map(itemgetter(place), found)] for place in (2, 3)),
        )
        return Joined(
            intervals,
            lambda number: dump.ids[ranged[number]],
            missing,
            len(set(ranged)) == len(ranged),
            [shapes[row].startswith("(") for row in ranged],
        )

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return instruction and index of each range."""
        return ((name, index) for name, index, _, _ in self._dump.ranges or ())

    def live_at(self, slot: int) -> Sequence[tuple[str, str]]:
        """Return the ranges that are live at a slot."""
        return [(name, index) for name, index, start, end in self._dump.ranges or () if start <= slot <= end]

    def wait(self) -> None:
        """Return at once: every piece was taken."""

    def abandon(self) -> None:
        """Return at once: no piece is being scanned."""


def _taken(column: Sequence[_T], rows: Iterable[int]) -> list[_T]:
    """Return some cells of a column."""
    return [*map(column.__getitem__, rows)]


def _plain(text: Text) -> str:
    assert isinstance(text, str)  # `reads_files` is not set
    return text
