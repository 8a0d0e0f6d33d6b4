"""Find a source line also for instructions whose metadata has none.

The compiler makes most of the memory of a large module itself: parameters carry an op_name but no source,
copies, converted weights and many fusions no metadata at all. In the model sets since jaxlib 0.8 the
metadata alone names the source of 28 % of the bytes live at the peak, with what follows it is over 99.9 %.

An instruction without a source of its own takes that of, in this order,

1. `fused`: the computation that it calls: the root, else what the root is made from;
2. `operand`: the nearest instruction that it is made from (a copy belongs to what it copies);
3. `user`: the nearest instruction that uses it (a parameter belongs to its first use);
4. `caller`: the instruction that calls its computation.

Paths of 2 and 3 stay within one computation; among equally near ones the first operand or user counts.
"""

from __future__ import annotations

from itertools import compress
from typing import Final, Literal, NamedTuple

from ingest.hlo.frames import Stacks
from ingest.hlo.records import InstructionColumns

Via = Literal["own", "fused", "operand", "user", "caller"]

_FAR: Final = 1 << 60


class Origins(NamedTuple):
    """For each instruction the row of the one whose metadata names its source, and how it was found."""

    rows: list[int | None]
    via: list[Via | None]


class Sources(NamedTuple):
    """For each instruction the innermost user line, its frame, and how it was found; None where none is."""

    file: list[str | None]
    line: list[int | None]
    frame_id: list[int | None]
    """Frame of the stack that leads to the line; None also before jaxlib 0.8."""
    via: list[Via | None]


def locate(columns: InstructionColumns, stacks: Stacks) -> Sources:
    """Return the source line of every instruction, inherited where its own metadata has none."""
    rows, via = trace_origins(columns)
    # A row more, for what has no origin.
    frame_ids = [*columns.stack_frame_id, None]
    files, lines = stacks.sources(frame_ids, [*columns.source_file, None], [*columns.source_line, None])
    nothing = len(columns)
    at = [nothing if row is None else row for row in rows]
    return Sources(
        [*map(files.__getitem__, at)], [*map(lines.__getitem__, at)], [*map(frame_ids.__getitem__, at)], via
    )


def trace_origins(columns: InstructionColumns) -> Origins:
    """Return where each instruction has its source from.

    Takes linear time: instructions come after what they are made from, and computations after those that
    they call, in the text and in the protobuf alike. What a damaged file has out of order is not found.
    """
    names, operands, called = columns.instruction, columns.operands, columns.called_computations
    count = len(columns)
    row_of = {name: row for row, name in enumerate(names)}
    own = zip(columns.stack_frame_id, columns.source_file, strict=True)
    lacking = [row for row, (frame, file) in enumerate(own) if frame is None and file is None]
    rows: list[int | None] = [*range(count)]
    via: list[Via | None] = ["own"] * count
    distance = [0] * count
    for row in lacking:
        rows[row], via[row], distance[row] = None, None, _FAR

    root_of: dict[str, int] = {}
    roots = compress(range(count), columns.is_root)
    root = next(roots, count)
    for row in lacking:
        if called[row]:
            while root < row:
                root_of[columns.computation[root]] = root
                root = next(roots, count)
            fused = (root_of.get(name) for name in reversed(called[row]))
            made_by = next((at for at in fused if at is not None and rows[at] is not None), None)
            if made_by is not None:
                rows[row], via[row], distance[row] = rows[made_by], "fused", 1
                continue
        near, least = row, _FAR
        for name in operands[row]:
            made_from = row_of.get(name, row)
            if distance[made_from] < least:
                near, least = made_from, distance[made_from]
        if least < _FAR:
            rows[row], via[row], distance[row] = rows[near], "operand", least + 1

    # What takes its source from its users, or from their users by what itself is made from its operands.
    open_rows = {row for row in lacking if via[row] != "fused"}
    open_names = {names[row]: row for row in open_rows if row_of[names[row]] == row}
    uses_none = open_names.keys().isdisjoint
    forward: list[int | None] = [None] * count
    distance = [_FAR] * count
    callers: dict[str, int] = {}
    linked = [
        row
        for row, (names_of, calls) in enumerate(zip(operands, called, strict=True))
        if calls or row in open_rows or not uses_none(names_of)
    ]
    for row in reversed(linked):
        origin, far = rows[row], 1
        if row in open_rows:
            # It says nothing of its use itself.
            origin, far = forward[row], distance[row] + 1
            if rows[row] is None:
                if origin is not None:
                    rows[row], via[row] = origin, "user"
                else:
                    caller = callers.get(columns.computation[row])
                    if caller is not None and rows[caller] is not None:
                        rows[row], via[row] = rows[caller], "caller"
        if origin is not None:
            for name in operands[row]:
                operand = open_names.get(name)
                # Not less-than: rows descend, and the first user counts.
                if operand is not None and far <= distance[operand]:
                    forward[operand], distance[operand] = origin, far
        for name in called[row]:
            callers[name] = row
    return Origins(rows, via)
