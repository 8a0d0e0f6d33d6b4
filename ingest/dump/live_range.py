"""Scan `HloLiveRange`: schedule, live ranges, the printed peak and its stack-trace tree (FORMAT 5)."""

from __future__ import annotations

import re
from itertools import accumulate, islice
from typing import Final, NamedTuple

from ingest.dump.damaged import cut_in_line, unreadable_line
from ingest.dump.grammar import INDEX, INT, KNOWN_START, LINES, NAME
from ingest.dump.notices import Notices, note, unknown_line
from ingest.dump.records import Notice, StackNode
from ingest.errors import DumpError

_HEAD: Final = re.compile(rf"HloLiveRange \(max ({INT})\):\n  InstructionSequence:\n")
SLOT: Final = re.compile(rf"^    ({INT}):({NAME})\n", re.M)
"""A line of the instruction sequence."""
_RANGE: Final = re.compile(rf"^    ({NAME})({INDEX}):({INT})-({INT})\n", re.M)
_PEAK_HEAD: Final = re.compile(rf"  Live ranges at ({INT}) \(peak\):\n")
_PEAK: Final = re.compile(
    rf"^    ({NAME})({INDEX})?: ({INT}) bytes(?: \(cumulative: ({INT}) bytes\))?\n", re.M
)
_TREE_HEAD: Final = re.compile(r"  Stack trace breakdown for peak usage: (-?[0-9][0-9 ]*) bytes\n")
_NODE_START: Final = re.compile(r"    ((?:  (?:│   |    )*(?:├── |└── ))?)")
# Searched for, not matched behind a lazy label: that would read the rest of the text for every node.
_NODE_TAIL: Final = re.compile(
    r" \((-?[0-9]{1,40}\.[0-9]|-?nan|-?inf)%, total: (-?[0-9][0-9 ]*) bytes,"
    r" current: (-?[0-9][0-9 ]*) bytes, remaining: (-?[0-9][0-9 ]*) bytes\)\n"
)
_GROUPED: Final = r"(-?(?!0 ?[0-9])[0-9]{1,3}(?: [0-9]{3}){0,13})"
_NODE: Final = re.compile(
    rf"{_NODE_START.pattern}(.*?) \((-?[0-9]{{1,40}}\.[0-9])%, total: {_GROUPED} bytes,"
    rf" current: {_GROUPED} bytes, remaining: {_GROUPED} bytes\)\n"
)
"""A node on one line, as nearly all are."""
_LONGEST_NUMBER: Final = 60
"""Characters of a grouped number."""
_KNOWN_STARTS: Final = {
    "sequence": re.compile(r"    [0-9]"),
    "ranges": re.compile(r"    .*\}:"),
    "peak": re.compile(r"    .* bytes"),
}
"""Lines that stand for a record of the section, though they may not be readable as one."""
RANGES_HEAD: Final = "  BufferLiveRange:\n"
MAX_INT: Final = 2**63 - 1
UNBOUNDED: Final = "  Peak memory could not be determined due to unbounded dynamic shape.\n"
UNAVAILABLE: Final = "HloLiveRange not available"
WHY_UNAVAILABLE: Final = f"{UNAVAILABLE} (finalized or constructed from proto)"


def scan_head(text: str, line: int, file: str) -> tuple[int, int]:
    """Return `max N` of the section's two head lines, and where they end."""
    match = _HEAD.match(text)
    if match is None:
        raise _bad_line(text, line, file, "sequence", "HloLiveRange (max N): and InstructionSequence:")
    return int(match[1]), match.end()


def scan_sequence(body: str, first_slot: int, line: int, file: str, notices: Notices) -> list[str]:
    """Return the instruction of each slot; the slots must be `first_slot`, `first_slot + 1`, ..."""
    rows = SLOT.findall(body)
    if len(rows) != body.count("\n"):
        _without_unknown(SLOT, body, line, file, "sequence", notices)
    expected = list(map(str, range(first_slot, first_slot + len(rows))))
    if [slot for slot, _ in rows] != expected:
        wrong = next(i for i, (row, slot) in enumerate(zip(rows, expected, strict=True)) if row[0] != slot)
        at = next(islice(SLOT.finditer(body), wrong, None)).start()
        raise DumpError(
            "sequence-length",
            f"slot {rows[wrong][0]} of the instruction sequence stands where {expected[wrong]} should",
            file=file,
            line=line + body.count("\n", 0, at),
            section="sequence",
            text=f"    {rows[wrong][0]}:{rows[wrong][1]}",
        )
    return [name for _, name in rows]


def scan_ranges(text: str, line: int, file: str, notices: Notices) -> list[tuple[str, str, str, str]]:
    """Return (instruction, index, start, end) of each line after `BufferLiveRange:`, or of some of them."""
    rows = _RANGE.findall(text)
    if len(rows) != text.count("\n"):
        _without_unknown(_RANGE, text, line, file, "ranges", notices)
    return rows


class PeakRow(NamedTuple):
    """A line of the peak list as printed, all text; '' where a part is not printed."""

    instruction: str
    shape_index: str
    size: str
    """Bytes."""
    cumulative: str
    """Bytes of this line and of all before."""


class PeakScan(NamedTuple):
    """The printed peak."""

    time: int | None
    rows: list[PeakRow]
    total: int = 0
    """Sum of the bytes."""


def scan_peak(text: str, line: int, file: str, notices: Notices) -> PeakScan:
    """Scan the peak list, whole."""
    if text.startswith(UNBOUNDED):
        for number, other in enumerate(LINES.findall(text, len(UNBOUNDED)), line + 1):
            note(notices, [unknown_line(file, number, other)])
        return PeakScan(None, [])
    head = _PEAK_HEAD.match(text)
    if head is None:
        raise _bad_line(text, line, file, "peak", "Live ranges at N (peak):")
    rows = list(map(PeakRow._make, _PEAK.findall(text, head.end())))
    if len(rows) != text.count("\n") - 1:
        _without_unknown(_PEAK, text[head.end() :], line + 1, file, "peak", notices)
    time, sizes = int(head[1]), [int(row.size) for row in rows]
    if max(time, sum(sizes)) > MAX_INT:
        raise DumpError(
            "number-too-large",
            "the bytes of the peak list do not fit 64 bits; is the file damaged?",
            file=file,
            line=line,
            section="peak",
        )
    sums = [row.cumulative for row in rows]
    if rows and (sums[0] or sums[-1]) and sums != list(map(str, accumulate(sizes))):
        message = "the cumulative sizes of the peak list do not add up; is the file damaged?"
        note(notices, [Notice(file, line, "peak-list", message)])
    return PeakScan(time, rows, sum(sizes))


class TreeScan(NamedTuple):
    """The stack-trace tree; `total` is the figure of its head line."""

    total: int
    nodes: tuple[StackNode, ...]


def scan_tree(text: str, line: int, file: str, notices: Notices) -> TreeScan:
    """Scan the stack-trace tree, whole.

    Labels are raw text (hazard D): a node reaches as far as its tail of figures.

    Raises:
        DumpError: the tree is cut off.
    """
    head = _TREE_HEAD.match(text)
    if head is None:
        raise _bad_line(text, line, file, "tree", "Stack trace breakdown for peak usage: N bytes")
    printed = _grouped(head[1], file, line)
    nodes: list[StackNode] = []
    unexplained: list[int] = []  # for each node, its bytes less its own and its children's
    path: list[int] = []  # places of the last node and its ancestors
    is_open: list[bool] = []  # for each of them: its connector promises another node of that level
    indents = [""]  # what stands before the connector of a node, by its depth
    left, fits = printed, True
    at, counted = head.end(), 0  # `line` is that of `counted`
    while at < len(text):
        node = _NODE.match(text, at)
        if node is not None:
            prefix, label, percent, *_ = node.groups()
            end = node.end()
            total = int(node[4].replace(" ", ""))
            current, remaining = int(node[5].replace(" ", "")), int(node[6].replace(" ", ""))
        else:
            line, counted = line + text.count("\n", counted, at), at
            start = _NODE_START.match(text, at)
            if start is None:
                end = text.find("\n", at) + 1 or len(text)
                note(notices, [unknown_line(file, line, text[at:end])])
                at = end
                continue
            tail = _NODE_TAIL.search(text, start.end())
            if tail is None:
                raise _cut_off(file, line, text[at : at + 2000])
            prefix, label, percent = start[1], text[start.end() : tail.start()], tail[1]
            end = tail.end()
            total, current, remaining = [_grouped(tail[place], file, line) for place in (2, 3, 4)]
        depth = (len(prefix) - 2) // 4 if prefix else 0
        if depth > len(path):
            raise DumpError(
                "bad-line",
                "this node of the stack-trace tree has no parent; are lines missing?",
                file=file,
                line=line + text.count("\n", counted, at),
                section="tree",
                text=text[at : text.find("\n", at)],
            )
        left -= current
        if prefix[:-4] != indents[depth] or left != remaining:
            fits = False
        if depth < len(path):
            if (depth and not is_open[depth]) or True in is_open[depth + 1 :]:
                fits = False
            del path[depth:], is_open[depth:], indents[depth + 1 :]
        parent = None
        if depth:
            parent = path[-1]
            unexplained[parent] -= total
        promises = "├" in prefix
        indents.append(f"{indents[depth]}{'│   ' if promises else '    '}" if depth else "  ")
        path.append(len(nodes))
        is_open.append(promises)
        nodes.append(StackNode(depth, parent, label, percent, total, current, remaining))
        unexplained.append(total - current)
        at = end
    # The last node is a leaf, and the roots make up the total but for what integer division loses where
    # bytes are shared between call sites.
    missing = printed - sum(node.total for node in nodes if not node.depth)
    ends_open = any(is_open) or (nodes and nodes[-1].total > nodes[-1].current)
    if ends_open or missing > len(nodes):
        raise _cut_off(file, line + text.count("\n", counted), text[-200:])
    if not fits or any(unexplained):
        message = "the stack-trace tree does not add up; are lines missing?"
        note(notices, [Notice(file, None, "stack-tree", message)])
    return TreeScan(printed, tuple(nodes))


def _grouped(digits: str, file: str, line: int) -> int:
    """Read an integer whose digits are printed in groups of three, by nightly releases without groups."""
    plain = digits.replace(" ", "")
    if len(digits) <= _LONGEST_NUMBER:
        number = int(plain)
        if digits in (f"{number:,}".replace(",", " "), str(number)):
            return number
    raise DumpError(
        "bad-line",
        "a number of the stack-trace tree cannot be read; is the file damaged?",
        file=file,
        line=line,
        section="tree",
        text=digits,
    )


def _without_unknown(
    pattern: re.Pattern[str], body: str, line: int, file: str, section: str, notices: Notices
) -> None:
    """Note the lines that `pattern` does not match; refuse those that stand for a record all the same."""
    for number, text in enumerate(LINES.findall(body), line):
        if pattern.fullmatch(text):
            continue
        if _KNOWN_STARTS[section].match(text) or KNOWN_START.match(text):
            raise unreadable_line(file, number, section, text)
        note(notices, [unknown_line(file, number, text)])


def _bad_line(text: str, line: int, file: str, section: str, expected: str) -> DumpError:
    first = text.split("\n", 1)[0]
    if "\n" not in text:
        return cut_in_line(file, line, section, first)
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
