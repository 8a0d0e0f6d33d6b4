"""Rules that every dump must keep, or it is rejected whole.

Each rule held in all 5,504 public dumps that were checked, and in the project's own; a dump that breaks
one is damaged. Messages name the value or allocation at fault; `ingest.dump.locate` finds the line for it, of
which no count is kept while all is well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Final

from ingest.dump import features
from ingest.dump.allocations import ReuseLine, UsedLine, ValueLine
from ingest.dump.grammar import LIMIT
from ingest.dump.headers import Header
from ingest.dump.live_range import TreeScan
from ingest.dump.notices import note
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Notice
from ingest.errors import DumpError


def check_headers(headers: Sequence[Header], first: int) -> None:
    """Require allocation indices first, first + 1, ... and sizes within 64 bits."""
    for expected, header in enumerate(headers, first):
        if header.allocation != expected:
            raise DumpError(
                "allocation-index",
                f"allocation {header.allocation} stands where {expected} should;"
                " are lines missing or repeated?",
                section="allocations",
                text=f"allocation {header.allocation}: ",
            )
        if header.size >= LIMIT:
            raise DumpError(
                "number-too-large",
                f"allocation {header.allocation} has {header.size} bytes, more than 2^63 - 1",
                section="allocations",
                text=f"allocation {header.allocation}: ",
            )


def check_values_follow(values: Sequence[tuple[str, ...]]) -> None:
    """Refuse values (rows as `ValueLine`) before the first allocation."""
    for value in map(ValueLine._make, values):
        raise DumpError(
            "bad-line",
            "a value comes before the first allocation",
            section="allocations",
            text=f" value: <{value.id} ",
        )


def check_positions_once(found: Collection[str], file: str) -> None:
    """Refuse Used values of a dump that prints positions and uses in its allocations, as TF 1.15 does."""
    if features.EMBEDDED_VALUES in found:
        raise DumpError(
            "bad-line",
            "positions and uses stand in the allocations too; are files of different dumps side by side?",
            file=file,
            section="values",
            text="Used values:",
        )


def check_texts(without: UsedLine | None, found: Collection[str]) -> None:
    """Require an instruction text of every value, where the dump is of a release that prints them.

    `without` is the first block without one.
    """
    if without and (features.FROM_INSTRUCTION in found or features.HUMAN_TOTAL in found):
        raise DumpError(
            "truncated",
            f"value {without.id} {without.instruction} has no 'from instruction' line: the file is cut off",
            section="values",
            text=f"<{without.id} ",
        )


def check_bounds(
    ids: Sequence[int],
    offsets: Sequence[int],
    sizes: Sequence[int],
    allocations: Sequence[int],
    allocation_sizes: Sequence[int],
    first: int = 0,
) -> None:
    """Require every value to lie within its allocation, and its id to fit 64 bits.

    `first` is the allocation of the first of `allocation_sizes`.
    """
    for id_, offset, size, allocation in zip(ids, offsets, sizes, allocations, strict=True):
        if offset + size > allocation_sizes[allocation - first]:
            raise DumpError(
                "out-of-bounds",
                f"value {id_} ends at byte {offset + size} of allocation {allocation},"
                f" which has {allocation_sizes[allocation - first]}",
                section="allocations",
                text=f" value: <{id_} ",
            )
        if id_ >= LIMIT:
            raise DumpError(
                "number-too-large",
                f"value id {id_} is more than 2^63 - 1",
                section="allocations",
                text=f" value: <{id_} ",
            )


def check_unique(sorted_ids: Sequence[int]) -> None:
    """Require ids in ascending order to differ."""
    for one, following in pairwise(sorted_ids):
        if one == following:
            raise DumpError(
                "duplicate-value",
                f"value {one} is listed twice",
                section="allocations",
                text=f" value: <{one} ",
            )


def check_total(allocated: int, printed: int | None) -> None:
    """Require the printed total to be the sum of the allocations."""
    if printed is not None and allocated != printed:
        raise DumpError(
            "total-mismatch",
            f"the allocations sum to {allocated} bytes, 'Total bytes used' says {printed};"
            " are lines missing, or files of different compilations side by side?",
            section="total",
            text="Total bytes used: ",
        )


def check_same_values(values: Sequence[tuple[str, ...]], used: Sequence[tuple[str, ...]]) -> None:
    """Require value lines and `Used values` to list the same values in the same order.

    Both hold (id, instruction, index, phi, color, ...) as printed; value lines sorted by id.
    """
    for value, block in zip(values, used, strict=False):
        if value[:_KEY] != block[:_KEY]:
            raise _mismatch(ValueLine._make(value), UsedLine._make(block))
    if len(values) != len(used):
        more, place = (values, "Used values") if len(values) > len(used) else (used, "any allocation")
        id_, name, *_ = more[min(len(values), len(used))]
        raise DumpError(
            "value-mismatch",
            f"value {id_} {name} is not listed under {place}; is the file cut off?",
            section="values",
            text=f"<{id_} ",
        )


_KEY: Final = 5
"""Parts of a value line and of a block that must be the same, see `check_same_values`."""


def _mismatch(value: ValueLine, block: UsedLine) -> DumpError:
    if value.id == block.id:
        message = f"value {value.id} is {_key(value)} in its allocation and {_key(block)} under Used values"
    elif int(value.id) < int(block.id):
        message = f"value {value.id} {value.instruction} is missing under Used values, or out of order"
    else:
        message = (
            f"value {block.id} {block.instruction} under Used values is in no allocation, or out of order"
        )
    return DumpError("value-mismatch", message, section="values", text=f"<{block.id} ")


def _key(row: ValueLine | UsedLine) -> str:
    color = f" @{row.color}" if row.color else ""
    return f"{row.instruction}{row.shape_index}{row.phi}{color}"


def check_magnitude(what: str, section: str, numbers: Iterable[int | None], text: str | None = None) -> None:
    """Require numbers to fit a signed 64-bit integer; `text` is how the line at fault begins."""
    for number in numbers:
        if number is not None and not -LIMIT <= number < LIMIT:
            raise DumpError(
                "number-too-large",
                f"{what} {number} does not fit 64 bits; is the file damaged?",
                section=section,
                text=text,
            )


def check_size_sum(total: int) -> None:
    """Require the sizes of all values to sum to a signed 64-bit integer: live bytes are such sums."""
    check_magnitude("the sum of the values' sizes,", "allocations", (total,))


def check_reuse(reuse: Sequence[ReuseLine], places: Mapping[int, tuple[str, str, int]]) -> None:
    """Require the values under `reused by buffers of a different color` to be values of that allocation.

    Args:
        reuse: the lines; `header` is the number of the allocation, -1 for none.
        places: instruction, index ('' where none is printed) and allocation of values by id.
    """
    for line in reuse:
        at = f"  value: <{line.id} "
        if line.header < 0:
            raise DumpError(
                "bad-line", "a reused value comes before the first allocation", section="allocations", text=at
            )
        if places.get(int(line.id)) != (line.instruction, line.shape_index, line.header):
            raise DumpError(
                "value-mismatch",
                f"value {line.id} {line.instruction}{line.shape_index} is listed as reusing allocation"
                f" {line.header}, which does not hold it; are lines missing?",
                section="allocations",
                text=at,
            )
        check_magnitude("color", "allocations", (int(line.color), int(line.value_color or 0)), at)


def check_unique_ranges(keys: Iterable[tuple[str, str]]) -> None:
    """Require the live ranges to be of different values; `keys` are (instruction, index) in print order."""
    seen: set[tuple[str, str]] = set()
    for key in keys:
        if key in seen:
            value = "".join(key)
            raise DumpError(
                "duplicate-value",
                f"the live range of {value} is listed twice",
                section="ranges",
                text=f"    {value}:",
            )
        seen.add(key)


def check_range(name: str, index: str, start: int, end: int, length: int, file: str) -> None:
    """Require 0 <= start <= end <= length of the schedule."""
    if not start <= end <= length:
        raise DumpError(
            "out-of-bounds",
            f"the live range {start}-{end} of {name}{index} is not within the slots 0-{length}",
            file=file,
            section="ranges",
            text=f"    {name}{index}:{start}-{end}",
        )


def check_peak_list(dump: ParsedDump, live: Sequence[tuple[str, str]], file: str) -> None:
    """Refuse a peak list that ends before the live values of its slot do, with nothing after it.

    Args:
        dump: its notices get what else differs.
        live: (instruction, index) of the values live at the slot.
        file: name for messages.
    """
    assert dump.peak is not None
    rows, time = dump.peak.rows, dump.peak.time
    if len(rows) < len(live) and dump.tree is None:
        raise DumpError(
            "truncated",
            f"the peak list has {len(rows)} of {len(live)} values: the file is cut off; copy it again",
            file=file,
            section="peak",
            text=f"  Live ranges at {time} (peak):",
        )
    if features.PEAK_INDEX in dump.features:
        is_same = len(rows) == len(live) and {(row.instruction, row.shape_index) for row in rows} == set(live)
    else:
        is_same = Counter(row.instruction for row in rows) == Counter(name for name, _ in live)
    if not is_same:
        message = f"the peak list names {len(rows)} values, not the {len(live)} that are live at slot {time}"
        note(dump.notices, [Notice(file, None, "peak-list", message)])
    if dump.tree is not None and dump.tree.total != dump.peak.total:
        message = "the stack-trace tree is of other bytes than the peak list; are lines missing?"
        note(dump.notices, [Notice(file, None, "stack-tree", message)])


def check_numbers(dump: ParsedDump) -> None:
    """Require the numbers of allocations and values, where no text was scanned for them, to fit 64 bits."""
    check_colors(dump.values)
    check_allocated(dump.allocated)
    if dump.used is not None:
        check_operands(dump.used.uses)


def check_allocated(total: int) -> None:
    """Require the sizes of all allocations to sum to a signed 64-bit integer."""
    check_magnitude("the sum of all sizes,", "allocations", (total,))


def check_tree(tree: TreeScan) -> None:
    """Require the figures of a stack-trace tree to fit 64 bits."""
    figures = [figure for node in tree.nodes for figure in node[4:]]
    if figures and (min(figures) < -LIMIT or max(figures) >= LIMIT):
        check_magnitude("bytes", "tree", figures)


def check_colors(values: Sequence[tuple[str, ...]]) -> None:
    """Require the colors of values (rows as `ValueLine`) to fit 64 bits."""
    if max(map(len, map(itemgetter(4), values)), default=0) <= 18:
        return
    for value in values:
        if len(value[4]) > 18:
            check_magnitude("color", "allocations", (int(value[4]),), f" value: <{value[0]} ")


def check_operands(uses: Sequence[tuple[str, str, str]]) -> None:
    """Require the operand numbers of uses to fit 64 bits."""
    if max(map(len, map(itemgetter(1), uses)), default=0) <= 18:
        return
    for user, operand, _ in uses:
        if len(operand) > 18:
            check_magnitude("operand", "values", (int(operand),), f"  {user}, operand {operand}")
