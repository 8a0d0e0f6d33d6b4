"""Name the buffers behind a figure, and behind its growth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ingest.check.baseline import Entry
from ingest.check.findings import Cause
from ingest.check.measure import Buffers, Measured
from ingest.compare.comparison import Change, compare
from ingest.compare.names import named, relative, source_place
from ingest.display import display

if TYPE_CHECKING:
    import duckdb

_GROWN: Final = 5
_SHRUNK: Final = 3
"""Causes that a finding keeps; all others are summed up in one."""


def largest(at_peak: Sequence[Buffers], size: Callable[[Buffers], int]) -> tuple[Cause, ...]:
    """Rank buffers by bytes, of equal ones those with a source line first."""
    ranked = sorted(at_peak, key=lambda b: (-size(b), b.file is None, b.kind, b.name))
    return tuple(_cause(b, size(b)) for b in ranked[:_GROWN] if size(b) > 0)


def growth_since(after: Measured, before: Entry) -> list[Cause]:
    """Compare what is live at the peak with what a baseline says of it, name by name.

    Of a name that the baseline lacks it knows that it had `left_out` bytes at most.
    """
    causes = []
    for buffers in after.at_peak:
        known = before.at_peak.get((buffers.kind, buffers.name))
        change = buffers.bytes - (before.left_out if known is None else known)
        earlier = 0 if known is None and not before.left_out else known
        if change and (change > 0 or earlier is not None):
            causes.append(_cause(buffers, buffers.bytes, earlier, change))
    present = {(buffers.kind, buffers.name) for buffers in after.at_peak}
    causes += [
        Cause(name, None, None, None, None, 1, 0, size, -size)
        for (kind, name), size in before.at_peak.items()
        if (kind, name) not in present
    ]
    return causes


def growth_between(connection: duckdb.DuckDBPyConnection, before: int, after: int) -> list[Cause]:
    """Compare what is live at the peaks of two runs of one database; the changes add up to the peak's."""
    (pair,) = compare(connection, [before], [after]).pairs
    return [_changed(change) for change in pair.changes]


def kept(causes: Iterable[Cause], change: int | None) -> tuple[Cause, ...]:
    """Keep the greatest changes, growth first.

    Args:
        change: what all of them should come to, bytes; what the kept ones leave of it gets a row of its own.
    """
    ranked = sorted(causes, key=lambda one: (-_change(one), one.file is None, one.value))
    grown = [one for one in ranked if _change(one) > 0]
    shrunk = [one for one in reversed(ranked) if _change(one) < 0]
    chosen = [*grown[:_GROWN], *shrunk[:_SHRUNK]]
    rest = 0 if change is None else change - sum(map(_change, chosen))
    if rest:
        number = max(len(ranked) - len(chosen), 1)
        chosen.append(Cause("all else", None, None, None, None, number, 0, None, rest))
    return tuple(chosen)


def described(cause: Cause) -> str:
    """Name buffers, their source line, operation and shape."""
    return named(cause.value, cause.number, cause.file, cause.line, cause.op_name, cause.shape)


def _cause(buffers: Buffers, size: int, before: int | None = None, growth: int | None = None) -> Cause:
    return Cause(
        buffers.value,
        buffers.shape,
        buffers.op_name,
        None if buffers.file is None else relative(buffers.file),
        buffers.line,
        buffers.number,
        size,
        before,
        growth,
    )


def _changed(change: Change) -> Cause:
    file, line = source_place(change.source)
    shape = change.after_shape or change.before_shape
    return Cause(
        display(change.value),
        None if shape is None else display(shape),
        None if change.op_name is None else display(change.op_name),
        file,
        line,
        change.buffers,
        change.after_bytes,
        change.before_bytes,
        change.change_bytes,
    )


def _change(cause: Cause) -> int:
    return cause.growth_bytes or 0
