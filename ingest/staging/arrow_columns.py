"""Hold the columns of one large dump, and have workers write its rows, within bounded memory.

Workers scan the pieces that `ingest.dump.driver` cuts, and write their rows as Parquet at once
(`ingest.staging.pieces`). Only what the rules need of the whole dump is kept in memory, in Arrow and numpy
columns: some 100 bytes a value.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from itertools import chain
from typing import Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.dump import features
from ingest.dump.columns import Joined, Place, Text
from ingest.dump.driver import measure_ranges
from ingest.dump.grammar import LIMIT
from ingest.dump.parsed import ParsedDump
from ingest.dump.pieces import AllocationsBefore, Facts
from ingest.dump.used_values import UsedScan
from ingest.hlo.compare import Comparison
from ingest.liveness.address_columns import shared_addresses_of_many
from ingest.liveness.addresses import Located
from ingest.liveness.measure import Intervals
from ingest.liveness.occupancy import LEAVES, NOT_RANGED
from ingest.liveness.occupancy_columns import (
    OccupancyColumns,
    PlacedColumns,
    color_peaks_of_many,
    occupancy_columns,
)
from ingest.staging.batch import Batch
from ingest.staging.columns import (
    Numbers,
    are_unique,
    array_types,
    as_list,
    compact,
    filled,
    joined,
    plain_array,
    rows_in,
    sorted_by_id,
    starting,
    with_printed_index,
)
from ingest.staging.implied import Implied, implied_again
from ingest.staging.in_flight import InFlight
from ingest.staging.loop_columns import loops_of_many
from ingest.staging.loops import Part
from ingest.staging.memory import release_freed
from ingest.staging.pieces import (
    HeldInAllocations,
    StagedPiece,
    Where,
    complete_allocations,
    stage_allocation_piece,
    stage_range_piece,
    stage_sequence_piece,
    stage_used_piece,
    value_lines,
    write_values,
)
from ingest.staging.program_digest import placed_many, signed
from ingest.staging.range_rows import RangedValues, range_batches
from ingest.staging.sidecars import Sidecars, Source, notices_of

_ROWS_AT_ONCE: Final = 50_000
"""Live ranges, or values, whose rows are made and written together."""
_NONE: Final = pa.table({})
"""Values before they are sorted and when they are written, live ranges before they are joined."""


class ArrowColumns:
    """Holds the columns of a large dump, and has workers write its rows; see `ingest.dump.columns.Columns`.

    Attributes:
        rows: rows written.
    """

    reads_files = True

    def __init__(
        self,
        dump: ParsedDump,
        sidecars: Sidecars,
        paths: Mapping[str, str],
        where: Where,
        pool: Executor,
        in_flight: int,
    ) -> None:
        self.rows = 0
        self.facts = Facts(dump.features, dump.notices)
        self._dump = dump
        self._sidecars = sidecars
        self._paths = paths
        self._allocation_facts = sidecars.allocation_facts()
        self._where = where
        self._in_flight = InFlight(pool, in_flight)
        self._pieces = 0
        self._comparison = None if sidecars.proto is None else Comparison(sidecars.proto)
        self._value_pieces: list[pa.Table] = []
        self._values: pa.Table = _NONE
        self._ids: Numbers = np.empty(0, np.int64)
        self._range_pieces: list[pa.Table] = []
        self._parameters = array("q")
        self._with_digest = not sidecars.has_fingerprint
        self._print = 0
        self._prints = array("Q")
        self._printed_ids = array("q")
        """Of values that are written in another order than that of their ids."""
        self._phis: frozenset[str] | None = None
        """Instructions that define a phi value, once all values are known."""
        self._loop_results: dict[Part, int] = {}
        self._first_operands: list[pa.Table] = []
        self._colors = array("q")
        self._roles: list[str] = []
        self._ranges: pa.Table = _NONE
        self._range_rows: pa.Array | None = None

    @property
    def ids(self) -> Sequence[int]:
        """The values' ids, in order."""
        return self._ids  # type: ignore[return-value]

    def scan_allocations(self, text: Text, at: Place, before: AllocationsBefore) -> None:
        """Have a piece scanned and its allocations written; keep its values."""
        where, with_headers = self._next(), self._comparison is not None
        self._in_flight.submit(
            self._take,
            where,
            stage_allocation_piece,
            text,
            at,
            before,
            self._allocation_facts,
            where,
            with_headers,
            self._with_digest,
        )

    def sort_values(self) -> None:
        """Put the rows of the values in order of their ids, and hold them against the protobuf's."""
        values = self._values = sorted_by_id(self._value_pieces)
        release_freed()
        self._ids = values["id"].to_numpy()
        is_phi = filled(values["phi"].combine_chunks())
        self._phis = frozenset(values["name"].filter(pa.array(is_phi)).to_pylist())
        if self._comparison is not None:
            for start in range(0, len(values), _ROWS_AT_ONCE):
                lines = value_lines(values.slice(start, _ROWS_AT_ONCE))
                self._comparison.take_values(lines.rows(), *lines[1:])

    def repeated(self) -> Sequence[int]:
        """Return two ids that are equal, or none."""
        twice = np.flatnonzero(self._ids[1:] == self._ids[:-1])
        return self._ids[twice[0] : twice[0] + 2].tolist() if len(twice) else []

    def places(self, ids: Sequence[int]) -> Mapping[int, tuple[str, str, int]]:
        """Return where values are."""
        wanted = [id_ for id_ in ids if id_ < LIMIT]
        rows = [row for row in np.searchsorted(self._ids, wanted).tolist() if row < len(self._ids)]
        found = self._values.take(pa.array(rows, pa.int64()))
        columns = (as_list(found[name]) for name in ("id", "name", "index", "allocation"))
        return {id_: (name, index, owner) for id_, name, index, owner in zip(*columns, strict=True)}

    def lines(self, low: int, high: int) -> Sequence[tuple[str, ...]]:
        """Return some rows of values."""
        return value_lines(self._values.slice(low, high - low)).rows()

    def scan_used(self, text: Text, at: Place, low: int, high: int) -> None:
        """Have a piece scanned and its values, positions and uses written."""
        where, values = self._next(), compact(self._values.slice(low, high - low))
        sources = self._sources_of(values)
        self._in_flight.submit(
            self._take,
            where,
            stage_used_piece,
            text,
            at,
            values,
            sources,
            where,
            self._with_digest,
            self._phis,
        )

    def scan_sequence(self, text: Text, at: Place, first: int) -> None:
        """Have a piece scanned and written."""
        where = self._next()
        self._in_flight.submit(self._take, where, stage_sequence_piece, text, at, first, where)

    def scan_ranges(self, text: Text, at: Place, slots: int) -> None:
        """Have a piece scanned; keep its ranges."""
        self._in_flight.submit(self._take, self._where, stage_range_piece, text, at, slots)

    def join(self) -> Joined:
        """Find the value of each range; of the values little is kept."""
        self._in_flight.rest()
        self._write_values_alone()
        # What is needed no more goes first: the join takes most memory.
        is_tuple = starting(self._values["shape"].combine_chunks(), "(")
        values = self._values.select(["allocation", "name", "index", "size", "offset", "shape"])
        self._values = values
        ranges = self._ranges = joined(self._range_pieces)
        rows = self._range_rows = rows_in(ranges, values)
        values = self._values = values.drop_columns(["name", "index"])
        release_freed()
        ranged, present = rows.drop_null(), pc.is_valid(rows)
        missing: list[str] = []
        if rows.null_count:
            absent = ranges.filter(pc.is_null(rows))
            names = zip(as_list(absent["name"]), as_list(absent["index"]), strict=True)
            missing = [f"{name}{index}" for name, index in names]
        with_value = ranges.filter(present) if missing else ranges
        intervals = Intervals(
            *(plain_array(values[name].take(ranged).to_numpy()) for name in ("allocation", "offset", "size")),
            *(plain_array(with_value[name].to_numpy()) for name in ("start", "end")),
        )
        if not missing:  # each slot is kept once
            slots = (pa.array(np.asarray(column)) for column in (intervals.start, intervals.end))
            self._ranges = pa.table([ranges["name"], ranges["index"], *slots], names=ranges.column_names)
        del ranges, with_value
        numbers = ranged.to_numpy()
        is_unique = are_unique(ranged, len(values))
        release_freed()
        return Joined(
            intervals,
            lambda number: int(self._ids[numbers[number]]),
            missing,
            is_unique,
            is_tuple[numbers].tobytes(),
        )

    def keys(self) -> Iterable[tuple[str, str]]:
        """Return instruction and index of each range."""
        return zip(as_list(self._ranges["name"]), as_list(self._ranges["index"]), strict=True)

    def live_at(self, slot: int) -> Sequence[tuple[str, str]]:
        """Return the ranges that are live at a slot."""
        starts, ends = self._ranges["start"].to_numpy(), self._ranges["end"].to_numpy()
        live = self._ranges.filter(pa.array((starts <= slot) & (ends >= slot)))
        return list(zip(as_list(live["name"]), as_list(live["index"]), strict=True))

    def wait(self) -> None:
        """Take what is awaited."""
        self._in_flight.wait(self._take)

    def abandon(self) -> None:
        """Wait for what has begun."""
        self._in_flight.abandon()

    def write_rest(self) -> None:
        """Write what is known only at the end: live ranges with what they hold, and the small tables."""
        dump, run_no = self._dump, self._where.run_no
        if dump.liveness is None:
            self._write_values_alone()
        release_freed()
        batch = Batch()
        if dump.intervals is not None and dump.liveness is not None:
            batch.add_color_peaks(run_no, color_peaks_of_many(dump.intervals, dump.liveness, self._colors))
        self._write_shared_addresses()
        release_freed()
        declared = self._sidecars.declared_donations()
        held = HeldInAllocations(self._occupancies(), self._types, declared, dump.other_color_values)
        complete_allocations(self._where.directory, held)
        self._write_ranges()
        self._values = _NONE
        if self._comparison is not None:
            dump.notices += notices_of(self._comparison, self._paths["proto"])
        batch.add_reuse(run_no, [(line.header, line) for line in dump.reuse])
        if dump.tree is not None:
            batch.add_tree(run_no, dump.tree)
        batch.add_sidecars(run_no, self._sidecars)
        batch.add_notices(run_no, dump.notices)
        self.rows += self._where.write(batch)

    def _write_values_alone(self) -> None:
        """Write the rows of `values` of a dump that prints no positions and uses."""
        dump = self._dump
        if dump.features & {features.USED_VALUES, features.EMBEDDED_VALUES}:
            return
        implied = self._implied
        if implied:
            dump.uses_from = implied.origin
        for start in range(0, len(self._values), _ROWS_AT_ONCE):
            values = self._values.slice(start, _ROWS_AT_ONCE)
            used = implied.used(as_list(values["id"])) if implied else None
            self._write_values(values, used, self._next())

    @cached_property
    def _implied(self) -> Implied | None:
        starts = range(0, len(self._values), _ROWS_AT_ONCE)
        pieces = (value_lines(self._values.slice(start, _ROWS_AT_ONCE)).rows() for start in starts)
        return implied_again(
            self._dump, self._sidecars, self._comparison, chain.from_iterable(pieces), self._paths
        )

    def add_implied(self) -> None:
        """Add schedule and live ranges of a dump that does not print them."""
        dump = self._dump
        if dump.ranges_from or self._implied is None:
            return
        dump.leaving = self._implied.leaving
        if self._implied.schedule is None:
            return
        schedule, ranges = self._implied.schedule, self._implied.ranges
        dump.schedule_length = len(schedule)
        for start in range(0, len(schedule), _ROWS_AT_ONCE):
            where, batch = self._next(), Batch()
            batch.add_schedule(where.run_no, start, schedule[start : start + _ROWS_AT_ONCE])
            self.rows += where.write(batch)
        rows = [row for row, id_ in enumerate(self._ids.tolist()) if id_ in ranges]
        named = with_printed_index(self._values.take(pa.array(rows, pa.int64())))
        starts, ends = (
            pa.array([ranges[id_][at] for id_ in self._ids[rows].tolist()], pa.int64()) for at in (0, 1)
        )
        self._range_pieces.append(named.append_column("start", starts).append_column("end", ends))
        dump.ranges_from = self._implied.origin
        measure_ranges(dump, self.join(), self._paths["hlo" if self._comparison is None else "proto"])

    def _write_values(self, values: pa.Table, used: UsedScan | None, where: Where) -> None:
        sources = self._sources_of(values)
        piece = write_values(
            value_lines(values),
            used,
            sources,
            where,
            self._with_digest,
            self._phis,
            prints_phi=self._dump.prints_phi,
        )
        self._take(piece, where)

    def _write_shared_addresses(self) -> None:
        dump, values = self._dump, self._values
        handover = np.zeros(len(self._ids), np.int64)
        if dump.liveness is not None and self._range_rows is not None:
            handover[self._range_rows.drop_null().to_numpy()] = dump.liveness.handover
        places = [values[name].to_numpy() for name in ("allocation", "offset", "size")]
        loops = loops_of_many(self._loop_results, self._first_operands, self._ids)
        slots = (self._slots("start"), self._slots("end")) if loops else ((), ())
        # Of a gigabyte of text each column takes 12 MB: no copies as plain numbers.
        located = Located(*cast("tuple[Sequence[int], ...]", (*places, *slots, handover)))
        for some in shared_addresses_of_many(located, loops, has_ranges=dump.liveness is not None):
            where, batch = self._next(), Batch()
            batch.add_shared_addresses(where.run_no, some)
            self.rows += where.write(batch)
        self._values = values.drop_columns(["offset"])

    def _occupancies(self) -> OccupancyColumns:
        """Measure what each allocation holds; what is needed for that alone is given up."""
        dump, values = self._dump, self._values
        last_slots = self._slots("end")
        if self._with_digest:
            self._add_digest(self._slots("start"), last_slots)
        owners, sizes = (values[name].to_numpy() for name in ("allocation", "size"))
        if dump.leaving:
            last_slots[np.isin(self._ids, np.fromiter(dump.leaving, np.int64))] = LEAVES
        parameters = np.sort(np.asarray(self._parameters, np.int64))
        placed = PlacedColumns(self._ids, owners, sizes, last_slots, parameters)
        found = occupancy_columns(len(self._colors), placed, dump.intervals, dump.liveness)
        dump.intervals = None
        return found

    def _slots(self, which: str) -> Numbers:
        """Return the first or the last slots of the values, `NOT_RANGED` where they are not known."""
        slots = np.full(len(self._ids), NOT_RANGED)
        if self._range_rows is not None:
            is_present = pc.is_valid(self._range_rows).to_numpy(zero_copy_only=False)
            slots[self._range_rows.drop_null().to_numpy()] = self._ranges[which].to_numpy()[is_present]
        return slots

    def _add_digest(self, starts: Numbers, ends: Numbers) -> None:
        if self._printed_ids:
            rows = np.searchsorted(self._ids, np.asarray(self._printed_ids, np.int64))
            starts, ends = starts[rows], ends[rows]
        self._dump.digest = signed(placed_many(self._prints, starts, ends) + self._print)
        self._prints = array("Q")

    def _types(self, ids: Numbers) -> Numbers:
        """Return numbers for element type and dimensions of values, `ABSENT` for what is no array."""
        rows = pa.array(np.searchsorted(self._ids, ids))
        return array_types(self._values["shape"].combine_chunks().take(rows))

    def _write_ranges(self) -> None:
        dump, values, rows = self._dump, self._values, self._range_rows
        if dump.liveness is None or rows is None:
            return
        parameters = np.asarray(self._parameters, np.int64)
        ranged = RangedValues(self._ids, values["allocation"], values["size"], parameters, self._roles)
        for batch in range_batches(self._where.run_no, self._ranges, rows, ranged, dump.liveness, dump.peak):
            self.rows += self._next().write(batch)

    def _sources_of(self, values: pa.Table) -> dict[str, Source]:
        """Return what the HLO module says of the instructions of some values."""
        if self._sidecars.module is None:
            return {}
        return self._sidecars.sources(values["name"].to_pylist())

    def _next(self) -> Where:
        """Return where the next piece is written."""
        self._pieces += 1
        return self._where._replace(suffix=f"-{self._pieces:05d}")

    def _take(self, piece: StagedPiece, where: Where) -> None:
        self.rows += piece.rows
        self._colors.extend(piece.colors)
        self._roles += piece.roles
        self._parameters.extend(piece.parameters)
        self._print += piece.print
        self._prints.extend(piece.prints)
        self._loop_results |= piece.results
        if piece.operands:
            self._first_operands.append(piece.operands)
        if piece.ranges is not None:
            self._range_pieces.append(piece.ranges)
        if piece.values is not None:
            self._value_pieces.append(piece.values)
            if self._comparison is not None:
                self._comparison.take_allocations(piece.headers)
            if piece.used is not None:
                values = piece.values.take(pc.sort_indices(piece.values["id"]))
                if self._with_digest:
                    self._printed_ids.extend(as_list(values["id"]))
                self._write_values(values, piece.used, where)
        self.facts.add(piece.facts)
