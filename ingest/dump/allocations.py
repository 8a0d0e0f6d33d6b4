"""Scan the allocations section: headers and the value lines under them, of every era (FORMAT 1, 2).

One compiled expression per record kind runs over the whole text; the matches must account for every
line. Where they do not, the section is walked line by line: lines of an unknown kind become notices,
lines of a known kind that cannot be read reject the dump.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ingest.dump import features
from ingest.dump.damaged import cut_in_line, unreadable_line
from ingest.dump.grammar import INDEX, INT, KEY, KNOWN_START, NAME, SINT
from ingest.dump.headers import HEADER_LINE, Header, read_header
from ingest.dump.notices import MAX_TEXT, Notices, note, unknown_line
from ingest.dump.records import Notice
from ingest.errors import DumpError

_VALUE: Final = re.compile(rf"^ value: <{KEY}> \(size=({INT}),offset=({INT})\): (.*)\n", re.M)
_LOGICAL: Final = re.compile(
    rf"^  ({NAME}?)\[([0-9,]*)\]\(#({INT})(?: @({SINT}))?\) \[({INT}),({INT})\]: (.*)\n", re.M
)
# The lines of positions and uses are distinguished from a head: a run of heads would be read over and over.
_EMBEDDED: Final = re.compile(
    rf"^  ({INT}) (PHI )?({NAME})({INDEX})?(?: @({SINT}))?, positions:\n"
    rf"((?:  {NAME}(?: {INDEX})?\n)*+) uses:\n((?:  {NAME}, operand {INT}(?: {INDEX})?\n)*+)"
    rf" \[({INT}),({INT})\]: (.*)\n",
    re.M,
)
MODERN: Final = ""
"""The style of TF 2.1 and later, see `style_of`."""
_VALUE_START: Final = re.compile(
    r"^(?:(?P<modern> value: <)"
    rf"|(?P<logical>  {NAME}?\[[0-9,]*\]\(#{INT}(?: @{SINT})?\) \[{INT},{INT}\]: )"
    r"|(?P<embedded>  [0-9]+ .*, positions:$))",
    re.M,
)
_STYLES: Final = {
    "modern": MODERN,
    "logical": features.LOGICAL_BUFFERS,
    "embedded": features.EMBEDDED_VALUES,
}
_PATTERNS: Final = {
    None: _VALUE,
    MODERN: _VALUE,
    features.LOGICAL_BUFFERS: _LOGICAL,
    features.EMBEDDED_VALUES: _EMBEDDED,
}
REUSE_HEAD: Final = " reused by buffers of a different color:\n"
_REUSE: Final = re.compile(rf"  value: <{KEY}> \(color=({SINT})\)\n")


class ValueLine(NamedTuple):
    """A value line as printed, all text; '' where a part is not printed."""

    id: str
    instruction: str
    shape_index: str
    phi: str
    color: str
    size: str
    offset: str
    shape: str


class UsedLine(NamedTuple):
    """A value's block of positions and uses, all text; '' where a part is not printed."""

    id: str
    instruction: str
    shape_index: str
    phi: str
    color: str
    positions: str
    uses: str
    text: str


class ReuseLine(NamedTuple):
    """A line under `reused by buffers of a different color:`; `header` is its place in `headers`."""

    header: int
    id: str
    instruction: str
    shape_index: str
    phi: str
    value_color: str
    color: str


class AllocationScan(NamedTuple):
    """Everything that a piece of the allocations section says.

    `orphans` value lines come before the first header: they belong to the last allocation of the piece
    before. `used` is filled by TF 1.15 only, whose allocations embed positions and uses.
    """

    headers: list[Header]
    orphans: int
    values: list[tuple[str, ...]]
    reuse: list[ReuseLine]
    used: list[tuple[str, ...]]
    features: set[str]
    notices: Notices


def style_of(text: str) -> str | None:
    """Return how a section prints values, by the first of them: a feature, MODERN, or None without values."""
    match = _VALUE_START.search(text)
    return _STYLES[match.lastgroup or ""] if match else None


def scan_allocations(text: str, line: int, file: str, style: str | None = None) -> AllocationScan:
    """Scan a piece of the allocations section.

    Args:
        text: whole records; the head `BufferAssignment:` may be the first line.
        line: line of the file at which the text starts.
        file: name for messages.
        style: `style_of` the pieces before; None where they have no values.

    Raises:
        DumpError: a line whose meaning is needed cannot be read.
    """
    begun = style is not None
    if style is None:
        style = style_of(text)
    found: set[str] = set()
    notices = Notices()
    reuse: list[ReuseLine] = []
    body = text.removeprefix("BufferAssignment:\n")
    line += body is not text
    if body.endswith("\n\n") or body == "\n":
        body = body.rstrip("\n")  # the blank line that parts this section from the total
        body = body + "\n" if body else ""
    pattern = _PATTERNS[style]
    if style:
        found.add(style)
    headers, orphans, values, lines = _scan(body, pattern)
    if lines != body.count("\n") or (body and not body.endswith("\n")):
        body = _walk(body, line, file, pattern, begun, reuse, notices, found)
        headers, orphans, values, lines = _scan(body, pattern)
        if lines != body.count("\n"):
            raise DumpError(
                "bad-line", "value lines cannot be read", file=file, line=line, section="allocations"
            )
    if any(header.address for header in headers):
        found.add(features.POINTER)
    for header in headers:
        attributes = header.attributes
        if attributes.page is not None:
            found.add(features.PAGE)
        if attributes.parameter_shape is not None:
            found.add(features.PARAMETER_SHAPE)
        for attribute in attributes.unknown:
            message = f"allocation {header.allocation} has an attribute that xbuf does not know"
            note(notices, [Notice(file, None, "unknown-attribute", message, attribute[:MAX_TEXT])])
    used: list[tuple[str, ...]] = []
    if pattern is _LOGICAL:
        values = [
            (id_, name, f"{{{index}}}", "", color, size, offset, shape)
            for name, index, id_, color, offset, size, shape in values
        ]
    elif pattern is _EMBEDDED:
        printed, values = values, []
        for id_, phi, name, index, color, positions, uses, offset, size, shape in printed:
            key = (id_, name, index, phi and " (phi)", color)
            used.append((*key, positions, uses, ""))
            values.append((*key, size, offset, shape))
    return AllocationScan(headers, orphans, values, reuse, used, found, notices)


def _scan(body: str, pattern: re.Pattern[str]) -> tuple[list[Header], int, list[tuple[str, ...]], int]:
    """Return headers, value lines before the first header, all value lines, and the lines they take."""
    values = pattern.findall(body)
    lines = len(values)
    if pattern is _EMBEDDED:
        lines = sum(3 + row[5].count("\n") + row[6].count("\n") for row in values)
    headers: list[Header] = []
    start = 0 if body.startswith("allocation ") else body.find("\nallocation ") + 1 or len(body)
    orphans = len(pattern.findall(body, 0, start)) if start else 0
    match = HEADER_LINE.match
    find = body.find
    # Modern value lines are counted by their start; the older kinds are rare and searched again.
    count = body.count
    while start < len(body):
        head = match(body, start)
        end = find("\nallocation ", start) + 1 or len(body)
        if head is None:
            # Leave the line to the walk, which names it: the line count will not add up.
            start = end
            continue
        if pattern is _VALUE:
            of_header = count("\n value: ", head.end() - 1, end)
        else:
            of_header = len(pattern.findall(body, head.end(), end))
        headers.append(read_header(head, of_header))
        lines += 1
        start = end
    return headers, orphans, values, lines


def _walk(
    body: str,
    line: int,
    file: str,
    pattern: re.Pattern[str],
    begun: bool,
    reuse: list[ReuseLine],
    notices: Notices,
    found: set[str],
) -> str:
    """Go through the section line by line; return it without reuse blocks and unknown lines.

    `begun` says that values came before. From the first value of TF 1.15 on no line may be unknown: it could
    belong to a value that cannot be read.
    """
    kept: list[str] = []
    header = -1
    in_reuse = False
    listed = 0  # reuse lines before this block
    at = 0
    while at < len(body):
        match = HEADER_LINE.match(body, at)
        if match:
            if in_reuse and len(reuse) == listed:
                break
            header += 1
            in_reuse = False
        elif not in_reuse:
            match = pattern.match(body, at)
            begun = begun or match is not None
        if match:
            kept.append(match[0])
            line += match[0].count("\n")
            at = match.end()
            continue
        end = body.find("\n", at) + 1 or len(body)
        text = body[at:end]
        reused = _REUSE.fullmatch(text) if in_reuse else None
        if reused:
            reuse.append(ReuseLine(header, *(part or "" for part in reused.groups())))
        elif text == REUSE_HEAD and not in_reuse:
            in_reuse = True
            listed = len(reuse)
            found.add(features.COLOR_REUSE)
        elif not text.endswith("\n"):
            raise cut_in_line(file, line, "allocations", text)
        elif KNOWN_START.match(text) or _VALUE_START.match(text) or (pattern is _EMBEDDED and begun):
            is_last = pattern is _EMBEDDED and body.find("\nallocation ", at) < 0
            raise unreadable_line(file, line, "allocations", text, is_last=is_last)
        else:
            note(notices, [unknown_line(file, line, text)])
        line += 1
        at = end
    if in_reuse and len(reuse) == listed:
        raise DumpError(
            "truncated" if at >= len(body) else "bad-line",
            "no value follows this line; are lines missing?",
            file=file,
            line=line - 1,
            section="allocations",
            text=REUSE_HEAD.rstrip("\n"),
        )
    return "".join(kept)
