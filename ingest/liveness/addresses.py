"""Addresses that several values lie at, and the turns that these take there.

An address is an allocation and an offset. Values whose bytes another one takes over in place are one turn,
and so is the state of a loop, although its bytes are free for other values between its last use in the body
and its update there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ingest.liveness.occupancy import NOT_RANGED


class Located(NamedTuple):
    """Every value of a run, column-wise, by ascending id.

    Attributes:
        allocation: number of the allocation that holds it.
        offset: where it starts in there, bytes.
        size: bytes.
        start: first slot at which it is live, or `NOT_RANGED`; not asked for without loops.
        end: last slot, or `NOT_RANGED`; not asked for without loops.
        handover: bytes that other values own at its last slot; 0 without a live range.
    """

    allocation: Sequence[int]
    offset: Sequence[int]
    size: Sequence[int]
    start: Sequence[int]
    end: Sequence[int]
    handover: Sequence[int]


class Loop(NamedTuple):
    """A part of the state of a loop: rows of the value with which it is entered, and of its result."""

    entered: int
    result: int


class SharedAddress(NamedTuple):
    """An address of two values or more that have a size, named as the columns of `shared_addresses`.

    Attributes:
        placed_values: values there.
        slot_bytes: size of the largest.
        placed_bytes: sum of their sizes.
        turns: values that take turns, aliases apart; None without live ranges.
        turn_bytes: sum of the sizes of the turns; None without live ranges.
    """

    allocation_index: int
    offset_bytes: int
    placed_values: int
    slot_bytes: int
    placed_bytes: int
    turns: int | None
    turn_bytes: int | None


def shared_addresses(values: Located, loops: Iterable[Loop], *, has_ranges: bool) -> list[SharedAddress]:
    """Return the addresses that are shared, by allocation and offset.

    Args:
        values: all values.
        loops: of those whose operand and result may lie at one address.
        has_ranges: live ranges are known.
    """
    places: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for row, (owner, offset, size) in enumerate(zip(*values[:3], strict=True)):
        if size:
            places[owner, offset].append(row)
    entries = entries_of(values, loops)
    found = []
    for place, rows in sorted(places.items()):
        if len(rows) < 2:
            continue
        sizes = [values.size[row] for row in rows]
        turns = turn_bytes = None
        placed_bytes = sum(sizes)
        if has_ranges:
            handed_over = [values.handover[row] for row in rows]
            taken_over = sum(map(int.__eq__, handed_over, sizes))
            count, size = interrupted_turns(values, rows, entries[place]) if place in entries else (0, 0)
            # The bytes of a turn are those that its last value does not hand over.
            turns, turn_bytes = len(rows) - taken_over - count, placed_bytes - sum(handed_over) - size
        found.append(SharedAddress(*place, len(rows), max(sizes), placed_bytes, turns, turn_bytes))
    return found


def entries_of(values: Located, loops: Iterable[Loop]) -> dict[tuple[int, int], list[Loop]]:
    """Return, by address, the loops that are entered with a value and leave their result in its place."""
    entries: defaultdict[tuple[int, int], list[Loop]] = defaultdict(list)
    for loop in loops:
        place, left = ((values.allocation[row], values.offset[row]) for row in loop)
        are_live = values.start[loop.result] != NOT_RANGED != values.end[loop.entered]
        if place == left and are_live and values.size[loop.entered]:
            entries[place].append(loop)
    return dict(entries)


def interrupted_turns(values: Located, rows: Sequence[int], loops: Collection[Loop]) -> tuple[int, int]:
    """Return how many turns end before the result of a loop is there that goes on with them, and their bytes.

    Args:
        values: all values.
        rows: those at one address that have a size.
        loops: those that leave their result where they were entered.
    """
    ends = sorted((values.end[row], row) for row in rows if values.handover[row] < values.size[row])
    last = set()
    for loop in loops:
        entered, result = values.end[loop.entered], values.start[loop.result]
        after = next(((end, row) for end, row in ends if end >= entered), None)
        if after is not None and after[0] < result:
            last.add(after[1])
    return len(last), sum(values.size[row] - values.handover[row] for row in last)
