"""Judge what becomes of a damaged dump: rejected with a reason, or loaded with everything accounted for.

The oracle knows nothing of the parser but its errors, its records and its notices. A set that loads must
print back (`tests.support.render`) to its bytes, less what a notice names, and keep the rules of a dump,
which are worked out here once more from the records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ingest.display import display
from ingest.dump.parse import parse_set, to_records
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Dump, Notice
from ingest.errors import DumpError
from tests.fuzz.outcome import Violation, require
from tests.support.render import render

KINDS: Final = frozenset(
    {
        "allocation-index",
        "bad-line",
        "duplicate-value",
        "line-too-long",
        "not-a-dump",
        "number-too-large",
        "out-of-bounds",
        "sequence-length",
        "total-mismatch",
        "truncated",
        "unreadable",
        "value-mismatch",
    }
)
SECTIONS: Final = frozenset({None, "allocations", "total", "values", "sequence", "ranges", "peak", "tree"})
_BOM: Final = b"\xef\xbb\xbf"
_LIMIT: Final = 2**63


_GROUPED: Final = re.compile(r"(?<=: )-?[0-9][0-9 ]*(?= bytes)")


def judge(files: Mapping[str, Path], texts: Mapping[str, bytes]) -> ParsedDump | DumpError:
    """Parse a set that lies in `files` with the bytes `texts`; return what it came to.

    Raises:
        Violation: it was neither rejected in order nor loaded with everything accounted for.
    """
    paths = {role: str(path) for role, path in files.items()}
    try:
        parsed = parse_set(paths)
        dump = to_records(parsed)
    except DumpError as error:
        _judge_reject(error, files, texts)
        return error
    _judge_bytes(dump, files, texts)
    _judge_rules(dump)
    return parsed


def _judge_reject(error: DumpError, files: Mapping[str, Path], texts: Mapping[str, bytes]) -> None:
    roles = {str(path): role for role, path in files.items()}
    require(error.kind in KINDS, f"kind {error.kind}")
    require(error.section in SECTIONS, f"section {error.section}")
    require(error.file in roles, f"file {error.file!r}")
    require(bool(error.message), "no message")
    require(len(error.message) < 1000, "an endless message")
    require(len(error.text or "") <= 2000, "an endless text")
    display(error.message).encode()
    display(error.text or "").encode()
    if error.line is not None and not texts[roles[error.file]].startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        content = texts[roles[error.file]]
        starts = [0, *(match.end() for match in re.finditer(b"\n", content))]
        require(1 <= error.line <= len(starts), f"line {error.line} of {len(starts)}")
        require(error.byte_offset == starts[error.line - 1], f"{error.byte_offset} is not line {error.line}")
    else:
        require(error.line is None or error.byte_offset is not None, "a line without its offset")


def _judge_bytes(dump: Dump, files: Mapping[str, Path], texts: Mapping[str, bytes]) -> None:
    """Compare what is printed back with what was read, less what notices name."""
    printed = render(dump)
    noted: dict[str, list[Notice]] = {str(path): [] for path in files.values()}
    for notice in dump.notices:
        require(notice.file in noted, f"a notice on the file {notice.file!r}")
        noted[notice.file].append(notice)
    if any(notice.kind == "too-many-notices" for notice in dump.notices):
        return
    for role, path in files.items():
        notices = noted[str(path)]
        kinds = {notice.kind for notice in notices}
        lines = _mended(texts[role], kinds).split("\n")
        unknown = [notice for notice in notices if notice.kind == "unknown-line"]
        for notice in unknown:
            if notice.line is not None:
                line = lines[notice.line - 1][:2000]
                require(line == notice.text, f"line {notice.line} is not {notice.text!r}")
        gone = Counter(notice.text or "" for notice in unknown if notice.line is None)
        numbers = {notice.line for notice in unknown}
        kept = []
        for number, line in enumerate(lines, 1):
            if number in numbers:
                continue
            if gone[line[:2000]] > 0:
                gone[line[:2000]] -= 1
                continue
            kept.append(line)
        require(not +gone, f"notices on lines that are not there: {+gone}")
        told = "\n".join(kept)
        said = printed.get(role, b"").decode()
        told = re.sub(r"^(allocation .*), color 0(?=[,:])", r"\1", told, flags=re.M)
        if "unknown-attribute" in kinds:
            told, said = _attributes_sorted(told), _attributes_sorted(said)
        if told != said:
            told, said = _values_sorted(told), _values_sorted(said)
        if kinds & {"mixed-format", "stack-tree", "total-text", "blank-lines", "live-range-unavailable"}:
            told, said = _without_format(told), _without_format(said)
        if "unknown-line" in kinds:
            told, said = (text.replace("  (none)\n", "") for text in (told, said))
        if told != said:
            raise Violation(f"{role}: {_first_difference(told, said)}; notices {sorted(kinds)}")


def _mended(content: bytes, kinds: set[str]) -> str:
    """Undo by hand what notices say was mended."""
    if "byte-order-mark" in kinds:
        require(content.startswith(_BOM), "a byte order mark that is not there")
        content = content.removeprefix(_BOM)
    if "line-ends" in kinds:
        require(b"\r\n" in content, "CR LF that is not there")
        content = content.replace(b"\r\n", b"\n")
    if "encoding" in kinds:
        return content.decode(errors="backslashreplace")
    return content.decode()


def _attributes_sorted(text: str) -> str:
    """Return the text with the characters of its headers in a fixed order."""
    end = text.find("\nTotal bytes used") + 1 or len(text)
    allocations = re.sub(
        r"^(allocation [0-9]+: )(.*):$",
        lambda header: header[1] + "".join(sorted(header[2].replace(", ", ""))),
        text[:end],
        flags=re.M,
    )
    return allocations + text[end:]


def _values_sorted(text: str) -> str:
    """Return the text with the values of each allocation in a fixed order and numbers without groups."""
    text = _GROUPED.sub(lambda digits: digits[0].replace(" ", ""), text)
    total = re.search(r"^Total bytes used", text, re.M)
    end = total.start() if total else len(text)
    allocations, rest = text[:end], text[end:]
    heads = r"^(?=allocation | value: <|  \S+\[[0-9,]*\]\(#|  [0-9]+ .*, positions:$| reused by)"
    groups: list[list[str]] = [[]]
    for entry in re.split(heads, allocations.rstrip("\n") + "\n", flags=re.M):
        if entry.startswith(("allocation ", " reused by")):
            groups.append([entry])
        else:
            groups[-1].append(entry)
    blank = "\n" * (len(allocations) - len(allocations.rstrip("\n")))
    return "".join(entry for group in groups for entry in (*group[:1], *sorted(group[1:]))) + blank + rest


def _without_format(text: str) -> str:
    """Return the text without what tells nothing but the release that printed it."""
    text = re.sub(r"^ from instruction: ?", " from instruction:", text, flags=re.M)
    text = re.sub(r"^( {4,})[│ ├└─]*", "", text, flags=re.M)
    # The first is the total; others stand in an instruction's text, to whose end a head may be glued.
    text = re.sub(r"^(Total bytes used: [0-9]+) \(.*\)$", r"\1", text, count=1, flags=re.M)
    text = re.sub(r"HloLiveRange not available.*\n?", "HloLiveRange not available", text)
    return text.replace("\n", "").replace("  (none)", "")


def _first_difference(one: str, other: str) -> str:
    pairs = zip(one, other, strict=False)
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    shown = slice(max(0, at - 60), at + 60)
    return f"the file has {one[shown]!r}, printed {other[shown]!r}"


def _judge_rules(dump: Dump) -> None:
    """Work out the rules of a dump from its records."""
    sizes = [allocation.size for allocation in dump.allocations]
    require([one.index for one in dump.allocations] == list(range(len(sizes))), "allocation numbers")
    require(dump.total_bytes in (None, sum(sizes)), "the total")
    require(sum(sizes) < _LIMIT, "the sum of the allocations")
    ids = [value.id for value in dump.values]
    require(len(set(ids)) == len(ids) and ids == sorted(ids), "value ids")
    for value in dump.values:
        require(0 <= value.offset <= value.offset + value.size <= sizes[value.allocation_index], "bounds")
        require(value.id < _LIMIT, "an id beyond 64 bits")
        require(-_LIMIT <= (value.color or 0) < _LIMIT, "a color beyond 64 bits")
        if value.positions is not None:
            first = value.positions[0]
            require((first.instruction, first.shape_index) == (value.instruction, value.shape_index), "place")
    if dump.schedule is not None:
        require(dump.schedule_length == len(dump.schedule), "the length of the schedule")
        require(dump.ranges is not None, "a schedule without ranges")
    keys = [(one.instruction, one.shape_index) for one in dump.ranges or ()]
    require(len(set(keys)) == len(keys), "a range that is listed twice")
    for one in dump.ranges or ():
        require(0 <= one.start <= one.end <= (dump.schedule_length or 0), "a range beyond the schedule")
    told = Counter(notice.kind for notice in dump.notices)
    known = {(value.instruction, value.shape_index or "{}") for value in dump.values}
    unknown = sum(1 for key in keys if key not in known)
    if told["too-many-notices"]:
        return
    require(unknown <= told["range-without-value"], "a range without a value")
    if dump.peak_lines is not None and not told["peak-list"]:
        time = dump.peak_time
        assert time is not None
        live = [
            (one.instruction, one.shape_index) for one in dump.ranges or () if one.start <= time <= one.end
        ]
        listed = [(line.instruction, line.shape_index or "") for line in dump.peak_lines]
        if not all(index for _, index in listed):
            listed = [(name, "") for name, _ in listed]
            live = [(name, "") for name, _ in live]
        require(Counter(listed) == Counter(live), "a peak list that is not what is live")
        running = 0
        for line in dump.peak_lines:
            running += line.bytes
            require(line.cumulative in (None, running), "a cumulative size")
        if dump.stack_total is not None and not told["stack-tree"]:
            require(dump.stack_total == running, "the total of the tree")
    if dump.stack_nodes is not None and dump.stack_total is not None and not told["stack-tree"]:
        below: Counter[int | None] = Counter()
        remaining = dump.stack_total
        for node in dump.stack_nodes:
            below[node.parent] += node.total
            remaining -= node.current
            require(node.remaining == remaining, "what remains of the tree")
        for place, node in enumerate(dump.stack_nodes):
            require(node.total == node.current + below[place], "the sum of a node")
