"""Scan and stage the pieces of a large dump: what the workers of `ingest.store.large` do.

A piece that cannot be read raises. A rule that it breaks is a `Fault` instead: whether that is what the dump
is rejected for depends on the pieces that are not scanned yet (`Rule`).
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa

from ingest.dump import features
from ingest.dump.allocations import LIMIT, ReuseLine, scan_allocations
from ingest.dump.check import (
    check_bounds,
    check_colors,
    check_headers,
    check_operands,
    check_range,
    check_same_values,
    check_unique,
)
from ingest.dump.live_range import scan_ranges, scan_sequence
from ingest.dump.oddities import note_colors
from ingest.dump.records import Notice
from ingest.dump.source import FileRange, read_range
from ingest.dump.used_values import UsedScan, embedded, scan_used_values
from ingest.errors import DumpError
from ingest.store.arrow_rows import batch_tables, write_tables
from ingest.store.batch import Batch
from ingest.store.columns import as_list
from ingest.store.memory import release_freed
from ingest.store.siblings import Source

Where = tuple[int, str, str]
"""Run number, part directory, suffix of the piece's files."""
Text = str | FileRange
"""Text of a piece, or where a worker finds it."""


class Rule(IntEnum):
    """Rules in the order in which `ingest.dump.parse` looks at them: of several faults the first counts."""

    LAST_ALLOCATION = 0
    HEADERS = 1
    FIRST_VALUE = 2
    BOUNDS = 3
    UNIQUE = 4
    REUSE = 5
    TOTAL = 6
    FIRST_POSITION = 7
    SAME_VALUES = 8
    TEXTS = 9
    SECTIONS = 10
    RANGES = 11
    NUMBERS = 12


class Fault(NamedTuple):
    """A rule that does not hold, and what to say of it."""

    rule: Rule
    error: DumpError


class ValueLines(NamedTuple):
    """Value lines, column-wise; `rows` are as `ValueLine`."""

    rows: Sequence[tuple[str, ...]]
    ids: Sequence[int]
    allocation_of: Sequence[int]
    offsets: Sequence[int]
    sizes: Sequence[int]


class AllocationPiece(NamedTuple):
    """What the coordinator keeps of a piece of the allocations section."""

    headers: int
    last_size: int
    last_has_values: bool
    ends_in_reuse: bool
    first: int
    sizes: array[int]
    """Empty if there is a fault."""
    last_color: int
    orphans: int
    """Value lines before the first header: they belong to the last allocation of the piece before."""
    reuse: list[ReuseLine]
    values: pa.Table | None
    """None if there is a fault."""
    value_bytes: int
    value_count: int
    used: UsedScan | None
    """Of TF 1.15, whose allocations tell positions and uses."""
    features: set[str]
    notices: list[Notice]
    rows: int
    faults: list[Fault]

    @property
    def style(self) -> frozenset[str]:
        """What tells how the release prints values."""
        return frozenset(self.features & {features.LOGICAL_BUFFERS, features.EMBEDDED_VALUES})


class UsedPiece(NamedTuple):
    """What the coordinator keeps of a piece of `Used values:`."""

    features: set[str]
    notices: list[Notice]
    rows: int
    without_text: list[tuple[str, ...]]
    """The first block without instruction text, if there is one."""
    faults: list[Fault]


class SequencePiece(NamedTuple):
    """What the coordinator keeps of a piece of the instruction sequence."""

    first: int
    slots: int
    notices: list[Notice]
    rows: int


class RangePiece(NamedTuple):
    """What the coordinator keeps of a piece of the live ranges."""

    table: pa.Table | None
    """None if there is a fault."""
    notices: list[Notice]
    faults: list[Fault]


@contextmanager
def fault_of(rule: Rule, faults: list[Fault]) -> Iterator[None]:
    """Turn an error into a fault of this rule."""
    try:
        yield
    except DumpError as error:
        faults.append(Fault(rule, error))


def scan_allocation_piece(
    text: Text, line: int, file: str, facts: Mapping[int, tuple[bool, bool]], where: Where
) -> AllocationPiece:
    """Scan a piece of the allocations section; write its allocations, return its value lines."""
    run_no, directory, suffix = where
    scan = scan_allocations(_read(text), line, file)
    faults: list[Fault] = []
    first = scan.headers[0].allocation if scan.headers else 0
    with fault_of(Rule.HEADERS, faults):
        check_headers(scan.headers, first, file)
    places = [-1] * scan.orphans + [
        place for place, header in enumerate(scan.headers) for _ in range(header.values)
    ]
    columns = list(zip(*scan.values, strict=True)) or [()] * 8
    ids, sizes, offsets = (list(map(int, columns[place])) for place in (0, 5, 6))
    with fault_of(Rule.BOUNDS, faults):
        check_bounds(
            ids[scan.orphans :],
            offsets[scan.orphans :],
            sizes[scan.orphans :],
            places[scan.orphans :],
            [header.size for header in scan.headers],
        )
        if max((*ids[: scan.orphans], *sizes[: scan.orphans], *offsets[: scan.orphans]), default=0) >= LIMIT:
            # Their allocation is in another piece, and has less bytes than that.
            check_bounds(ids[:1], [LIMIT], [0], [0], [0])
    with fault_of(Rule.UNIQUE, faults):
        # Also found when all pieces are there; but a file may repeat one line for gigabytes.
        if len(set(ids)) < len(ids):
            check_unique(sorted(ids))
    used: UsedScan | None = None
    if scan.used:
        with fault_of(Rule.FIRST_POSITION, faults):
            used = embedded(scan.used, file)
    of_piece = [line for line in scan.reuse if line.header >= 0]
    colors = [header.attributes.color for header in scan.headers]
    told = note_colors(scan.values[scan.orphans :], places[scan.orphans :], colors, of_piece, file)
    batch = Batch()
    values = None
    if not faults:
        batch.add_allocations(run_no, scan.headers, facts)
        write_tables(batch_tables(batch), directory, suffix)
        owners = [place if place < 0 else scan.headers[place].allocation for place in places]
        values = _value_table(columns, ids, owners, sizes, offsets)
    return AllocationPiece(
        len(scan.headers),
        scan.headers[-1].size if scan.headers else 0,
        bool(scan.headers and scan.headers[-1].values),
        bool(scan.reuse) and scan.reuse[-1].header == len(scan.headers) - 1,
        first,
        array("q", () if faults else (header.size for header in scan.headers)),
        colors[-1] if colors else 0,
        scan.orphans,
        [line if line.header < 0 else line._replace(header=first + line.header) for line in scan.reuse],
        values,
        sum(sizes),
        len(ids),
        used,
        scan.features,
        [*scan.notices, *told],
        batch.size,
        faults,
    )


def _value_table(
    columns: Sequence[Sequence[str]],
    ids: Sequence[int],
    owners: Sequence[int],
    sizes: Sequence[int],
    offsets: Sequence[int],
) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "allocation": pa.array(owners, pa.int64()),
            "name": pa.array(columns[1], pa.string()),
            "index": pa.array(columns[2], pa.string()).dictionary_encode(),
            "phi": pa.array(columns[3], pa.string()).dictionary_encode(),
            "color": pa.array(columns[4], pa.string()).dictionary_encode(),
            "size": pa.array(sizes, pa.int64()),
            "offset": pa.array(offsets, pa.int64()),
            "shape": pa.array(columns[7], pa.string()).dictionary_encode(),
        }
    )


def stage_used_piece(
    text: Text, line: int, file: str, values: pa.Table | None, sources: Mapping[str, Source], where: Where
) -> UsedPiece:
    """Scan a piece of `Used values:` and write its values, positions and uses.

    Without `values` there is a fault already: then it is only scanned.
    """
    run_no, directory, suffix = where
    used = scan_used_values(_read(text), line, file)
    faults: list[Fault] = []
    batch = Batch()
    if values is not None:
        lines = value_lines(values)
        with fault_of(Rule.SAME_VALUES, faults):
            check_same_values(lines.rows, used.blocks)
        with fault_of(Rule.NUMBERS, faults):
            check_colors(lines.rows)
        with fault_of(Rule.NUMBERS, faults):
            check_operands(used.uses)
        if not faults:
            batch.add_values(run_no, *lines, used, sources)
            write_tables(batch_tables(batch), directory, suffix)
    without_text = [block for block in used.blocks if not block[7]][:1]
    return UsedPiece(used.features, used.notices, batch.size, without_text, faults)


def value_lines(values: pa.Table) -> ValueLines:
    """Return value lines as they come from the scanner, by id."""
    ids, owners, names, indices, phis, colors, sizes, offsets, shapes = (
        as_list(column) for column in values.columns
    )
    parts = (map(str, ids), names, indices, phis, colors, map(str, sizes), map(str, offsets), shapes)
    return ValueLines(list(zip(*parts, strict=True)), ids, owners, offsets, sizes)


def stage_sequence_piece(text: Text, first: int, line: int, file: str, where: Where) -> SequencePiece:
    """Scan a piece of the instruction sequence, which starts with slot `first`, and write it."""
    run_no, directory, suffix = where
    notices: list[Notice] = []
    names = scan_sequence(_read(text), first, line, file, notices)
    batch = Batch()
    batch.add_schedule(run_no, first, names)
    write_tables(batch_tables(batch), directory, suffix)
    return SequencePiece(first, len(names), notices, batch.size)


def scan_range_piece(text: Text, line: int, file: str) -> RangePiece:
    """Scan a piece of the live ranges."""
    notices: list[Notice] = []
    faults: list[Fault] = []
    columns = list(zip(*scan_ranges(_read(text), line, file, notices), strict=True)) or [()] * 4
    starts, ends = list(map(int, columns[2])), list(map(int, columns[3]))
    if max((*starts, *ends), default=0) >= LIMIT:
        with fault_of(Rule.RANGES, faults):
            for name, index, start, end in zip(columns[0], columns[1], starts, ends, strict=True):
                check_range(name, index, start, end, LIMIT - 1, file)
        return RangePiece(None, notices, faults)
    table = pa.table(
        {
            "name": pa.array(columns[0], pa.string()),
            "index": pa.array(columns[1], pa.string()).dictionary_encode(),
            "start": pa.array(starts, pa.int64()),
            "end": pa.array(ends, pa.int64()),
        }
    )
    return RangePiece(table, notices, faults)


def _read(text: Text) -> str:
    return text if isinstance(text, str) else read_range(text)


def rest() -> None:
    """Give back memory while the coordinator needs most, for long enough that each worker gets a call."""
    release_freed()
    time.sleep(0.02)
