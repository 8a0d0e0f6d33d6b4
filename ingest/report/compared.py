"""What a page shows of two runs together: what changed at the peak, and which slots correspond."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ingest.query.blocks import execute_with_blocks
from ingest.query.catalog import shipped
from ingest.query.result import named_rows
from ingest.query.run import bind, run_query
from ingest.report.data import statement

if TYPE_CHECKING:
    import duckdb

CHANGES_SHOWN: Final = 400
"""Rows of a comparison; two programs that have little in common come to thousands."""
ORDER_KEPT: Final = 0.8
"""Share of the matched buffers that must come in the same order, for one axis of time to mean something."""
ANCHORS: Final = 500
"""Pairs of slots that an axis is aligned by."""


@dataclass(frozen=True, slots=True)
class Change:
    """A row of the difference of two runs at their peaks, as the saved query `diff` gives it; bytes.

    Attributes:
        change: new, gone, resized, now live, no longer live, shared or replaced; rest for the sum of all
            rows that are not shown.
        confidence: same, likely or guess.
        what: op_name, else the name of the value.
        buffers: buffers that were folded into the row.
    """

    change: str
    confidence: str
    what: str
    opcode: str
    before_shape: str
    after_shape: str
    source: str
    before_bytes: int
    after_bytes: int
    buffers: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, compared.

    Attributes:
        changes: rows that add up to the change of the peak, greatest first.
        anchors: pairs of slots that correspond, ascending on both sides; none where the order is another.
        order_kept: share of the matched buffers that start in the same order; None without a match.
    """

    changes: list[Change]
    anchors: list[tuple[int, int]]
    order_kept: float | None


def compare_runs(connection: duckdb.DuckDBPyConnection, before: int, after: int) -> Comparison:
    """Compare two runs; without live ranges in one of them there is nothing to compare."""
    pairs: list[tuple[int, int]] = []
    if before != after:
        sides = {"before": before, "after": after}
        pairs = execute_with_blocks(connection, statement("matched"), sides).fetchall()
    kept = longest_rise([slot for _, slot in pairs])
    share = len(kept) / len(pairs) if pairs else None
    anchors = [pairs[at] for at in kept] if share is not None and share >= ORDER_KEPT else []
    step = max(1, len(anchors) // ANCHORS)
    return Comparison(_read_changes(connection, before, after), anchors[::step], share)


def longest_rise(numbers: Sequence[int]) -> list[int]:
    """Return the places of a longest part of `numbers`, in order, that never falls; O(n log n)."""
    ends: list[int] = []  # smallest last number of a rise of each length, and its place
    places: list[int] = []
    before: list[int] = []
    for place, number in enumerate(numbers):
        length = bisect_right(ends, number)
        before.append(places[length - 1] if length else -1)
        # Written over where a rise of this length is known, else appended.
        ends[length : length + 1] = [number]
        places[length : length + 1] = [place]
    rise: list[int] = []
    at = places[-1] if places else -1
    while at >= 0:
        rise.append(at)
        at = before[at]
    return rise[::-1]


def _read_changes(connection: duckdb.DuckDBPyConnection, before: int, after: int) -> list[Change]:
    query = shipped().load("diff")
    result = run_query(connection, query, bind(query, {"before": str(before), "after": str(after)}))
    changes = [_change(row) for row in named_rows(result)]
    shown, rest = changes[:CHANGES_SHOWN], changes[CHANGES_SHOWN:]
    if rest:
        sums = [sum(getattr(change, name) for change in rest) for name in _SUMMED]
        shown.append(Change("rest", "", f"{len(rest):,} more rows", "", "", "", "", *sums))
    return shown


_SUMMED: Final = ("before_bytes", "after_bytes", "buffers")


def _change(row: dict[str, Any]) -> Change:
    return Change(
        row["change"],
        row["confidence"],
        row["op_name"] or row["value"],
        row["opcode"] or "",
        row["before_shape"] or "",
        row["after_shape"] or "",
        row["source"] or "",
        row["before_bytes"],
        row["after_bytes"],
        row["buffers"],
    )
