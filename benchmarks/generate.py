"""Make dumps of any size and number out of a real one.

A scaled dump is a module that does the same thing many times over, one after the other: every copy has its
own allocations, values, slots and live ranges, under names and ids of its own. It keeps every rule that a
real dump keeps, so it validates, and it prints back byte for byte. Only the total is larger, and the peak is
that of the first copy.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingest.dump import features
from ingest.dump.parse import parse_dump
from ingest.dump.records import Dump

ENDINGS: Final = {
    "primary": "-buffer-assignment.txt",
    "values": "-buffer-assignment-values.txt",
    "live_range": "-live-range.txt",
}
STEM: Final = "module_{number:04d}.jit_f{kind:03d}.cpu_after_optimizations"

_UNFIT: Final = {
    features.LOGICAL_BUFFERS,
    features.EMBEDDED_VALUES,
    features.GLUED_NEWLINE,
    features.MULTILINE_INSTRUCTION,
    features.LIVE_RANGE_UNAVAILABLE,
    features.PEAK_UNBOUNDED,
}
_NAME: Final = r"[^\s{}<>|,]+"
_VALUE: Final = re.compile(rf"^( +value: <)([0-9]+) ({_NAME})", re.M)
_BLOCK: Final = re.compile(rf"^<([0-9]+) ({_NAME})", re.M)
_PLACE: Final = re.compile(rf"^  (?!\(none\)$)({_NAME})", re.M)
_TEXT: Final = re.compile(r"^ from instruction:.*$", re.M)
_OPERAND: Final = re.compile(r"%[\w.-]+")
_PEAK_LINE: Final = re.compile(r"^    ([^{}\n]+?)(?=\{[0-9,]*\}: |: [0-9])", re.M)
_HEADER: Final = re.compile(r"^allocation [0-9]+(?=: )", re.M)
_VARIANTS: Final = 50
"""Different endings of the names in many dumps."""
_HUMAN: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

# Stand for the number of a copy and for the ending of its names, in a text without control characters.
_NUMBER: Final = "\x01"
_ENDING: Final = "\x02"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A real dump, cut up for copying; texts hold marks where a copy's number and ending go."""

    source: str
    dump: Dump
    allocations: tuple[str, ...]
    """Each allocation after its number: rest of the header, value lines."""
    used: str | None
    slots: tuple[str, ...] | None
    ranges: tuple[tuple[str, int, int], ...] | None
    after: str
    """Peak list and stack-trace tree."""
    human_total: bool
    is_split: bool
    copy_bytes: int
    """Text that one copy adds, about."""


def read_pattern(path: str | os.PathLike[str]) -> Pattern:
    """Cut up a real dump.

    Args:
        path: the primary file; the others are found by their names.

    Raises:
        ValueError: the dump is of an era, or has a defect, that copies cannot keep.
    """
    source = os.fspath(path)
    dump = parse_dump(source)
    if unfit := dump.features & _UNFIT:
        raise ValueError(f"{source}: cannot be scaled: {', '.join(sorted(unfit))}")
    files = {role: source.removesuffix(ENDINGS["primary"]) + ending for role, ending in ENDINGS.items()}
    texts = {role: _read(file) for role, file in files.items() if os.path.exists(file)}
    text = "".join(texts.values())
    if _NUMBER in text or _ENDING in text:
        raise ValueError(f"{source}: cannot be scaled: holds control characters")
    width = len(str(max((value.id for value in dump.values), default=0)))
    head, found_total, rest = text.partition("\nTotal bytes used: ")
    total_line, _, rest = rest.partition("\n")
    used, found_ranges, ranges = rest.partition("HloLiveRange (max ")
    if not found_total:
        head, found_ranges, ranges = text.partition("HloLiveRange (max ")
        used = ""
    starts = [match.end() for match in _HEADER.finditer(head)]
    ends = [*[match.start() for match in _HEADER.finditer(head)][1:], len(head)]
    peak = ranges.find("  Live ranges at ")
    return Pattern(
        source,
        dump,
        tuple(_mark_values(head[start:end], width) for start, end in zip(starts, ends, strict=True)),
        _mark_used(used.lstrip("\n").removeprefix("Used values:\n"), width) if found_total else None,
        dump.schedule,
        tuple((f"{one.instruction}{_ENDING}{one.shape_index}", one.start, one.end) for one in dump.ranges)
        if dump.ranges is not None
        else None,
        _mark_peak(ranges[peak:]) if found_ranges else "",
        "(" in total_line,
        features.SPLIT_FILES in dump.features,
        len(text),
    )


def scale(pattern: Pattern, copies: int, directory: Path, *, number: int = 0, first: int = 1) -> int:
    """Write one dump of so many copies; return the bytes written.

    Args:
        pattern: what to copy.
        copies: how often.
        directory: where the files go; it must be there.
        number: number of the module, which makes up the file names.
        first: number of the first copy; dumps with different ones have no name in common.
    """
    stem = STEM.format(number=number, kind=number % 997)
    numbers = range(first, first + copies)
    parts = {
        "primary": [_allocations(pattern, numbers)],
        "values": [_used(pattern, numbers)] if pattern.used is not None else [],
        "live_range": [_live_range(pattern, numbers)] if pattern.ranges is not None else [],
    }
    if not pattern.is_split:
        parts = {"primary": [*parts["primary"], *parts["values"], *parts["live_range"]]}
    written = 0
    for role, sections in parts.items():
        if sections:
            with open(directory / f"{stem}{ENDINGS[role]}", "w", encoding="utf-8", newline="") as file:
                for section in sections:
                    file.writelines(section)
                written += file.tell()
    return written


def one_dump(pattern: Pattern, text_bytes: int, directory: Path) -> int:
    """Write one dump of about so many bytes; return how many they are."""
    return scale(pattern, max(1, round(text_bytes / pattern.copy_bytes)), directory)


def many_dumps(patterns: Sequence[Pattern], count: int, directory: Path) -> int:
    """Write many dumps, each one copy of one of the patterns in turn; return the bytes written.

    Names repeat from dump to dump, as those of real modules do.
    """
    return sum(
        scale(
            patterns[number % len(patterns)],
            1,
            directory,
            number=number,
            first=1 + number // len(patterns) % _VARIANTS,
        )
        for number in range(count)
    )


def _read(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def _mark_values(text: str, width: int) -> str:
    return _VALUE.sub(lambda m: f"{m[1]}{_NUMBER}{int(m[2]):0{width}} {m[3]}{_ENDING}", text)


def _mark_used(text: str, width: int) -> str:
    """Mark ids and names; instruction texts are kept apart from the lines that look like theirs."""
    out = []
    at = 0
    for match in _TEXT.finditer(text):
        out.append(_mark_places(text[at : match.start()], width))
        out.append(_OPERAND.sub(rf"\g<0>{_ENDING}", match[0]))
        at = match.end()
    out.append(_mark_places(text[at:], width))
    return "".join(out).rstrip("\n") + "\n"


def _mark_places(text: str, width: int) -> str:
    text = _BLOCK.sub(lambda m: f"<{_NUMBER}{int(m[1]):0{width}} {m[2]}{_ENDING}", text)
    return _PLACE.sub(rf"  \1{_ENDING}", text)


def _mark_peak(text: str) -> str:
    """Mark the names of the peak list; the labels of the tree are no names."""
    rows, tree, nodes = text.partition("  Stack trace breakdown")
    return _PEAK_LINE.sub(rf"\g<0>{_ENDING}", rows) + tree + nodes


def _filled(text: str, number: int) -> str:
    return text.replace(_NUMBER, str(number)).replace(_ENDING, f".c{number}")


def _allocations(pattern: Pattern, numbers: range) -> Iterator[str]:
    yield "BufferAssignment:\n"
    index = 0
    for number in numbers:
        for text in pattern.allocations:
            yield f"allocation {index}{_filled(text, number)}"
            index += 1


def _used(pattern: Pattern, numbers: range) -> Iterator[str]:
    total = len(numbers) * sum(allocation.size for allocation in pattern.dump.allocations)
    yield f"\nTotal bytes used: {total}{f' ({_human(total)})' if pattern.human_total else ''}\n"
    yield "\nUsed values:\n"
    for number in numbers:
        yield _filled(pattern.used or "", number)
    if not pattern.is_split and pattern.ranges is not None:
        yield "\n\n"


def _live_range(pattern: Pattern, numbers: range) -> Iterator[str]:
    """Yield the copies one after the other, with a slot between them in which nothing of either is live."""
    slots = pattern.slots or ()
    period = len(slots) + 2
    yield f"HloLiveRange (max {len(numbers) * period - 2}):\n  InstructionSequence:\n"
    for place, number in enumerate(numbers):
        start = place * period
        lines = [f"    {start + slot}:{name}.c{number}\n" for slot, name in enumerate(slots)]
        if place < len(numbers) - 1:
            lines += [f"    {start + len(slots) + more}:between.{more}.c{number}\n" for more in range(2)]
        yield "".join(lines)
    yield "  BufferLiveRange:\n"
    for place, number in enumerate(numbers):
        start = place * period
        yield _filled(
            "".join(
                f"    {name}:{start + first}-{start + last}\n" for name, first, last in pattern.ranges or ()
            ),
            number,
        )
    yield _filled(pattern.after, numbers[0])


def _human(total: int) -> str:
    """Print bytes as XLA does: whole numbers are divided until less than a MiB is left."""
    unit = 0
    number = float(total)
    while total >= 1 << 20:
        total >>= 10
        unit += 1
    if total < 1024 and not unit:
        return f"{total}B"
    number = total / 1024
    return f"{number:.1f}KiB" if not unit else f"{number:.2f}{_HUMAN[unit + 1]}"
