"""Rules that every dump must keep, or it is rejected whole.

Each rule held in all 5,504 public dumps that were checked, and in the project's own; a dump that breaks
one is damaged. Messages name the value or allocation at fault; `locate` finds the line for it, which is
not tracked while all is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingest.dump.allocations import Header
from ingest.dump.source import BlockReader
from ingest.errors import DumpError

LIMIT = 2**63
"""Sizes, offsets and ids must fit a signed 64-bit integer."""


def check_headers(headers: Sequence[Header], first: int, file: str) -> None:
    """Require allocation indices first, first + 1, ... and sizes within 64 bits."""
    for expected, header in enumerate(headers, first):
        if header.index != expected:
            raise DumpError(
                "allocation-index",
                f"allocation {header.index} stands where {expected} should; are lines missing or repeated?",
                section="allocations", text=f"allocation {header.index}: ",
            )  # fmt: skip
        if header.size >= LIMIT:
            raise DumpError(
                "number-too-large", f"allocation {header.index} has {header.size} bytes, more than 2^63 - 1",
                section="allocations", text=f"allocation {header.index}: ",
            )  # fmt: skip


def check_bounds(
    ids: Sequence[int], offsets: Sequence[int], sizes: Sequence[int], allocations: Sequence[int],
    allocation_sizes: Sequence[int],
) -> None:  # fmt: skip
    """Require every value to lie within its allocation, and its id to fit 64 bits."""
    for id_, offset, size, allocation in zip(ids, offsets, sizes, allocations, strict=True):
        if offset + size > allocation_sizes[allocation]:
            raise DumpError(
                "out-of-bounds",
                f"value {id_} ends at byte {offset + size} of allocation {allocation},"
                f" which has {allocation_sizes[allocation]}",
                section="allocations", text=f" value: <{id_} ",
            )  # fmt: skip
        if id_ >= LIMIT:
            raise DumpError(
                "number-too-large", f"value id {id_} is more than 2^63 - 1",
                section="allocations", text=f" value: <{id_} ",
            )  # fmt: skip


def check_unique(sorted_ids: Sequence[int]) -> None:
    """Require ids in ascending order to differ."""
    for one, following in zip(sorted_ids, sorted_ids[1:], strict=False):
        if one == following:
            raise DumpError(
                "duplicate-value", f"value {one} is listed twice",
                section="allocations", text=f" value: <{one} ",
            )  # fmt: skip


def check_total(allocated: int, printed: int | None) -> None:
    """Require the printed total to be the sum of the allocations."""
    if printed is not None and allocated != printed:
        raise DumpError(
            "total-mismatch",
            f"the allocations sum to {allocated} bytes, 'Total bytes used' says {printed};"
            " are lines missing, or files of different compilations side by side?",
            section="total", text="Total bytes used: ",
        )  # fmt: skip


def check_same_values(values: Sequence[tuple[str, ...]], used: Sequence[tuple[str, ...]]) -> None:
    """Require value lines and `Used values` to list the same values in the same order.

    Both hold (id, instruction, index, phi, color, ...) as printed; value lines sorted by id.
    """
    for value, block in zip(values, used, strict=False):
        if value[:5] != block[:5]:
            if value[0] == block[0]:
                message = f"value {value[0]} is {_key(value)} in its allocation and {_key(block)} under Used values"
            elif int(value[0]) < int(block[0]):
                message = f"value {value[0]} {value[1]} is missing under Used values, or out of order"
            else:
                message = f"value {block[0]} {block[1]} under Used values is in no allocation, or out of order"
            raise DumpError("value-mismatch", message, section="values", text=f"<{block[0]} ")
    if len(values) != len(used):
        more, place = (values, "Used values") if len(values) > len(used) else (used, "any allocation")
        row = more[min(len(values), len(used))]
        raise DumpError(
            "value-mismatch", f"value {row[0]} {row[1]} is not listed under {place}; is the file cut off?",
            section="values", text=f"<{row[0]} ",
        )  # fmt: skip


def _key(row: tuple[str, ...]) -> str:
    color = f" @{row[4]}" if row[4] else ""
    return f"{row[1]}{row[2]}{row[3]}{color}"


def check_magnitude(what: str, section: str, numbers: Iterable[int | None]) -> None:
    """Require numbers to fit a signed 64-bit integer."""
    for number in numbers:
        if number is not None and not -LIMIT <= number < LIMIT:
            raise DumpError(
                "number-too-large", f"{what} {number} does not fit 64 bits; is the file damaged?", section=section
            )


def locate(error: DumpError, files: Sequence[str]) -> None:
    """Fill in the file, the line and the byte offset of an error that only names the text at fault.

    Reads the files again; a rejected dump is rare.
    """
    if error.line is None and error.text:
        for file in files:
            line = 1
            for block in BlockReader(file):
                at = 0 if block.startswith(error.text) else block.find("\n" + error.text) + 1
                if at or block.startswith(error.text):
                    error.file = file
                    error.line = line + block.count("\n", 0, at)
                    end = block.find("\n", at)
                    error.text = block[at : end if end >= 0 else len(block)][:2000]
                    break
                line += block.count("\n")
            if error.line is not None:
                break
    if not error.file:
        error.file = files[0]
    if error.line is not None and error.byte_offset is None:
        error.byte_offset = _offset_of_line(error.file, error.line)


def _offset_of_line(file: str, line: int) -> int | None:
    """Return where a line starts in the uncompressed text, in bytes."""
    offset = 0
    for block in BlockReader(file):
        lines = block.count("\n")
        if line <= lines or not lines:
            at = 0
            for _ in range(line - 1):
                at = block.find("\n", at) + 1
            return offset + len(block[:at].encode(errors="surrogateescape"))
        line -= lines
        offset += len(block.encode(errors="surrogateescape"))
    return offset if line == 1 else None
