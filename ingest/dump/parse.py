"""Parse a dump set whole and check it: `parse_set` for the importer, `parse_dump` for the API."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final

from ingest.dump import features
from ingest.dump.allocations import INT, KNOWN_START, LINES, AllocationScan, scan_allocations
from ingest.dump.check import (
    SECTIONS_OF,
    check_bounds,
    check_end,
    check_headers,
    check_last_allocation,
    check_numbers,
    check_peak_list,
    check_range,
    check_reuse,
    check_same_values,
    check_sections,
    check_sequence_length,
    check_size_sum,
    check_start,
    check_texts,
    check_told_once,
    check_total,
    check_unique,
    check_unique_ranges,
    ends_whole,
    misplaced,
    without_blank_end,
)
from ingest.dump.live_range import (
    RANGES_HEAD,
    UNAVAILABLE,
    WHY_UNAVAILABLE,
    scan_head,
    scan_peak,
    scan_ranges,
    scan_sequence,
    scan_tree,
)
from ingest.dump.liveness import Intervals, measure
from ingest.dump.locate import locate
from ingest.dump.notices import MAX_TEXT, note, unknown_line
from ingest.dump.oddities import (
    human_size,
    note_blank_lines,
    note_colors,
    note_missing_value,
    note_mixed,
    note_overlaps,
)
from ingest.dump.opening import without_links
from ingest.dump.parsed import ParsedDump
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
from ingest.dump.resident import main_memory, resident_peak
from ingest.dump.sections import Piece, Section, cut
from ingest.dump.source import read_text
from ingest.dump.used_values import embedded, instruction_text, scan_used_values
from ingest.errors import DumpError

_TOTAL: Final = re.compile(rf"Total bytes used: ({INT})(?: \(([^)\n]*)\))?\n")
START: Final = {"primary": Section.ALLOCATIONS, "values": Section.TOTAL, "live_range": Section.SEQUENCE}
"""Section in which the text of a member begins, by role."""


def parse_set(files: Mapping[str, str], max_bytes: int | None = None) -> ParsedDump:
    """Parse and check the files of one dump set.

    Args:
        files: path of each member by role: primary, and values and live_range where they exist.
        max_bytes: how much text to hold, uncompressed; by default, any.

    Raises:
        TooMuchText: there is more than `max_bytes` of it.
        DumpError: a file cannot be read, is damaged, or breaks a rule of `ingest.dump.check`; it tells the
            file, and the line and byte offset where one line is at fault.
    """
    try:
        return _parse(files, max_bytes)
    except DumpError as error:
        locate(error, list(files.values()))
        raise


def _parse(files: Mapping[str, str], max_bytes: int | None) -> ParsedDump:
    dump = ParsedDump()
    scan: AllocationScan | None = None
    borders: list[Notice] = []
    is_split = len(files) > 1
    for role, file in files.items():
        content = read_text(file, None if max_bytes is None else max_bytes - dump.text_bytes)
        dump.sha256[role] = content.sha256
        dump.text_bytes += content.text_bytes
        note(dump.notices, content.notices)
        check_start(content.text, role, file)
        pieces = list(cut([content.text], START[role]))
        last = pieces[-1] if pieces else Piece(START[role], content.text, 1)
        if not (role == "live_range" and content.text.startswith(UNAVAILABLE)):
            is_whole = ends_whole(last.text, role, files)
            line = content.text.count("\n") + 1
            borders += check_end(last.text, file, line, last.section, is_whole)
            pieces[-1:] = [last._replace(text=without_blank_end(last.text))]
        for piece in pieces:
            if piece.section in dump.sections or (is_split and piece.section not in SECTIONS_OF[role]):
                raise misplaced(piece.section, file, piece.line)
            if piece.section is Section.ALLOCATIONS:
                scan = scan_allocations(piece.text, piece.line, file)
            else:
                scan_section(dump, piece, file)
        for piece, following in pairwise(pieces[:4]):
            if following.section <= Section.SEQUENCE:
                borders += note_blank_lines(piece.text, following, file, dump.features)
    if "values" in files or "live_range" in files:
        dump.features.add(features.SPLIT_FILES)
    assert scan is not None  # every set has a primary file, and it starts with this section
    dump.features |= scan.features
    note(dump.notices, borders)
    note(dump.notices, scan.notices)
    check_told_once(dump, files)
    if dump.total is None:
        size, values = (scan.headers[-1].size, scan.headers[-1].values) if scan.headers else (None, 0)
        check_last_allocation(len(scan.headers) - 1, size, values > 0)
    _take_allocations(dump, scan)
    colors = [header.attributes.color for header in dump.headers]
    note(dump.notices, note_colors(dump.values, dump.allocation_of, colors, dump.reuse, files["primary"]))
    if scan.used:
        dump.used = embedded(scan.used, files["primary"])
        dump.features |= dump.used.features
    note(dump.notices, note_mixed(dump.features, files.get("values", files["primary"])))
    _take_used_values(dump)
    check_sections(dump, files)
    take_ranges(dump, files.get("live_range", files["primary"]))
    check_numbers(dump)
    return dump


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
            note(dump.notices, dump.used.notices)
        case Section.SEQUENCE:
            if text.startswith(UNAVAILABLE):
                scan_unavailable(dump, piece, file)
                return
            dump.features.add(features.LIVE_RANGE)
            dump.schedule_length, body = scan_head(text, line, file)
            dump.schedule = scan_sequence(body, 0, line + 2, file, dump.notices)
        case Section.RANGES:
            dump.ranges = [
                (name, index, int(start), int(end))
                for name, index, start, end in scan_ranges(
                    text.removeprefix(RANGES_HEAD), line + 1, file, dump.notices
                )
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


def scan_unavailable(dump: ParsedDump, piece: Piece, file: str) -> None:
    """Take the line that stands where a dump has no live ranges; note what else stands there."""
    _, text, line = piece
    dump.features.add(features.LIVE_RANGE_UNAVAILABLE)
    first, *others = LINES.findall(text)
    if first != WHY_UNAVAILABLE:
        message = "XLA tells in other words than usual why there are no live ranges"
        note(dump.notices, [Notice(file, line, "live-range-unavailable", message, first[:MAX_TEXT])])
    note_lines(dump, others, line + 1, file)


def note_lines(dump: ParsedDump, lines: Sequence[str], first: int, file: str) -> None:
    """Note lines whose meaning is not known; `first` is the number of the first one."""
    note(dump.notices, (unknown_line(file, number, line) for number, line in enumerate(lines, first)))


def _scan_total(dump: ParsedDump, text: str, line: int, file: str) -> None:
    body = text.lstrip("\n")
    blank = len(text) - len(body)
    if blank != (line == 1):
        # A values file starts with a blank line; elsewhere it belongs to the section before.
        message = f"{blank} blank lines before the total; XLA prints one"
        note(dump.notices, [Notice(file, line, "blank-lines", message)])
    match = _TOTAL.match(body)
    if match is None:
        if body:
            raise _bad_total(body, line + blank, file)
        return
    dump.total = int(match[1])
    dump.features.add(features.TOTAL)
    if match[2] is not None:
        dump.features.add(features.HUMAN_TOTAL)
        if match[2] != human_size(dump.total):
            message = f"'Total bytes used' is {human_size(dump.total)} for people, not {match[2]}"
            note(dump.notices, [Notice(file, line + blank, "total-text", message[:MAX_TEXT])])
    for number, other in enumerate(LINES.findall(body.rstrip("\n"), match.end()), line + blank + 1):
        if KNOWN_START.match(other):
            raise _bad_total(other, number, file)
        note(dump.notices, [unknown_line(file, number, other)])


def _bad_total(text: str, line: int, file: str) -> DumpError:
    return DumpError(
        "bad-line",
        "expected 'Total bytes used: N', once; is the file damaged?",
        file=file,
        line=line,
        section="total",
        text=text[: text.find("\n")] if "\n" in text else text,
    )


def _take_allocations(dump: ParsedDump, scan: AllocationScan) -> None:
    """Check headers and value lines and put the values in order of their ids."""
    dump.headers, dump.reuse = scan.headers, scan.reuse
    check_headers(scan.headers, 0, "")
    if scan.orphans:
        raise DumpError(
            "bad-line",
            "a value comes before the first allocation",
            section="allocations",
            text=f" value: <{scan.values[0][0]} ",
        )
    allocation_of = [header.allocation for header in scan.headers for _ in range(header.values)]
    columns = list(zip(*scan.values, strict=True)) or [()] * 8
    ids, sizes, offsets = (list(map(int, columns[place])) for place in (0, 5, 6))
    check_bounds(ids, offsets, sizes, allocation_of, [header.size for header in scan.headers])
    order = sorted(range(len(ids)), key=ids.__getitem__)
    dump.values = [scan.values[row] for row in order]
    dump.ids = [ids[row] for row in order]
    dump.sizes = [sizes[row] for row in order]
    dump.offsets = [offsets[row] for row in order]
    dump.allocation_of = [allocation_of[row] for row in order]
    check_unique(dump.ids)
    if dump.reuse:
        places = {
            id_: (value[1], value[2], allocation)
            for id_, value, allocation in zip(dump.ids, dump.values, dump.allocation_of, strict=True)
        }
        check_reuse(dump.reuse, places)
    check_size_sum(sum(dump.sizes))
    check_total(sum(header.size for header in scan.headers), dump.total)
    dump.tiled = any("T(" in value[7] for value in dump.values)


def _take_used_values(dump: ParsedDump) -> None:
    if dump.used is not None:
        check_same_values(dump.values, dump.used.blocks)
        if features.EMBEDDED_VALUES not in dump.features:
            check_texts(dump.used.blocks, dump.features)


def take_ranges(dump: ParsedDump, file: str) -> None:
    """Join ranges with values, check them and measure the live bytes."""
    dump.memory = main_memory(dump.headers)
    dump.resident_peak = resident_peak(dump.memory)
    if dump.schedule is None or dump.ranges is None:
        return
    assert dump.schedule_length is not None  # it comes with the schedule
    check_sequence_length(dump.schedule_length, len(dump.schedule), file)
    # Of several values in one place, which no dump has, the first one counts.
    rows = {(value[1], value[2] or "{}"): row for row, value in reversed([*enumerate(dump.values)])}
    find = rows.get
    dump.range_values = [find((name, index), -1) for name, index, _, _ in dump.ranges]
    for name, index, start, end in dump.ranges:
        check_range(name, index, start, end, dump.schedule_length, file)
    ranged = [row for row in dump.range_values if row >= 0]
    if len(set(ranged)) < len(ranged) or len(ranged) < len(dump.ranges):
        check_unique_ranges((name, index) for name, index, _, _ in dump.ranges)
        for (name, index, _, _), row in zip(dump.ranges, dump.range_values, strict=True):
            if row < 0:
                note(dump.notices, [note_missing_value(name + index, file)])
    dump.intervals = Intervals(
        [dump.allocation_of[row] for row in ranged],
        [dump.offsets[row] for row in ranged],
        [dump.sizes[row] for row in ranged],
        [one[2] for one, row in zip(dump.ranges, dump.range_values, strict=True) if row >= 0],
        [one[3] for one, row in zip(dump.ranges, dump.range_values, strict=True) if row >= 0],
    )
    dump.liveness = measure(dump.intervals, dump.schedule_length)
    is_tuple = [dump.values[row][7].startswith("(") for row in ranged]
    dump.resident_peak = resident_peak(
        dump.memory, dump.intervals, is_tuple, dump.liveness, dump.schedule_length
    )
    note(dump.notices, note_overlaps(dump.liveness, [dump.ids[row] for row in ranged], file))
    if dump.peak is not None and dump.peak.time is not None:
        time = dump.peak.time
        live = [(name, index) for name, index, start, end in dump.ranges if start <= time <= end]
        check_peak_list(dump, live, file)


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
    return to_records(parse_set({role: without_links(file) for role, file in files.items()}))


def to_records(dump: ParsedDump) -> Dump:
    """Turn columns into frozen records."""
    return Dump(
        features=frozenset(dump.features),
        allocations=tuple(
            Allocation(
                header.allocation, header.size, *header.attributes[:10], header.address, header.attributes[10]
            )
            for header in dump.headers
        ),
        values=_value_records(dump),
        color_reuse=tuple(
            ColorReuse(
                line.header,
                int(line.id),
                line.instruction,
                line.shape_index or None,
                bool(line.phi),
                int(line.value_color) if line.value_color else None,
                int(line.color),
            )
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
        positions = [
            tuple(place[end - n : end]) for end, n in zip(ends, dump.used.position_counts, strict=True)
        ]
        ends = accumulate(dump.used.use_counts)
        uses = [tuple(use[end - n : end]) for end, n in zip(ends, dump.used.use_counts, strict=True)]
        texts = [instruction_text(block[7]) for block in dump.used.blocks]
    return tuple(
        Value(
            dump.ids[row],
            dump.allocation_of[row],
            value[1],
            value[2] or None,
            bool(value[3]),
            int(value[4]) if value[4] else None,
            dump.offsets[row],
            dump.sizes[row],
            value[7],
            positions[row],
            uses[row],
            texts[row],
        )
        for row, value in enumerate(dump.values)
    )


__all__ = ["START", "ParsedDump", "parse_dump", "parse_set", "scan_section", "to_records"]
