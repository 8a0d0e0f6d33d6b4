"""A plain parser, line by line, for comparison: `python -m benchmarks.by_line DIRECTORY DATABASE`.

What a careful afternoon gives: one expression a kind of line, a state for the section. The rows and the load
are those of `benchmarks.rough`, so that the difference is the parser's alone.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from benchmarks.rough import COLUMNS, KEY, Rows, find_sets, load, read_set

_ALLOCATION: Final = re.compile(r"allocation ([0-9]+): (?:0x[0-9a-f]+, )?size ([0-9]+)(.*):$")
_VALUE: Final = re.compile(rf" value: <{KEY}> \(size=([0-9]+),offset=([0-9]+)\): (.*)$")
_HEAD: Final = re.compile(rf"<{KEY}>$")
_POSITION: Final = re.compile(r"  ([\w.-]+)(?: (\{[0-9,]*\}))?$")
_USE: Final = re.compile(r"  ([\w.-]+), operand ([0-9]+)(?: (\{[0-9,]*\}))?$")
_TEXT: Final = re.compile(r" from instruction: ?(.*)$")
_SLOT: Final = re.compile(r"    ([0-9]+):(.*)$")
_RANGE: Final = re.compile(r"    ([\w.-]+)(\{[0-9,]*\}):([0-9]+)-([0-9]+)$")


def parse(text: str) -> Rows:
    """Return the records of one dump."""
    rows: Rows = {table: [] for table in COLUMNS}
    section = "allocations"
    key: tuple[str, ...] = ()
    for line in text.split("\n"):
        if line in ("Used values:", " positions:", " uses:", "  InstructionSequence:", "  BufferLiveRange:"):
            section = line.strip(" :")
        elif line.startswith("  Live ranges at"):
            section = "peak"
        elif section == "positions" and (match := _POSITION.match(line)):
            rows["positions"].append((key[0], *match.groups("")))
        elif section == "uses" and (match := _USE.match(line)):
            rows["uses"].append((key[0], *match.groups("")))
        elif section == "InstructionSequence" and (match := _SLOT.match(line)):
            rows["schedule"].append(match.groups(""))
        elif section == "BufferLiveRange" and (match := _RANGE.match(line)):
            rows["ranges"].append(match.groups(""))
        elif match := _VALUE.match(line):
            rows["values"].append(match.groups(""))
        elif match := _ALLOCATION.match(line):
            rows["allocations"].append(match.groups(""))
        elif match := _TEXT.match(line):
            rows["texts"].append((*key, match[1]))
        elif match := _HEAD.match(line):
            key = match.groups("")
    return rows


def main() -> None:
    """Parse and load."""
    directory, database = sys.argv[1:]
    print(load([parse(read_set(files)) for files in find_sets(directory)], database))


if __name__ == "__main__":
    main()
