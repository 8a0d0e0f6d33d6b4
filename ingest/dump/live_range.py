"""Scan `HloLiveRange`: schedule, live ranges, the printed peak and its stack-trace tree (FORMAT 5)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ingest.dump.allocations import INDEX, LINES
from ingest.dump.records import Notice, StackNode
from ingest.errors import DumpError

_HEAD: Final = re.compile(r"HloLiveRange \(max ([0-9]+)\):\n  InstructionSequence:\n")
_SLOT: Final = re.compile(r"^    ([0-9]+):(.*)\n", re.M)
_RANGE: Final = re.compile(rf"^    ([^{{}}\n]+)({INDEX}):([0-9]+)-([0-9]+)\n", re.M)
_PEAK_HEAD: Final = re.compile(r"  Live ranges at ([0-9]+) \(peak\):\n")
_PEAK: Final = re.compile(
    rf"^    ([^{{}}\n]+?)({INDEX})?: ([0-9]+) bytes(?: \(cumulative: ([0-9]+) bytes\))?\n", re.M
)
_TREE_HEAD: Final = re.compile(r"  Stack trace breakdown for peak usage: (-?[0-9 ]+) bytes\n")
_NODE: Final = re.compile(
    r"    ((?:  (?:│   |    )*(?:├── |└── ))?)([\s\S]*?)"
    r" \((-?[0-9.]+|-?nan|-?inf)%, total: (-?[0-9 ]+) bytes, current: (-?[0-9 ]+) bytes,"
    r" remaining: (-?[0-9 ]+) bytes\)\n"
)
_KNOWN_STARTS: Final = {
    "sequence": re.compile(r"    [0-9]"),
    "ranges": re.compile(r"    .*\}:"),
    "peak": re.compile(r"    .* bytes"),
}
"""Lines that stand for a record of the section, though they may not be readable as one."""
UNBOUNDED: Final = "  Peak memory could not be determined due to unbounded dynamic shape.\n"
UNAVAILABLE: Final = "HloLiveRange not available"


def scan_head(text: str, line: int, file: str) -> tuple[int, str]:
    """Return `max N` and the text after the section's two head lines."""
    match = _HEAD.match(text)
    if match is None:
        raise _bad_line(text, line, file, "sequence", "HloLiveRange (max N): and InstructionSequence:")
    return int(match[1]), text[match.end() :]


def scan_sequence(body: str, first_slot: int, line: int, file: str, notices: list[Notice]) -> list[str]:
    """Return the instruction of each slot; the slots must be `first_slot`, `first_slot + 1`, ..."""
    rows = _SLOT.findall(body)
    if len(rows) != body.count("\n"):
        body = _without_unknown(_SLOT, body, line, file, "sequence", notices)
    expected = list(map(str, range(first_slot, first_slot + len(rows))))
    if [slot for slot, _ in rows] != expected:
        wrong = next(i for i, (row, slot) in enumerate(zip(rows, expected, strict=True)) if row[0] != slot)
        raise DumpError(
            "sequence-length",
            f"slot {rows[wrong][0]} of the instruction sequence stands where {expected[wrong]} should",
            file=file,
            line=line + wrong,
            section="sequence",
            text=f"{rows[wrong][0]}:{rows[wrong][1]}",
        )
    return [name for _, name in rows]


def scan_ranges(text: str, line: int, file: str, notices: list[Notice]) -> list[tuple[str, str, str, str]]:
    """Return (instruction, index, start, end) of each line of a piece of `BufferLiveRange:`."""
    body = text.removeprefix("  BufferLiveRange:\n")
    line += body is not text
    rows = _RANGE.findall(body)
    if len(rows) != body.count("\n"):
        _without_unknown(_RANGE, body, line, file, "ranges", notices)
    return rows


class PeakScan(NamedTuple):
    """The printed peak: `rows` are (instruction, index, bytes, cumulative), '' where not printed."""

    time: int | None
    rows: list[tuple[str, str, str, str]]


def scan_peak(text: str, line: int, file: str, notices: list[Notice]) -> PeakScan:
    """Scan the peak list, whole."""
    if text.startswith("  Peak memory could not"):
        if text != UNBOUNDED:
            _without_unknown(_PEAK, text.removeprefix(UNBOUNDED), line + 1, file, "peak", notices)
        return PeakScan(None, [])
    head = _PEAK_HEAD.match(text)
    if head is None:
        raise _bad_line(text, line, file, "peak", "Live ranges at N (peak):")
    rows = _PEAK.findall(text, head.end())
    if len(rows) != text.count("\n") - 1:
        _without_unknown(_PEAK, text[head.end() :], line + 1, file, "peak", notices)
    return PeakScan(int(head[1]), rows)


class TreeScan(NamedTuple):
    """The stack-trace tree; `total` is the figure of its head line."""

    total: int
    nodes: tuple[StackNode, ...]


def scan_tree(text: str, line: int, file: str, notices: list[Notice]) -> TreeScan:
    """Scan the stack-trace tree, whole.

    Labels are raw text (hazard D): a node reaches as far as its tail of figures.

    Raises:
        DumpError: the tree is cut off.
    """
    head = _TREE_HEAD.match(text)
    if head is None:
        raise _bad_line(text, line, file, "tree", "Stack trace breakdown for peak usage: N bytes")
    nodes: list[StackNode] = []
    path: list[int] = []
    open_below: list[bool] = []
    at = head.end()
    while at < len(text):
        match = _NODE.match(text, at)
        if match is None:
            where = line + text.count("\n", 0, at)
            rest = text[at:]
            if not rest.endswith("\n") or " bytes)" not in rest:
                raise _cut_off(file, where, rest)
            end = text.find("\n", at) + 1
            notices.append(
                Notice(file, where, "unknown-line", "xbuf does not know this line", text[at : end - 1])
            )
            at = end
            continue
        prefix, label, percent, total, current, remaining = match.groups()
        depth = (len(prefix) - 2) // 4 if prefix else 0
        if depth > len(path):
            raise _cut_off(file, line + text.count("\n", 0, at), match[0])
        del path[depth:], open_below[depth:]
        nodes.append(
            StackNode(
                depth,
                path[-1] if path else None,
                label,
                percent,
                _grouped(total),
                _grouped(current),
                _grouped(remaining),
            )
        )
        path.append(len(nodes) - 1)
        open_below.append("├" in prefix)
        at = match.end()
    total = _grouped(head[1])
    # The last node is a leaf, and the roots make up the total but for what integer division loses where
    # bytes are shared between call sites.
    missing = total - sum(node.total for node in nodes if not node.depth)
    ends_open = any(open_below) or (nodes and nodes[-1].total > nodes[-1].current)
    if ends_open or missing > len(nodes):
        raise _cut_off(file, line + text.count("\n"), text[-200:])
    return TreeScan(total, tuple(nodes))


def _grouped(digits: str) -> int:
    """Read an integer whose digits are printed in groups of three."""
    return int(digits.replace(" ", ""))


def _without_unknown(
    pattern: re.Pattern[str], body: str, line: int, file: str, section: str, notices: list[Notice]
) -> str:
    """Note the lines that `pattern` does not match; refuse those that stand for a record all the same."""
    kept: list[str] = []
    for number, text in enumerate(LINES.findall(body)):
        if pattern.fullmatch(text):
            kept.append(text)
        elif _KNOWN_STARTS[section].match(text):
            raise DumpError(
                "bad-line",
                "this line cannot be read here; is the file damaged?",
                file=file,
                line=line + number,
                section=section,
                text=text.rstrip("\n"),
            )
        else:
            notices.append(
                Notice(file, line + number, "unknown-line", "xbuf does not know this line", text.rstrip("\n"))
            )
    return "".join(kept)


def _bad_line(text: str, line: int, file: str, section: str, expected: str) -> DumpError:
    first = text.split("\n", 1)[0]
    if "\n" not in text:
        return DumpError(
            "truncated",
            "the file ends in the middle of a line; copy it again",
            file=file,
            line=line,
            section=section,
            text=first,
        )
    return DumpError(
        "bad-line",
        f"expected '{expected}'; is the file damaged?",
        file=file,
        line=line,
        section=section,
        text=first,
    )


def _cut_off(file: str, line: int, text: str) -> DumpError:
    return DumpError(
        "truncated",
        "the stack-trace tree is cut off; copy the file again",
        file=file,
        line=line,
        section="tree",
        text=text[:2000],
    )
