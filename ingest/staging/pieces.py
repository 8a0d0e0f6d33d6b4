"""Scan the pieces of a large dump and write their rows: what the workers do for
`ingest.staging.arrow_columns`.

What goes back to the coordinator is small: facts of the piece, Arrow columns of the values and live ranges.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.dump.columns import Place, Text
from ingest.dump.content import read_range
from ingest.dump.headers import Header
from ingest.dump.live_range import scan_sequence
from ingest.dump.notices import Notices
from ingest.dump.pieces import (
    AllocationPiece,
    AllocationsBefore,
    Facts,
    scan_allocation_piece,
    scan_range_piece,
    scan_used_piece,
)
from ingest.dump.records import role_within
from ingest.dump.used_values import UsedScan
from ingest.liveness.donation_columns import HeldColumns, fitting_values
from ingest.liveness.donations import status_of
from ingest.liveness.occupancy_columns import ABSENT, OccupancyColumns
from ingest.staging.arrow_rows import batch_tables, write_tables
from ingest.staging.batch import Batch, Printed
from ingest.staging.columns import Numbers, as_list
from ingest.staging.dump_rows import parameter_ids
from ingest.staging.loops import Part, loop_results
from ingest.staging.memory import release_freed
from ingest.staging.sidecars import Source
from ingest.staging.use_columns import first_operand_table, prints_with_uses


class Where(NamedTuple):
    """Where the rows of a piece go."""

    run_no: int
    directory: str
    suffix: str
    """Of the piece's files."""

    def write(self, batch: Batch) -> int:
        """Write the rows of a batch; return how many there are."""
        write_tables(batch_tables(batch), self.directory, self.suffix)
        return batch.size


class ValueLines(NamedTuple):
    """Value lines, column-wise."""

    printed: Printed
    ids: Sequence[int]
    allocation_of: Sequence[int]
    offsets: Sequence[int]
    sizes: Sequence[int]

    def rows(self) -> list[tuple[str, ...]]:
        """Make the rows, each a `ValueLine`: values without uses are written without them."""
        return list(zip(*self.printed, strict=True))


class StagedPiece(NamedTuple):
    """A piece whose rows are written, and what the coordinator needs of it."""

    facts: Facts
    rows: int = 0
    """Rows written."""
    values: pa.Table | None = None
    """Of the allocations section: its values, see `_value_table`."""
    used: UsedScan | None = None
    """Of TF 1.15, whose allocations print positions and uses."""
    colors: array[int] = array("q")
    """Memory spaces of the allocations."""
    roles: Sequence[str] = ()
    """Of the allocations, see `role_within`."""
    headers: Sequence[Header] = ()
    """The allocations, where they were asked for."""
    print: int = 0
    """What its allocations count in the digest of the dump; 0 where it is not asked for."""
    prints: array[int] = array("Q")
    """What each of its values counts; empty where it is not asked for."""
    parameters: Sequence[int] = ()
    """Ids of the values that parameter instructions define."""
    results: Mapping[Part, int] = {}
    """Parts of the results of loops, each with the id of its value."""
    operands: pa.Table | None = None
    """Parts of first operands (name and index), each with the id of its value; see `first_operands`."""
    ranges: pa.Table | None = None
    """Live ranges: name, index, start and end."""


def stage_allocation_piece(
    text: Text,
    at: Place,
    before: AllocationsBefore,
    facts: Mapping[int, tuple[bool, bool | None]],
    where: Where,
    keeps_headers: bool,
    with_digest: bool,
) -> StagedPiece:
    """Scan a piece of the allocations section; write its allocations, return its values."""
    piece = scan_allocation_piece(_read(text), *at, before)
    batch = Batch()
    batch.add_allocations(where.run_no, piece.headers, facts, None, {}, {})
    rows = where.write(batch)
    flags = [header.attributes for header in piece.headers]
    colors = array("q", (one.color for one in flags))
    roles = [role_within(one.parameter_number is not None, one.is_constant) for one in flags]
    headers = piece.headers if keeps_headers else ()
    print_ = batch.prints.of_allocations(piece.headers) if with_digest else 0
    return StagedPiece(piece.facts, rows, _value_table(piece), piece.used, colors, roles, headers, print_)


class HeldInAllocations(NamedTuple):
    """What is known of all allocations of a dump only when all of it was read.

    Attributes:
        occupancies: what each of them holds, by index.
        types: returns numbers of values by their ids, equal where element type and dimensions are, and
            `ABSENT` for what is no array.
        declared: see `Sidecars.declared_donations`.
        other_color_values: see `ParsedDump`.
    """

    occupancies: OccupancyColumns
    types: Callable[[Numbers], Numbers]
    declared: Mapping[tuple[int, str], str]
    other_color_values: Mapping[int, int]


def complete_allocations(directory: str, held: HeldInAllocations) -> None:
    """Fill in what the allocations written hold, and what became of donations."""
    names = [name for name in os.listdir(directory) if name.startswith("allocations")]
    whole = completed(held, lambda: (pq.read_table(f"{directory}/{one}") for one in names))
    for name, table in zip(names, whole, strict=True):
        suffix = name.removeprefix("allocations").removesuffix(".parquet")
        write_tables([("allocations", table)], directory, suffix)


def completed(held: HeldInAllocations, tables: Callable[[], Iterable[pa.Table]]) -> Iterator[pa.Table]:
    """Yield rows of allocations with what is known of all of them.

    Args:
        held: what that is.
        tables: returns all rows; they are gone through twice.
    """
    count = len(held.occupancies.placed_values)
    parts = [_held_columns(_with_occupancies(table, held.occupancies), held) for table in tables()]
    columns = HeldColumns(*map(np.concatenate, zip(*parts, strict=True)))
    is_array = np.zeros(count, np.bool_)
    is_array[columns.allocation[columns.parameter != ABSENT]] = True
    fitting = fitting_values(count, columns)
    for table in tables():
        whole = _with_donations(_with_occupancies(table, held.occupancies), is_array, fitting, held.declared)
        counts = [held.other_color_values.get(index, 0) for index in as_list(table["allocation_index"])]
        yield _with(whole, "other_color_values", pa.array(counts, pa.int64()))


def _with_occupancies(allocations: pa.Table, held: OccupancyColumns) -> pa.Table:
    rows = allocations["allocation_index"].to_numpy()
    unfit = {
        "parameter_value_id": allocations["parameter_number"].is_null().to_numpy(),
        "live_out_value_id": pc.invert(allocations["maybe_live_out"]).to_numpy(),
    }
    for name, column in held._asdict().items():
        cells = column[rows]
        is_absent = (cells == ABSENT) | unfit.get(name, False)
        allocations = _with(allocations, name, pa.array(cells, pa.int64(), mask=is_absent))
    return allocations


def _held_columns(allocations: pa.Table, held: HeldInAllocations) -> HeldColumns:
    values = pc.coalesce(allocations["parameter_value_id"], allocations["live_out_value_id"])
    some = allocations.append_column("value", values).filter(pc.is_valid(values))
    types = held.types(some["value"].to_numpy())
    some, types = some.filter(pa.array(types != ABSENT)), types[types != ABSENT]
    return HeldColumns(
        some["allocation_index"].to_numpy(),
        some["size_bytes"].to_numpy(),
        some["color"].to_numpy(),
        some["parameter_number"].fill_null(ABSENT).to_numpy(),
        some["maybe_live_out"].to_numpy(),
        np.array([kind is not None for kind in _declared(some, held.declared)], np.bool_),
        some["value"].to_numpy(),
        types,
    )


def _with_donations(
    allocations: pa.Table,
    is_array: np.ndarray[Any, np.dtype[np.bool_]],
    fitting: Numbers,
    declared: Mapping[tuple[int, str], str],
) -> pa.Table:
    rows = allocations["allocation_index"].to_numpy()
    cells = fitting[rows]
    kinds = [
        kind if is_parameter else None
        for kind, is_parameter in zip(_declared(allocations, declared), is_array[rows].tolist(), strict=True)
    ]
    statuses = [
        status_of(leaves=leaves, is_declared=kind is not None, fits=fits) if is_parameter else None
        for leaves, kind, fits, is_parameter in zip(
            as_list(allocations["maybe_live_out"]),
            kinds,
            (cells != ABSENT).tolist(),
            is_array[rows].tolist(),
            strict=True,
        )
    ]
    allocations = _with(allocations, "donation", pa.array(statuses, pa.string()))
    allocations = _with(allocations, "declared_donation", pa.array(kinds, pa.string()))
    return _with(allocations, "fitting_value_id", pa.array(cells, pa.int64(), mask=cells == ABSENT))


def _declared(allocations: pa.Table, declared: Mapping[tuple[int, str], str]) -> list[str | None]:
    if not declared:
        return [None] * len(allocations)
    columns = (allocations[name].to_pylist() for name in ("parameter_number", "parameter_shape_index"))
    return [declared.get(part) for part in zip(*columns, strict=True)]


def _with(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def _value_table(piece: AllocationPiece) -> pa.Table:
    columns: Sequence[Sequence[str]] = list(zip(*piece.rows, strict=True)) or [()] * 8
    return pa.table(
        {
            "id": pa.array(piece.ids, pa.int64()),
            "allocation": pa.array(piece.allocation_of, pa.int64()),
            "name": pa.array(columns[1], pa.string()),
            "index": pa.array(columns[2], pa.string()).dictionary_encode(),
            "phi": pa.array(columns[3], pa.string()).dictionary_encode(),
            "color": pa.array(columns[4], pa.string()).dictionary_encode(),
            "size": pa.array(piece.sizes, pa.int64()),
            "offset": pa.array(piece.offsets, pa.int64()),
            "shape": pa.array(columns[7], pa.string()).dictionary_encode(),
        }
    )


def value_lines(values: pa.Table) -> ValueLines:
    """Return value lines as they come from the scanner."""
    ids, owners, names, indices, phis, colors, sizes, offsets, shapes = (
        as_list(column) for column in values.columns
    )
    id_texts, size_texts, offset_texts = (list(map(str, numbers)) for numbers in (ids, sizes, offsets))
    printed = Printed(id_texts, names, indices, phis, colors, size_texts, offset_texts, shapes)
    return ValueLines(printed, ids, owners, offsets, sizes)


def write_values(
    lines: ValueLines,
    used: UsedScan | None,
    sources: Mapping[str, Source],
    where: Where,
    with_digest: bool,
    phis: Collection[str] | None,
    *,
    prints_phi: bool = True,
) -> StagedPiece:
    """Write the rows of values, with positions and uses where these are known.

    `phis` are the instructions that define a phi value in the dump, None where that is not known yet. Of
    dumps that print none see `Batch.add_values`.
    """
    batch = Batch()
    printed = lines.printed
    batch.add_values(where.run_no, printed, *lines[1:], used, sources, prints_phi=prints_phi)
    opcodes = batch.opcodes(printed.names, sources)
    staged = StagedPiece(
        Facts(),
        batch.size,
        prints=batch.prints.of_values(*printed[1:3], printed.shapes, opcodes) if with_digest else array("Q"),
        parameters=parameter_ids(lines.ids, opcodes),
        results=loop_results(printed, opcodes, lines.ids),
    )
    for name, table in batch_tables(batch):
        write_tables([(name, table)], where.directory, where.suffix)
        if name == "uses" and used is not None:
            if with_digest:
                staged = staged._replace(prints=prints_with_uses(staged.prints, used.use_counts, table))
            staged = staged._replace(operands=first_operand_table(table, phis))
    return staged


def stage_used_piece(
    text: Text,
    at: Place,
    values: pa.Table,
    sources: Mapping[str, Source],
    where: Where,
    with_digest: bool,
    phis: Collection[str] | None,
) -> StagedPiece:
    """Scan a piece of `Used values:`; write its values, positions and uses."""
    lines = value_lines(values)
    used = scan_used_piece(_read(text), *at, lines.rows())
    staged = write_values(lines, used, sources, where, with_digest, phis)
    staged.facts.add_used(used)
    return staged


def stage_sequence_piece(text: Text, at: Place, first: int, where: Where) -> StagedPiece:
    """Scan a piece of the instruction sequence and write it."""
    notices = Notices()
    names = scan_sequence(_read(text), first, *at, notices)
    batch = Batch()
    batch.add_schedule(where.run_no, first, names)
    return StagedPiece(Facts(notices=notices, slots=len(names)), where.write(batch))


def stage_range_piece(text: Text, at: Place, slots: int) -> StagedPiece:
    """Scan a piece of the live ranges, which are written when all values are known."""
    notices = Notices()
    piece = scan_range_piece(_read(text), *at, slots, notices)
    ranges = pa.table(
        {
            "name": pa.array(piece.names, pa.string()),
            "index": pa.array(piece.indices, pa.string()).dictionary_encode(),
            "start": pa.array(piece.starts, pa.int64()),
            "end": pa.array(piece.ends, pa.int64()),
        }
    )
    return StagedPiece(Facts(notices=notices), ranges=ranges)


def _read(text: Text) -> str:
    return text if isinstance(text, str) else read_range(text)


def rest() -> None:
    """Give back memory while the coordinator needs most, for long enough that each worker gets a call."""
    release_freed()
    time.sleep(0.02)
