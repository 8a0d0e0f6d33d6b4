"""Parse a dump set whole: `parse_set` for the importer, `parse_dump` for the API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import accumulate

from ingest.dump.allocations import ValueLine
from ingest.dump.driver import START, Driver
from ingest.dump.lists import Lists
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import (
    Allocation,
    ColorReuse,
    Dump,
    LiveRange,
    PeakLine,
    Position,
    Use,
    Value,
)
from ingest.dump.used_values import instruction_text
from ingest.source.local import without_links


def text_files(paths: Mapping[str, str]) -> dict[str, str]:
    """Return, of the paths of a set's members by role, those that hold the dump's own text."""
    return {role: path for role, path in paths.items() if role in START}


def parse_set(files: Mapping[str, str], max_bytes: int | None = None) -> ParsedDump:
    """Parse and check the files of one dump set.

    Args:
        files: path of each member by role: primary, and values and live_range where they exist.
        max_bytes: how much text to hold, uncompressed; by default, any.

    Raises:
        TooMuchText: there is more than `max_bytes` of it.
        DumpError: a file cannot be read, is damaged, or breaks a rule of `ingest.dump.check`; it names the
            file, and the line and byte offset where one line is at fault.
    """
    dump = ParsedDump()
    Driver(files, Lists(dump), dump, max_bytes=max_bytes).read()
    return dump


def parse_dump(
    path: str | os.PathLike[str],
    *,
    values: str | os.PathLike[str] | None = None,
    live_range: str | os.PathLike[str] | None = None,
) -> Dump:
    """Parse one dump to frozen records.

    Args:
        path: the primary file; the others with the usual names are picked up where none are given.
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
        member = os.fspath(given) if given is not None else base + name + ending
        if given is not None or (found and os.path.isfile(member)):
            files[role] = member
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
        texts = list(map(instruction_text, dump.used.texts))
    return tuple(
        Value(
            dump.ids[row],
            dump.allocation_of[row],
            value.instruction,
            value.shape_index or None,
            bool(value.phi) if dump.prints_phi else None,
            int(value.color) if value.color else None,
            dump.offsets[row],
            dump.sizes[row],
            value.shape,
            positions[row],
            uses[row],
            texts[row],
        )
        for row, value in enumerate(map(ValueLine._make, dump.values))
    )
