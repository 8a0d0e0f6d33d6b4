"""Parse a dump set whole and check it: `parse_set` for the importer, `parse_dump` for the API.

`ParsedDump` keeps columns and printed text, as cheap as they come from the scanners; `Dump` is the same
as frozen records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from ingest.dump import features
from ingest.dump.allocations import AllocationScan, Header, ReuseLine, scan_allocations
from ingest.dump.check import (
    LIMIT,
    check_bounds,
    check_headers,
    check_magnitude,
    check_same_values,
    check_total,
    check_unique,
    locate,
)
from ingest.dump.liveness import Intervals, Liveness, measure
from ingest.dump.live_range import (
    UNAVAILABLE,
    PeakScan,
    TreeScan,
    scan_head,
    scan_peak,
    scan_ranges,
    scan_sequence,
    scan_tree,
)
from ingest.dump.records import (
    Allocation,
    ColorReuse,
    Dump,
    LiveRange,
    Notice,
    PeakLine,
    Position,
    Use,
    Value,
)
from ingest.dump.sections import Piece, Section, cut
from ingest.dump.source import read_text
from ingest.dump.used_values import UsedScan, embedded, instruction_text, scan_used_values
from ingest.errors import DumpError

_TOTAL: Final = re.compile(r"\n*Total bytes used: ([0-9]+)(?: \(([^)\n]*)\))?\n")
_START: Final = {"primary": Section.ALLOCATIONS, "values": Section.TOTAL, "live_range": Section.SEQUENCE}


@dataclass(slots=True)
class ParsedDump:
    """A parsed and checked dump set, column-wise; rows of `values` ascend by id.

    `values`, `allocation_of`, `ids`, `offsets`, `sizes` and `used.blocks` run in parallel. `ranges` holds
    (instruction, index, start, end) and `range_values` the row of the value of each range, -1 for none.
    """

    features: set[str] = field(default_factory=set)
    sections: set[Section] = field(default_factory=set)
    tiled: bool = False
    """A shape has a tiled layout, which only TPU prints."""
    notices: list[Notice] = field(default_factory=list)
    sha256: dict[str, str] = field(default_factory=dict)
    text_bytes: int = 0
    headers: list[Header] = field(default_factory=list)
    values: list[tuple[str, ...]] = field(default_factory=list)
    allocation_of: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    reuse: list[ReuseLine] = field(default_factory=list)
    used: UsedScan | None = None
    total: int | None = None
    schedule_length: int | None = None
    schedule: list[str] | None = None
    ranges: list[tuple[str, str, int, int]] | None = None
    range_values: list[int] = field(default_factory=list)
    liveness: Liveness | None = None
    peak: PeakScan | None = None
    tree: TreeScan | None = None


def parse_set(files: Mapping[str, str]) -> ParsedDump:
    """Parse and check the files of one dump set.

    Args:
        files: path of each member by role: primary, and values and live_range where they exist.

    Raises:
        DumpError: a file cannot be read, is damaged, or breaks a rule of `ingest.dump.check`; it tells the
            file, and the line and byte offset where one line is at fault.
    """
    try:
        return _parse(files)
    except DumpError as error:
        locate(error, list(files.values()))
        raise


def _parse(files: Mapping[str, str]) -> ParsedDump:
    dump = ParsedDump()
    scan: AllocationScan | None = None
    for role, file in files.items():
        content = read_text(file)
        dump.sha256[role] = content.sha256
        dump.text_bytes += content.text_bytes
        dump.notices += content.notices
        require_whole(content.text, role, file)
        for piece in cut([content.text], _START[role]):
            if piece.section is Section.ALLOCATIONS:
                scan = scan_allocations(piece.text, piece.line, file)
            else:
                scan_section(dump, piece, file)
    if "values" in files or "live_range" in files:
        dump.features.add(features.SPLIT_FILES)
    assert scan is not None  # every set has a primary file, and it starts with this section
    dump.features |= scan.features
    dump.notices += scan.notices
    _take_allocations(dump, scan)
    note_colors(dump, files["primary"])
    if scan.used:
        dump.used = embedded(scan.used, files["primary"])
        dump.features |= dump.used.features
    _take_used_values(dump)
    require_sections(dump, files)
    _take_ranges(dump, files.get("live_range", files["primary"]))
    check_numbers(dump)
    return dump


def require_whole(text: str, role: str, file: str) -> None:
    """Require a file to begin as its role says and to end with a line end."""
    if role == "primary" and not text.startswith("BufferAssignment:\n"):
        kind = "truncated" if "BufferAssignment:\n".startswith(text) else "not-a-dump"
        message = "the file is cut off" if text else "the file is empty"
        if kind == "not-a-dump":
            message = "the first line is not 'BufferAssignment:'; this is no buffer-assignment dump"
        raise DumpError(kind, message, file=file, line=1, section="allocations", text=text[:200])
    if not text.endswith("\n") and not (role == "live_range" and text.startswith(UNAVAILABLE)):
        raise DumpError(
            "truncated", "the file does not end with a line end: it is cut off; copy it again",
            file=file, line=text.count("\n") + 1, text=text[text.rfind("\n") + 1 :][:2000],
        )  # fmt: skip


def scan_section(dump: ParsedDump, piece: Piece, file: str) -> None:
    """Scan a whole section other than the allocations into `dump`."""
    section, text, line = piece
    dump.sections.add(section)
    match section:
        case Section.TOTAL:
            _scan_total(dump, text, line, file)
        case Section.VALUES:
            dump.used = scan_used_values(text, line, file)
            dump.features |= {features.USED_VALUES} | dump.used.features
            dump.notices += dump.used.notices
        case Section.SEQUENCE:
            if text.startswith(UNAVAILABLE):
                dump.features.add(features.LIVE_RANGE_UNAVAILABLE)
                return
            dump.features.add(features.LIVE_RANGE)
            dump.schedule_length, body = scan_head(text, line, file)
            dump.schedule = scan_sequence(body, 0, line + 2, file, dump.notices)
        case Section.RANGES:
            dump.ranges = [
                (name, index, int(start), int(end))
                for name, index, start, end in scan_ranges(text, line, file, dump.notices)
            ]
        case Section.PEAK:
            dump.peak = scan_peak(text, line, file, dump.notices)
            dump.features.add(features.PEAK_UNBOUNDED if dump.peak.time is None else features.PEAK)
            if any(row[1] for row in dump.peak.rows):
                dump.features.add(features.PEAK_INDEX)
            if any(row[3] for row in dump.peak.rows):
                dump.features.add(features.PEAK_CUMULATIVE)
        case Section.TREE:
            dump.tree = scan_tree(text, line, file, dump.notices)
            dump.features.add(features.STACK_TREE)
        case _:  # pragma: no cover - allocations are scanned apart
            raise AssertionError(section)


def _scan_total(dump: ParsedDump, text: str, line: int, file: str) -> None:
    match = _TOTAL.match(text)
    if match is None:
        if text.strip("\n"):
            raise DumpError(
                "bad-line", "expected 'Total bytes used: N'; is the file damaged?",
                file=file, line=line, section="total", text=text[:2000],
            )  # fmt: skip
        return
    dump.total = int(match[1])
    dump.features.add(features.TOTAL)
    if match[2] is not None:
        dump.features.add(features.HUMAN_TOTAL)
    for number, other in enumerate(text[match.end() :].split("\n"), line + match[0].count("\n")):
        if other:
            dump.notices.append(
                Notice(file, number, "unknown-line", "xbuf does not know this line", other)
            )


def _take_allocations(dump: ParsedDump, scan: AllocationScan) -> None:
    """Check headers and value lines and put the values in order of their ids."""
    dump.headers, dump.reuse = scan.headers, scan.reuse
    check_headers(scan.headers, 0, "")
    if scan.orphans:
        raise DumpError(
            "bad-line", "a value comes before the first allocation",
            section="allocations", text=f" value: <{scan.values[0][0]} ",
        )  # fmt: skip
    allocation_of = [header.index for header in scan.headers for _ in range(header.values)]
    columns = list(zip(*scan.values, strict=True)) or [()] * 8
    ids = list(map(int, columns[0]))
    order = sorted(range(len(ids)), key=ids.__getitem__)
    dump.values = [scan.values[row] for row in order]
    dump.ids = [ids[row] for row in order]
    dump.sizes = [int(columns[5][row]) for row in order]
    dump.offsets = [int(columns[6][row]) for row in order]
    dump.allocation_of = [allocation_of[row] for row in order]
    check_bounds(
        dump.ids, dump.offsets, dump.sizes, dump.allocation_of, [header.size for header in scan.headers]
    )
    check_unique(dump.ids)
    check_total(sum(header.size for header in scan.headers), dump.total)
    dump.tiled = any("T(" in value[7] for value in dump.values)


def _take_used_values(dump: ParsedDump) -> None:
    if dump.used is not None:
        check_same_values(dump.values, dump.used.blocks)
        if features.FROM_INSTRUCTION in dump.features:
            for block in dump.used.blocks:
                if not block[7]:
                    raise DumpError(
                        "truncated", f"value {block[0]} {block[1]} has no 'from instruction' line",
                        section="values", text=f"<{block[0]} ",
                    )  # fmt: skip


def require_sections(dump: ParsedDump, files: Mapping[str, str]) -> None:
    """Refuse a set whose files lack a section that must follow another one."""
    values_file = files.get("values", files["primary"])
    ranges_file = files.get("live_range", files["primary"])
    split = "values" in files or "live_range" in files
    has_values, has_sequence = Section.VALUES in dump.sections, Section.SEQUENCE in dump.sections
    missing: tuple[str, str, str] | None = None
    if features.TOTAL in dump.features and not has_values:
        missing = ("values", "Used values:", values_file)
    elif "values" in files and features.TOTAL not in dump.features:
        missing = ("total", "Total bytes used:", values_file)
    elif not has_sequence and (
        "live_range" in files or (features.FROM_INSTRUCTION in dump.features and not split)
    ):
        missing = ("sequence", "HloLiveRange", ranges_file)
    elif features.LIVE_RANGE in dump.features and Section.RANGES not in dump.sections:
        missing = ("ranges", "BufferLiveRange:", ranges_file)
    elif features.LIVE_RANGE in dump.features and Section.PEAK not in dump.sections:
        missing = ("peak", "Live ranges at N (peak):", ranges_file)
    if missing:
        section, head, file = missing
        raise DumpError(
            "truncated", f"'{head}' is missing: the file is cut off; copy it again", file=file, section=section
        )


def _take_ranges(dump: ParsedDump, file: str) -> None:
    """Join ranges with values, check them and measure the live bytes."""
    if dump.schedule is None or dump.ranges is None:
        return
    if dump.schedule_length != len(dump.schedule):
        raise DumpError(
            "sequence-length",
            f"'max {dump.schedule_length}' but the instruction sequence has {len(dump.schedule)} slots;"
            " are lines missing?",
            file=file, section="sequence", text="HloLiveRange (max ",
        )  # fmt: skip
    rows = {(value[1], value[2] or "{}"): row for row, value in enumerate(dump.values)}
    find = rows.get
    dump.range_values = [find((name, index), -1) for name, index, _, _ in dump.ranges]
    for name, index, start, end in dump.ranges:
        check_range(name, index, start, end, dump.schedule_length, file)
    if -1 in dump.range_values:
        for (name, index, _, _), row in zip(dump.ranges, dump.range_values, strict=True):
            if row < 0:
                dump.notices.append(note_missing_value(name + index, file))
    ranged = [row for row in dump.range_values if row >= 0]
    dump.liveness = measure(
        Intervals(
            [dump.allocation_of[row] for row in ranged],
            [dump.offsets[row] for row in ranged],
            [dump.sizes[row] for row in ranged],
            [one[2] for one, row in zip(dump.ranges, dump.range_values, strict=True) if row >= 0],
            [one[3] for one, row in zip(dump.ranges, dump.range_values, strict=True) if row >= 0],
        ),
        dump.schedule_length,
    )
    dump.notices += note_overlaps(dump.liveness, [dump.ids[row] for row in ranged], file)
    if dump.peak is not None and dump.peak.time is not None:
        time = dump.peak.time
        live = sum(1 for _, _, start, end in dump.ranges if start <= time <= end)
        check_peak_list(dump, live, file)


def note_missing_value(key: str, file: str) -> Notice:
    """Note a live range of a value that has no allocation."""
    return Notice(file, None, "range-without-value", f"{key} has a live range but no allocation", key)


def check_range(name: str, index: str, start: int, end: int, length: int, file: str) -> None:
    """Require 0 <= start <= end <= length of the schedule."""
    if not start <= end <= length:
        raise DumpError(
            "out-of-bounds", f"the live range {start}-{end} of {name}{index} is not within the slots 0-{length}",
            file=file, section="ranges", text=f"    {name}{index}:{start}-{end}",
        )  # fmt: skip


def note_overlaps(liveness: Liveness, ids: Sequence[int], file: str) -> list[Notice]:
    """Note values that share bytes while both are live; `ids` of the measured intervals."""
    return [
        Notice(
            file, None, "overlap", f"values {ids[one]} and {ids[other]} share bytes while both are live"
        )  # fmt: skip
        for one, other in liveness.overlaps
    ]


def note_colors(dump: ParsedDump, file: str) -> None:
    """Note, once an allocation, values of another color than their allocation's."""
    told = {(line.header, line.id) for line in dump.reuse}
    seen: set[int] = set()
    for value, allocation in zip(dump.values, dump.allocation_of, strict=True):
        color = dump.headers[allocation].attributes.color
        if value[4] and int(value[4]) != color and allocation not in seen:
            if (allocation, value[0]) in told:
                continue
            seen.add(allocation)
            message = f"value {value[0]} has color {value[4]} in allocation {allocation} of color {color}"
            dump.notices.append(Notice(file, None, "color-differs", message))


def check_peak_list(dump: ParsedDump, live: int, file: str) -> None:
    """Refuse a peak list that ends before the `live` values of its slot do, with nothing after it."""
    assert dump.peak is not None
    rows, time = len(dump.peak.rows), dump.peak.time
    if rows == live:
        return
    if rows < live and dump.tree is None:
        raise DumpError(
            "truncated",
            f"the peak list has {rows} of {live} values: the file is cut off; copy it again",
            file=file, section="peak", text=f"  Live ranges at {time} (peak):",
        )  # fmt: skip
    message = f"the peak list has {rows} values, {live} are live at slot {time}"
    dump.notices.append(Notice(file, None, "peak-list", message))


def check_numbers(dump: ParsedDump) -> None:
    """Require every number that is stored to fit 64 bits; ids, sizes and slots are checked elsewhere."""
    for header in dump.headers:
        check_magnitude("attribute", "allocations", header.attributes[:3])
    check_magnitude("color", "allocations", (int(value[4]) for value in dump.values if len(value[4]) > 18))
    check_magnitude("color", "allocations", (int(line.color) for line in dump.reuse if len(line.color) > 18))
    check_magnitude("total", "total", (dump.total, sum(header.size for header in dump.headers)))
    if dump.used is not None:
        check_magnitude("operand", "values", (int(use[1]) for use in dump.used.uses if len(use[1]) > 18))
    if dump.liveness is not None:
        check_magnitude("slot", "ranges", (dump.schedule_length,))
        check_magnitude("peak bytes", "ranges", (dump.liveness.peak_bytes,))
    if dump.peak is not None:
        check_magnitude("slot", "peak", (dump.peak.time,))
        check_magnitude("peak bytes", "peak", (sum(int(row[2]) for row in dump.peak.rows),))
    if dump.tree is not None:
        for node in dump.tree.nodes:
            check_magnitude("bytes", "tree", (node.total, node.current, node.remaining))


def parse_dump(
    path: str | os.PathLike[str],
    *,
    values: str | os.PathLike[str] | None = None,
    live_range: str | os.PathLike[str] | None = None,
) -> Dump:
    """Parse one dump to frozen records.

    Args:
        path: the primary file; siblings with the usual names are picked up where none are given.
        values: `-buffer-assignment-values.txt` of the same dump.
        live_range: `-live-range.txt` of the same dump.

    Raises:
        DumpError: the dump is damaged; see `ingest.errors.DumpError`.
    """
    files = {"primary": os.fspath(path)}
    base, found, ending = files["primary"].rpartition("-buffer-assignment.txt")
    for role, given, name in (
        ("values", values, "-buffer-assignment-values.txt"),
        ("live_range", live_range, "-live-range.txt"),
    ):
        sibling = os.fspath(given) if given is not None else base + name + ending
        if given is not None or (found and os.path.isfile(sibling)):
            files[role] = sibling
    return to_records(parse_set(files))


def to_records(dump: ParsedDump) -> Dump:
    """Turn columns into frozen records."""
    return Dump(
        features=frozenset(dump.features),
        allocations=tuple(
            Allocation(header.index, header.size, *header.attributes[:10], header.address, header.attributes[10])
            for header in dump.headers
        ),
        values=_value_records(dump),
        color_reuse=tuple(
            ColorReuse(
                line.header, int(line.id), line.instruction, line.shape_index or None, bool(line.phi),
                int(line.value_color) if line.value_color else None, int(line.color),
            )  # fmt: skip
            for line in dump.reuse
        ),
        total_bytes=dump.total,
        schedule_length=dump.schedule_length,
        schedule=None if dump.schedule is None else tuple(dump.schedule),
        ranges=None if dump.ranges is None else tuple(LiveRange(*row) for row in dump.ranges),
        peak_time=dump.peak.time if dump.peak else None,
        peak_lines=None
        if dump.peak is None or dump.peak.time is None
        else tuple(
            PeakLine(name, index or None, int(size), int(cumulative) if cumulative else None)
            for name, index, size, cumulative in dump.peak.rows
        ),
        stack_total=dump.tree.total if dump.tree else None,
        stack_nodes=dump.tree.nodes if dump.tree else None,
        notices=tuple(dump.notices),
        content_sha256=dump.sha256["primary"],
        text_bytes=dump.text_bytes,
    )


def _value_records(dump: ParsedDump) -> tuple[Value, ...]:
    positions: list[tuple[Position, ...] | None] = [None] * len(dump.values)
    uses: list[tuple[Use, ...] | None] = [None] * len(dump.values)
    texts: list[str | None] = [None] * len(dump.values)
    if dump.used is not None:
        place = [Position(name, index or None) for name, index in dump.used.positions]
        use = [Use(name, int(operand), index or None) for name, operand, index in dump.used.uses]
        ends = accumulate(dump.used.position_counts)
        positions = [tuple(place[end - n : end]) for end, n in zip(ends, dump.used.position_counts, strict=True)]
        ends = accumulate(dump.used.use_counts)
        uses = [tuple(use[end - n : end]) for end, n in zip(ends, dump.used.use_counts, strict=True)]
        texts = [instruction_text(block[7]) for block in dump.used.blocks]
    return tuple(
        Value(
            dump.ids[row], dump.allocation_of[row], value[1], value[2] or None, bool(value[3]),
            int(value[4]) if value[4] else None, dump.offsets[row], dump.sizes[row], value[7],
            positions[row], uses[row], texts[row],
        )  # fmt: skip
        for row, value in enumerate(dump.values)
    )


__all__ = ["LIMIT", "ParsedDump", "parse_dump", "parse_set", "to_records"]
