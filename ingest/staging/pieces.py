"""Scan and stage the pieces of a large dump: what the workers of `ingest.staging.large` do.

A piece that cannot be read raises. A rule that it breaks is a `Fault` instead: whether that is what the dump
is rejected for depends on the pieces that are not scanned yet (`Rule`). So it is with a `LateError`, which
is returned.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple

import pyarrow as pa

from ingest.dump import features
from ingest.dump.allocations import LIMIT, LateError, ReuseLine, scan_allocations
from ingest.dump.check import (
    check_bounds,
    check_colors,
    check_headers,
    check_operands,
    check_same_values,
    check_unique,
)
from ingest.dump.live_range import scan_ranges, scan_sequence
from ingest.dump.records import Notice
from ingest.dump.resident import MainMemory, main_memory
from ingest.dump.source import FileRange, read_range
from ingest.dump.used_values import UsedScan, embedded, scan_used_values
from ingest.errors import DumpError
from ingest.staging.arrow_rows import batch_tables, write_tables
from ingest.staging.batch import Batch, parameter_ids
from ingest.staging.columns import as_list
from ingest.staging.memory import release_freed
from ingest.staging.siblings import Source

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
    COLORS = 12
    OPERANDS = 13


class Fault(NamedTuple):
    """A rule that does not hold, and what to say of it."""

    rule: Rule
    error: DumpError
    value: int = 0
    """The value at fault where those are looked at by their ids: the first one counts."""


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
    """Empty if the headers break a rule."""
    colors: array[int]
    """Of the allocations."""
    memory: MainMemory
    orphans: int
    """Value lines before the first header: they belong to the last allocation of the piece before."""
    orphan_places: tuple[list[int], list[int], list[int]] | None
    """Their ids, offsets and sizes if they are not in `values`."""
    reuse: list[ReuseLine]
    values: pa.Table | None
    """None if a number does not fit 64 bits."""
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

    blocks: int
    features: set[str]
    notices: list[Notice]
    rows: int
    without_text: list[tuple[str, ...]]
    """The first block without instruction text, if there is one."""
    parameters: list[int]
    """Ids of the values that parameter instructions define."""
    faults: list[Fault]


class SequencePiece(NamedTuple):
    """What the coordinator keeps of a piece of the instruction sequence."""

    slots: int
    notices: list[Notice]
    rows: int


class RangePiece(NamedTuple):
    """What the coordinator keeps of a piece of the live ranges."""

    table: pa.Table
    """Numbers that do not fit 64 bits are the largest that do."""
    notices: list[Notice]
    too_large: dict[int, tuple[int, int]]
    """By row, start and end where those do not fit."""


@contextmanager
def fault_of(rule: Rule, faults: list[Fault]) -> Iterator[None]:
    """Turn an error into a fault of this rule."""
    try:
        yield
    except DumpError as error:
        # Its traceback would keep the frames, and all that the scan of the piece has made.
        faults.append(Fault(rule, error.with_traceback(None)))


def scan_allocation_piece(
    text: Text, line: int, file: str, facts: Mapping[int, tuple[bool, bool | None]], where: Where
) -> AllocationPiece | LateError:
    """Scan a piece of the allocations section; write its allocations, return its value lines."""
    run_no, directory, suffix = where
    try:
        scan = scan_allocations(_read(text), line, file)
    except LateError as error:
        return error.with_traceback(None)
    faults: list[Fault] = []
    orphans = scan.orphans
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
            [first + place for place in places[scan.orphans :]],
            {first + place: header.size for place, header in enumerate(scan.headers)},
        )
    with fault_of(Rule.UNIQUE, faults):
        # Also found when all pieces are there; but a file may repeat one line for gigabytes.
        if len(set(ids)) < len(ids):
            check_unique(sorted(ids))
    used: UsedScan | None = None
    if scan.used:
        with fault_of(Rule.FIRST_POSITION, faults):
            used = embedded(scan.used, file)
        faults += _embedded_numbers(scan.used, ids, used)
    batch = Batch()
    values = None
    largest = max(
        first + len(scan.headers), max(ids, default=0), max(sizes, default=0), max(offsets, default=0)
    )
    if not faults and largest < LIMIT:
        batch.add_allocations(run_no, scan.headers, facts, None)
        write_tables(batch_tables(batch), directory, suffix)
    if largest < LIMIT:
        owners = [place if place < 0 else first + place for place in places]
        values = _value_table(columns, ids, owners, sizes, offsets)
    keeps_headers = all(fault.rule is not Rule.HEADERS for fault in faults)
    return AllocationPiece(
        len(scan.headers),
        scan.headers[-1].size if scan.headers else 0,
        bool(scan.headers and scan.headers[-1].values),
        scan.ends_in_reuse,
        first,
        array("q", (header.size for header in scan.headers) if keeps_headers else ()),
        array("q", (header.attributes.color for header in scan.headers)),
        main_memory(scan.headers),
        scan.orphans,
        None if values is not None else (ids[:orphans], offsets[:orphans], sizes[:orphans]),
        [line if line.header < 0 else line._replace(header=first + line.header) for line in scan.reuse],
        values,
        sum(sizes),
        len(ids),
        used,
        scan.features,
        scan.notices,
        batch.size,
        faults,
    )


def _embedded_numbers(
    blocks: Sequence[tuple[str, ...]], ids: Sequence[int], used: UsedScan | None
) -> Iterator[Fault]:
    """Yield what does not fit 64 bits in the values of TF 1.15: a color and an operand, of the first."""
    longest = max((len(block[4]) for block in blocks), default=0)
    if used is None or max(longest, max((len(use[1]) for use in used.uses), default=0)) <= 18:
        return
    for id_, block in sorted(zip(ids, blocks, strict=True)):
        faults: list[Fault] = []
        with fault_of(Rule.COLORS, faults):
            check_colors([block])
        if faults:
            yield faults[0]._replace(value=id_)
            break
    for id_, end, count in zip(sorted(ids), accumulate(used.use_counts), used.use_counts, strict=True):
        faults = []
        with fault_of(Rule.OPERANDS, faults):
            check_operands(used.uses[end - count : end])
        if faults:
            yield faults[0]._replace(value=id_)
            break


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
) -> UsedPiece | LateError:
    """Scan a piece of `Used values:` and write its values, positions and uses.

    Without `values` there is a fault already: then it is only scanned.
    """
    run_no, directory, suffix = where
    try:
        used = scan_used_values(_read(text), line, file)
    except LateError as error:
        return error.with_traceback(None)
    faults: list[Fault] = []
    parameters: list[int] = []
    batch = Batch()
    if values is not None:
        lines = value_lines(values)
        with fault_of(Rule.SAME_VALUES, faults):
            check_same_values(lines.rows, used.blocks)
        with fault_of(Rule.COLORS, faults):
            check_colors(lines.rows)
        with fault_of(Rule.OPERANDS, faults):
            check_operands(used.uses)
        if not faults:
            batch.add_values(run_no, *lines, used, sources)
            parameters = parameter_ids(lines.ids, (row[1] for row in lines.rows), used, sources)
            write_tables(batch_tables(batch), directory, suffix)
    without_text = [block for block in used.blocks if not block[7]][:1]
    return UsedPiece(
        len(used.blocks), used.features, used.notices, batch.size, without_text, parameters, faults
    )


def value_lines(values: pa.Table) -> ValueLines:
    """Return value lines as they come from the scanner, by id."""
    ids, owners, names, indices, phis, colors, sizes, offsets, shapes = (
        as_list(column) for column in values.columns
    )
    parts = (map(str, ids), names, indices, phis, colors, map(str, sizes), map(str, offsets), shapes)
    return ValueLines(list(zip(*parts, strict=True)), ids, owners, offsets, sizes)


def stage_sequence_piece(
    text: Text, first: int, line: int, file: str, where: Where
) -> SequencePiece | LateError:
    """Scan a piece of the instruction sequence, which starts with slot `first`, and write it."""
    run_no, directory, suffix = where
    notices: list[Notice] = []
    try:
        names = scan_sequence(_read(text), first, line, file, notices)
    except LateError as error:
        return error.with_traceback(None)
    if first + len(names) > LIMIT:
        return SequencePiece(len(names), notices, 0)  # the slots before it are missing
    batch = Batch()
    batch.add_schedule(run_no, first, names)
    write_tables(batch_tables(batch), directory, suffix)
    return SequencePiece(len(names), notices, batch.size)


def scan_range_piece(text: Text, line: int, file: str) -> RangePiece:
    """Scan a piece of the live ranges."""
    notices: list[Notice] = []
    columns = list(zip(*scan_ranges(_read(text), line, file, notices), strict=True)) or [()] * 4
    starts, ends = list(map(int, columns[2])), list(map(int, columns[3]))
    too_large: dict[int, tuple[int, int]] = {}
    if max(max(starts, default=0), max(ends, default=0)) >= LIMIT:
        pairs = enumerate(zip(starts, ends, strict=True))
        too_large = dict((row, pair) for row, pair in pairs if max(pair) >= LIMIT)
        starts, ends = ([min(number, LIMIT - 1) for number in column] for column in (starts, ends))
    table = pa.table(
        {
            "name": pa.array(columns[0], pa.string()),
            "index": pa.array(columns[1], pa.string()).dictionary_encode(),
            "start": pa.array(starts, pa.int64()),
            "end": pa.array(ends, pa.int64()),
        }
    )
    return RangePiece(table, notices, too_large)


def _read(text: Text) -> str:
    return text if isinstance(text, str) else read_range(text)


def rest() -> None:
    """Give back memory while the coordinator needs most, for long enough that each worker gets a call."""
    release_freed()
    time.sleep(0.02)
