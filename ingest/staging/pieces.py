"""Scan the pieces of a large dump and write their rows: what the workers do for
`ingest.staging.arrow_columns`.

What goes back to the coordinator is small: facts of the piece, Arrow columns of the values and live ranges.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
    facts_of_used,
    scan_allocation_piece,
    scan_range_piece,
    scan_used_piece,
)
from ingest.dump.used_values import UsedScan
from ingest.liveness.occupancy_columns import ABSENT, OccupancyColumns
from ingest.staging.arrow_rows import batch_tables, write_tables
from ingest.staging.batch import Batch, parameter_ids
from ingest.staging.columns import as_list
from ingest.staging.memory import release_freed
from ingest.staging.sidecars import Source


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
    """Value lines, column-wise; `rows` are as `ValueLine`."""

    rows: Sequence[tuple[str, ...]]
    ids: Sequence[int]
    allocation_of: Sequence[int]
    offsets: Sequence[int]
    sizes: Sequence[int]


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
    headers: Sequence[Header] = ()
    """The allocations, where they were asked for."""
    parameters: Sequence[int] = ()
    """Ids of the values that parameter instructions define."""
    ranges: pa.Table | None = None
    """Live ranges: name, index, start and end."""


def stage_allocation_piece(
    text: Text,
    at: Place,
    before: AllocationsBefore,
    facts: Mapping[int, tuple[bool, bool | None]],
    where: Where,
    keeps_headers: bool,
) -> StagedPiece:
    """Scan a piece of the allocations section; write its allocations, return its values."""
    piece = scan_allocation_piece(_read(text), *at, before)
    batch = Batch()
    batch.add_allocations(where.run_no, piece.headers, facts, None)
    rows = where.write(batch)
    colors = array("q", (header.attributes.color for header in piece.headers))
    headers = piece.headers if keeps_headers else ()
    return StagedPiece(piece.facts, rows, _value_table(piece), piece.used, colors, headers)


def complete_allocations(directory: str, held: OccupancyColumns) -> None:
    """Fill in what the allocations written hold, which is known only when all values are."""
    for name in os.listdir(directory):
        if name.startswith("allocations"):
            table = with_occupancies(pq.read_table(f"{directory}/{name}"), held)
            suffix = name.removeprefix("allocations").removesuffix(".parquet")
            write_tables([("allocations", table)], directory, suffix)


def with_occupancies(allocations: pa.Table, held: OccupancyColumns) -> pa.Table:
    """Return rows of allocations with what each of them holds; `held` is of all, by index."""
    rows = allocations["allocation_index"].to_numpy()
    unfit = {
        "parameter_value_id": allocations["parameter_number"].is_null().to_numpy(),
        "live_out_value_id": pc.invert(allocations["maybe_live_out"]).to_numpy(),
    }
    for name, column in held._asdict().items():
        cells = column[rows]
        is_absent = (cells == ABSENT) | unfit.get(name, False)
        place = allocations.schema.get_field_index(name)
        allocations = allocations.set_column(place, name, pa.array(cells, pa.int64(), mask=is_absent))
    return allocations


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
    parts = (map(str, ids), names, indices, phis, colors, map(str, sizes), map(str, offsets), shapes)
    return ValueLines(list(zip(*parts, strict=True)), ids, owners, offsets, sizes)


def write_values(
    lines: ValueLines, used: UsedScan | None, sources: Mapping[str, Source], where: Where
) -> StagedPiece:
    """Write the rows of values, with positions and uses where these are known."""
    batch = Batch()
    batch.add_values(where.run_no, *lines, used, sources)
    parameters = parameter_ids(lines.ids, (row[1] for row in lines.rows), used, sources)
    return StagedPiece(Facts(), where.write(batch), parameters=parameters)


def stage_used_piece(
    text: Text, at: Place, values: pa.Table, sources: Mapping[str, Source], where: Where
) -> StagedPiece:
    """Scan a piece of `Used values:`; write its values, positions and uses."""
    lines = value_lines(values)
    used = scan_used_piece(_read(text), *at, lines.rows)
    return write_values(lines, used, sources, where)._replace(facts=facts_of_used(used))


def stage_sequence_piece(text: Text, at: Place, first: int, where: Where) -> StagedPiece:
    """Scan a piece of the instruction sequence and write it."""
    notices = Notices()
    names = scan_sequence(_read(text), first, *at, notices)
    batch = Batch()
    batch.add_schedule(where.run_no, first, names)
    return StagedPiece(Facts(notices=notices, slots=len(names)), where.write(batch))


def stage_range_piece(text: Text, at: Place, slots: int) -> StagedPiece:
    """Scan a piece of the live ranges, which are written when all values are known."""
    piece = scan_range_piece(_read(text), *at, slots)
    ranges = pa.table(
        {
            "name": pa.array(piece.names, pa.string()),
            "index": pa.array(piece.indices, pa.string()).dictionary_encode(),
            "start": pa.array(piece.starts, pa.int64()),
            "end": pa.array(piece.ends, pa.int64()),
        }
    )
    return StagedPiece(Facts(notices=piece.notices), ranges=ranges)


def _read(text: Text) -> str:
    return text if isinstance(text, str) else read_range(text)


def rest() -> None:
    """Give back memory while the coordinator needs most, for long enough that each worker gets a call."""
    release_freed()
    time.sleep(0.02)
