"""Live bytes over the schedule, and the greatest of them in each column of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ingest.query.blocks import execute_with_blocks
from ingest.report.data import Buffers, Ints

if TYPE_CHECKING:
    import duckdb

BLOCKS: Final = "▁▂▃▄▅▆▇█"
"""What a curve in one line is drawn with."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Live bytes: `live[i]` from slot `time[i]` up to the next one. `time` begins with 0 and ascends."""

    time: Ints
    live: Ints


def time_span(buffers: Buffers) -> int:
    """Return the number of slots that a picture shows: the last one at which a value is live, and one."""
    return int(buffers.end[: buffers.ranged].max(initial=0)) + 1


def live_curve(buffers: Buffers) -> Curve:
    """Sum the two changes of each range; before the first range nothing is live."""
    times, changes = _changes(buffers)
    time, number = np.unique(np.concatenate([[0], times]), return_inverse=True)
    sums = np.zeros(time.size, np.int64)
    np.add.at(sums, number[1:], changes)
    return Curve(time, np.cumsum(sums))


def read_curve(connection: duckdb.DuckDBPyConnection, run: int) -> Curve:
    """Read the curve alone; without live ranges nothing is live."""
    rows = execute_with_blocks(
        connection,
        'SELECT l."time", l.live_bytes FROM live_bytes AS l WHERE l.run_id = ? ORDER BY l."time"',
        [run],
    ).fetchnumpy()
    return Curve(
        np.concatenate([[0], np.asarray(rows["time"], np.int64)]),
        np.concatenate([[0], np.asarray(rows["live_bytes"], np.int64)]),
    )


def column_peaks(curve: Curve, span: int, columns: int) -> Ints:
    """Return for each of `columns` equal parts of `span` slots the change in it with the greatest figure.

    Returns:
        Indices into `curve`, shape (columns,). What was live when a part began counts in it: no peak is lost.
    """
    edges = np.floor(np.arange(columns + 1) * span / columns)
    first = np.searchsorted(curve.time, edges[:-1], "right") - 1
    last = np.maximum(np.searchsorted(curve.time, edges[1:], "left"), first + 1)
    return np.array(
        [at + int(curve.live[at:to].argmax()) for at, to in zip(first.tolist(), last.tolist(), strict=True)],
        np.int64,
    )


def stacked(buffers: Buffers, group: Ints, groups: int, slots: Ints) -> Ints:
    """Return the live bytes of each group at each slot, shape (groups, slots).

    Args:
        group: group of each value, shape (values,). All values of an allocation are in one group: the changes
            of a range are exact for an allocation, not for one value.
        slots: ascending.
    """
    times, changes = _changes(buffers)
    both = np.concatenate([group[: buffers.ranged]] * 2)
    column = np.searchsorted(slots, times, "left")
    sums = np.zeros((groups, slots.size + 1), np.int64)
    np.add.at(sums, (both, column), changes)
    return np.cumsum(sums, axis=1)[:, :-1]


def sparkline(curve: Curve, columns: int) -> str:
    """Draw the curve as a line of blocks, each the greatest figure of its part; empty if nothing is live."""
    # The last change is the slot behind the last one at which something is live.
    span = max(int(curve.time[-1]), 1)
    live = curve.live[column_peaks(curve, span, min(columns, span))]
    top = int(live.max(initial=0))
    if not top:
        return ""
    return "".join(BLOCKS[min(int(figure) * len(BLOCKS) // top, len(BLOCKS) - 1)] for figure in live)


def _changes(buffers: Buffers) -> tuple[Ints, Ints]:
    """Return slots and changes of live bytes: what each range gains, then what it frees."""
    ranged = slice(buffers.ranged)
    times = np.concatenate([buffers.start[ranged], buffers.end[ranged] + 1])
    freed = buffers.handover[ranged] - buffers.size[ranged]
    return times, np.concatenate([buffers.gained[ranged], freed])
