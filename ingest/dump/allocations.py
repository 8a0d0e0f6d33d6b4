"""Scan the allocations section: headers and the value lines under them, of every era (FORMAT 1, 2).

One compiled expression per record kind runs over the whole text; the matches must account for every
line. Where they do not, the section is walked line by line: lines of an unknown kind become notices,
lines of a known kind that cannot be read reject the dump.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ingest.dump import features
from ingest.dump.notices import MAX_TEXT, Notices, note, unknown_line
from ingest.dump.records import Notice
from ingest.errors import DumpError

NAME: Final = r"[^\s{}<>|,]+"
INDEX: Final = r"\{[0-9,]*\}"
INT: Final = r"(?!0[0-9])[0-9]{1,40}"
"""A number as XLA prints it; one of more digits is damage, and int() refuses 4,301 of them."""
SINT: Final = r"(?!-?0[0-9]|-0)-?[0-9]{1,40}"
KEY: Final = rf"({INT}) ({NAME})({INDEX})?( \(phi\))?(?: @({SINT}))?"
"""Inside of `<id name{index} (phi) @color>`: five groups."""
LIMIT: Final = 2**63
"""Numbers must fit a signed 64-bit integer."""
LINES: Final = re.compile(r".*\n|.+\Z")
"""Lines with their newline; str.splitlines would also cut at U+2028, form feeds and the like."""

_HEADER: Final = re.compile(rf"allocation ({INT}): (?:(0x[0-9a-f]+), )?size ({INT})((?:,.*)?):\n")
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
KNOWN_START: Final = re.compile(
    r"allocation |BufferAssignment:| value:|  value:| reused by|Total bytes used|Used values:|<[0-9]"
    r"| positions:| uses:| from instruction:|HloLiveRange|  InstructionSequence:|  BufferLiveRange:"
    r"|  Live ranges at|  Peak memory could not|  Stack trace breakdown"
)
"""How lines begin that mean something; where one stands that cannot be read, the file is damaged."""

_ATTRIBUTES: Final = re.compile(
    rf"(?:, color ({SINT}))?(?:, page ({SINT}))?"
    rf"(?:, parameter ({INT})(?:, shape \|([^|]*)\|)?(?: at ShapeIndex ({INDEX}))?)?"
    r"(?:, output shape is \|([^|]*)\|)?"
    r"(, constant)?(, thread-local)?(, maybe-live-out)?(, preallocated-temp)?"
)
_ONE_ATTRIBUTE: Final = re.compile(r", ((?:[^,|]++|\|[^|]*+\|)*+)")
_NO_NEW_ATTRIBUTE: Final = re.compile(
    r"(?:color|page|parameter|output shape|constant|thread-local|maybe-live-out|preallocated-temp)\b"
)
"""How an attribute begins that is known: one that cannot be read, or is there twice, is damage."""


class Attributes(NamedTuple):
    """What a header says after the size."""

    color: int
    page: int | None
    parameter_number: int | None
    parameter_shape_index: str | None
    parameter_shape: str | None
    output_shape: str | None
    is_constant: bool
    is_thread_local: bool
    maybe_live_out: bool
    is_preallocated_temp: bool
    unknown: tuple[str, ...]


class Header(NamedTuple):
    """A header line; `values` is how many value lines follow it."""

    allocation: int
    address: str | None
    size: int
    attributes: Attributes
    values: int


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


def last_header(text: str) -> Header | None:
    """Return the last header of a piece of the section; None without one that can be read."""
    at = text.rfind("\nallocation ") + 1
    match = _HEADER.match(text, at)
    if match is None:
        return None
    index, address, size, tail = match.groups()
    try:
        return Header(int(index), address, int(size), _attributes(tail, index), 0)
    except DumpError:
        return None


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
        used = [(row[0], row[2], row[3], row[1] and " (phi)", row[4], row[5], row[6], "") for row in values]
        values = [
            (row[0], row[2], row[3], row[1] and " (phi)", row[4], row[8], row[7], row[9]) for row in values
        ]
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
    match = _HEADER.match
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
        index, address, size, tail = head.groups()
        if pattern is _VALUE:
            of_header = count("\n value: ", head.end() - 1, end)
        else:
            of_header = len(pattern.findall(body, head.end(), end))
        headers.append(Header(int(index), address, int(size), _attributes(tail, index), of_header))
        lines += 1
        start = end
    return headers, orphans, values, lines


_memo: dict[str, Attributes] = {}


def _attributes(tail: str, allocation: str) -> Attributes:
    attributes = _memo.get(tail)
    if attributes is None:
        attributes = _parse_attributes(tail, allocation)
        # The shape of an output can have megabytes; such a tail is not kept.
        if len(tail) < 1000:
            if len(_memo) > 10_000:
                _memo.clear()
            _memo[tail] = attributes
    return attributes


def _parse_attributes(tail: str, allocation: str) -> Attributes:
    unknown: list[str] = []
    match = _ATTRIBUTES.fullmatch(tail)
    if match is None:
        # Known attributes in another order or among new ones: sort them, keep the rest by its text.
        known: dict[int, str] = {}
        at = 0
        while at < len(tail):
            one = next((m for m in _known_at(tail, at) if m is not None), None)
            if one is not None and one[0] not in known:
                known[one[0]] = one[1]
                at += len(one[1])
                continue
            other = _ONE_ATTRIBUTE.match(tail, at)
            if other is None or other.end() == at:
                unknown.append(tail[at:])
                break
            unknown.append(other[1])
            at = other.end()
        if any(_NO_NEW_ATTRIBUTE.match(attribute) for attribute in unknown):
            raise DumpError(
                "bad-line",
                f"an attribute of allocation {allocation} cannot be read; is the file damaged?",
                section="allocations",
                text=f"allocation {allocation}: ",
            )
        match = _ATTRIBUTES.fullmatch("".join(known[place] for place in sorted(known)))
        assert match is not None  # each part matched alone, and sorted they follow the grammar
    color, page, number, shape, index, output, constant, local, live_out, temp = match.groups()
    if any(digits and not -LIMIT <= int(digits) < LIMIT for digits in (color, page, number)):
        raise DumpError(
            "number-too-large",
            f"a number of allocation {allocation} does not fit 64 bits; is the file damaged?",
            section="allocations",
            text=f"allocation {allocation}: ",
        )
    return Attributes(
        int(color) if color else 0,
        int(page) if page else None,
        int(number) if number else None,
        index,
        shape,
        output,
        constant is not None,
        local is not None,
        live_out is not None,
        temp is not None,
        tuple(unknown),
    )


_KNOWN: Final = tuple(
    re.compile(pattern + r"(?=,|$)")
    for pattern in (
        rf", color {SINT}",
        rf", page {SINT}",
        rf", parameter {INT}(?:, shape \|[^|]*\|)?(?: at ShapeIndex {INDEX})?",
        r", output shape is \|[^|]*\|",
        r", constant",
        r", thread-local",
        r", maybe-live-out",
        r", preallocated-temp",
    )
)


def _known_at(tail: str, at: int) -> list[tuple[int, str] | None]:
    matches = ((place, pattern.match(tail, at)) for place, pattern in enumerate(_KNOWN))
    return [(place, match[0]) if match else None for place, match in matches]


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
        match = _HEADER.match(body, at)
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
            raise DumpError(
                "truncated",
                "the file ends in the middle of a line; copy it again",
                file=file,
                line=line,
                section="allocations",
                text=text,
            )
        elif KNOWN_START.match(text) or _VALUE_START.match(text) or (pattern is _EMBEDDED and begun):
            ends_here = pattern is _EMBEDDED and body.find("\nallocation ", at) < 0
            raise DumpError(
                "truncated" if ends_here else "bad-line",
                "this line cannot be read here; is the file damaged?",
                file=file,
                line=line,
                section="allocations",
                text=text.rstrip("\n"),
            )
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
