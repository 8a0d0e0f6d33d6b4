"""Where the rows of a dump are held while it is read, and by whom its pieces are scanned.

Plain lists (`ingest.dump.lists`) serve a small dump, Arrow columns and workers that write rows at once
(`ingest.staging.arrow_columns`) a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ingest.dump.content import FileRange
from ingest.dump.pieces import AllocationsBefore, Facts
from ingest.liveness.measure import Intervals


class Place(NamedTuple):
    """Where a piece stands, for messages."""

    line: int
    file: str


Text = str | FileRange
"""Text of a piece, or where a worker finds it."""


class Joined(NamedTuple):
    """The live ranges with their values."""

    intervals: Intervals
    """Of the ranges that have a value, in print order."""
    id_of: Callable[[int], int]
    """Returns the id of the value of one of them, by its number."""
    missing: Sequence[str]
    """What is printed of the ranges that have none."""
    is_unique: bool
    """No value has two ranges."""
    is_tuple: Sequence[int]
    """1 for each interval that is the pointer table of a tuple, else 0."""


class Columns(Protocol):
    """Holds the rows of a dump; scans its pieces, at once or later, and takes them in turn.

    Rows of values ascend by id once the allocations are complete.
    """

    reads_files: bool
    """Pieces are better handed over as `FileRange`."""
    facts: Facts
    """Of the pieces taken so far; its features and notices are those of the dump."""

    def scan_allocations(self, text: Text, at: Place, before: AllocationsBefore) -> None:
        """Scan a piece of the allocations; see `ingest.dump.pieces`, also for the others."""

    def sort_values(self) -> None:
        """Put the rows of the values in order of their ids: all allocations were taken."""

    @property
    def ids(self) -> Sequence[int]:
        """The values' ids, in order."""

    def repeated(self) -> Sequence[int]:
        """Return two of the ids that are equal, or none."""

    def places(self, ids: Sequence[int]) -> Mapping[int, tuple[str, str, int]]:
        """Return instruction, index as printed and allocation of those of these values that there are."""

    def lines(self, low: int, high: int) -> Sequence[tuple[str, ...]]:
        """Return some rows of values, as `ValueLine`."""

    def scan_used(self, text: Text, at: Place, low: int, high: int) -> None:
        """Scan a piece of `Used values:`, whose blocks are of the rows from `low` to `high`."""

    def scan_sequence(self, text: Text, at: Place, first: int) -> None:
        """Scan a piece of the instruction sequence that begins with slot `first`."""

    def scan_ranges(self, text: Text, at: Place, slots: int) -> None:
        """Scan a piece of the live ranges of a schedule of so many slots."""

    def join(self) -> Joined:
        """Find the value of each range; no more values are asked for."""

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return instruction and index of each range."""

    def live_at(self, slot: int) -> Sequence[tuple[str, str]]:
        """Return instruction and index of the ranges that are live at a slot."""

    def wait(self) -> None:
        """Return when every piece so far was taken; raise what was wrong with the first that was not."""

    def abandon(self) -> None:
        """Return when no piece is being scanned any more: the dump is rejected."""
