"""Stage one large dump set piece by piece, on all workers, within bounded memory.

The coordinator reads the files in blocks and cuts them at record borders; workers scan the pieces and
write their rows as Parquet at once (`ingest.staging.pieces`). Only what the rules need of the whole dump
stays in memory, in Arrow and numpy columns: some 100 bytes a value. The rules, their order and the rows are
those of `ingest.dump.parse`.
"""

from __future__ import annotations

import os
import shutil
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from concurrent.futures import wait as wait_for
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.dump import features
from ingest.dump.allocations import (
    LIMIT,
    LINES,
    LateError,
    ReuseLine,
)
from ingest.dump.check import (
    SECTIONS_OF,
    check_bounds,
    check_colors,
    check_end,
    check_last_allocation,
    check_magnitude,
    check_numbers,
    check_peak_list,
    check_range,
    check_reuse,
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
from ingest.dump.live_range import RANGES_HEAD, SLOT, UNAVAILABLE, scan_head, slot_out_of_order
from ingest.dump.liveness import Intervals, measure
from ingest.dump.locate import locate
from ingest.dump.notices import note
from ingest.dump.occupancy import NOT_RANGED, Occupancy, Placed, occupancies
from ingest.dump.oddities import (
    note_blank_lines,
    note_color,
    note_missing_value,
    note_mixed,
    note_overlaps,
)
from ingest.dump.parse import START, note_lines, scan_section
from ingest.dump.parsed import ParsedDump
from ingest.dump.resident import resident_peak
from ingest.dump.sections import Piece, Section, cut
from ingest.dump.sets import DumpSet
from ingest.dump.source import BLOCK_BYTES, BlockReader, FileRange
from ingest.dump.used_values import UsedScan, first_and_last
from ingest.errors import DumpError
from ingest.staging.arrow_rows import batch_tables, write_tables
from ingest.staging.batch import Batch, PeakMatcher, parameter_ids
from ingest.staging.columns import as_list, compact, joined, plain_array, rows_in, sorted_by_id
from ingest.staging.memory import release_freed
from ingest.staging.parts import seal
from ingest.staging.pieces import (
    AllocationPiece,
    Fault,
    RangePiece,
    Rule,
    SequencePiece,
    Text,
    UsedPiece,
    ValueLines,
    fault_of,
    rest,
    scan_allocation_piece,
    scan_range_piece,
    stage_sequence_piece,
    stage_used_piece,
    value_lines,
)
from ingest.staging.second_look import first_unreadable, require_same_values
from ingest.staging.siblings import NO_SIBLINGS, Source
from ingest.staging.stage import (
    Staged,
    Task,
    file_rows,
    internal,
    known_already,
    parse_unless_unfinished,
    play_back,
    read_beside,
    run_row,
    text_files,
    write_run_tables,
)

_T = TypeVar("_T")
_RANGES_AT_ONCE: Final = 100_000
_VALUES_AT_ONCE: Final = 50_000
_HUGE_BYTES: Final = 512 << 20
"""Sets from here on are cut into smaller pieces: a gigabyte takes 570 MB instead of 645. Smaller sets have
memory to spare, and would take 5 % longer."""
_READ_AFTER_FAULT: Final = 256 << 20
"""Bytes up to which a damaged dump is read on for what is to be told before that."""
_AHEAD_OF_VALUES: Final = frozenset({Rule.HEADERS, Rule.FIRST_VALUE, Rule.BOUNDS})
"""Rules of which a fault makes it needless to keep the values."""
_ALLOCATION_FACTS: Final = ("allocation_index", "parameter_number", "maybe_live_out")
_DIFFERENT_VALUES: Final = Fault(Rule.SAME_VALUES, DumpError("value-mismatch", "see require_same_values"))


class _FirstSlot(NamedTuple):
    """The first slot of a piece of the instruction sequence, as printed, and its line."""

    number: str
    instruction: str
    line: int


class LargeDump:
    """One large dump set on its way into a part directory."""

    def __init__(
        self, run_no: int, dump_set: DumpSet, directory: str, pool: Executor, in_flight: int
    ) -> None:
        self.rows = 0
        self._run_no = run_no
        self._files: Mapping[str, str] = text_files(dump_set)
        self._dump_set = dump_set
        size = sum(member.size for member in dump_set.members)
        self._reading = {"block_bytes": BLOCK_BYTES // 2} if size >= _HUGE_BYTES else {}
        self._beside = NO_SIBLINGS
        self._directory = directory
        self._pool = pool
        self._in_flight = in_flight
        self._dump = ParsedDump()
        self._faults: dict[Rule, Fault] = {}
        self._late: LateError | None = None
        self._allocation_sizes = array("q")
        self._allocation_colors = array("q")
        self._allocated = 0
        self._value_bytes = 0
        self._headers = 0
        self._last_size = 0
        self._last_has_values = False
        self._ends_in_reuse = False
        self._values_after_reuse = False
        self._unknown_lines = False
        self._reuse: list[ReuseLine] = []
        self._styles: set[frozenset[str]] = set()
        self._without_text: list[tuple[str, ...]] = []
        self._small = Batch()
        self._value_pieces: list[pa.Table] = []
        self._values: pa.Table | None = None
        self._is_tuple: np.ndarray[Any, np.dtype[np.bool_]] | None = None
        self._ids = np.empty(0, np.int64)
        self._used = 0
        self._slots = 0
        self._range_pieces: list[pa.Table] = []
        self._ranges = 0
        self._too_large: dict[int, tuple[int, int]] = {}
        self._parameters: set[int] = set()
        self._held: list[Occupancy] = []
        self._piece = 0

    def stage(self) -> ParsedDump:
        """Write the rows; return the dump's figures (its columns stay empty).

        Raises:
            DumpError: as `ingest.dump.parse.parse_set`.
        """
        try:
            dump = self._dump
            self._beside = read_beside(self._dump_set, dump)
            for role, file in self._files.items():
                self._stage_file(role, file)
            if len(self._files) > 1:
                dump.features.add(features.SPLIT_FILES)
            self._check_values()
            check_sections(dump, self._files)
            if features.USED_VALUES not in dump.features and features.EMBEDDED_VALUES not in dump.features:
                self._write_values_alone()
            self._finish_ranges()
            play_back(dump, self._beside)
            self._require(Rule.COLORS)
            check_magnitude("total", "total", (dump.total,), "Total bytes used: ")
            check_magnitude("the sum of all sizes,", "allocations", (self._allocated,))
            self._require(Rule.OPERANDS)
            check_numbers(dump)
            self._complete_allocations()
            self._write_small_tables()
            return dump
        except DumpError as error:
            locate(error, list(self._files.values()))
            raise

    def _stage_file(self, role: str, file: str) -> None:
        reader = BlockReader(file, **self._reading)
        # Pieces of one section are scanned in parallel; a section starts when the one before is complete.
        waiting: deque[tuple[Future[Any], Callable[[Any], None]]] = deque()
        before: Piece | None = None
        offset = 0
        error: DumpError | None = None
        ends_anyhow = False
        try:
            for piece, is_last in _mark_last(cut(_started(reader, role, file), START[role])):
                if piece.line == 1:
                    ends_anyhow = role == "live_range" and piece.text.startswith(UNAVAILABLE)
                if is_last and not ends_anyhow:
                    is_whole = ends_whole(piece.text, role, self._files)
                    line = piece.line + piece.text.count("\n")
                    at_end = check_end(piece.text, file, line, piece.section, is_whole)
                    note(self._dump.notices, at_end)
                    piece = piece._replace(text=without_blank_end(piece.text))
                if (error or self._late or self._faults) and reader.text_bytes > _READ_AFTER_FAULT:
                    raise error or self._late or self._faults[min(self._faults)].error
                if error is not None:
                    continue  # a file that is cut off is told as that
                size = len(piece.text) if piece.text.isascii() else len(piece.text.encode())
                # A worker reads its piece itself: through a pipe it took a fifth of the whole time.
                source = FileRange(file, offset, size) if reader.is_verbatim else piece.text
                offset += size
                try:
                    if before is None or piece.section is not before.section:
                        _drain(waiting, 0)
                        self._start_section(before, piece, role, file)
                    before = piece
                    submitted = self._submit(piece, source, file)
                    if submitted is not None:
                        waiting.append(submitted)
                        _drain(waiting, self._in_flight)
                except DumpError as found:
                    error = found
            try:
                if error is None:
                    _drain(waiting, 0)
                    self._end_section(before, file)
            except DumpError as found:
                error = found
        finally:
            # The folder is removed after an error: nobody may write to it then.
            for future, _ in waiting:
                future.cancel()
            wait_for([future for future, _ in waiting])
        if error is not None:
            if before is not None and before.section is Section.ALLOCATIONS:
                error = first_unreadable(file) or error
            raise error
        if before is None:
            check_end("", file, 1, START[role], False)
        self._dump.sha256[role] = reader.sha256
        self._dump.text_bytes += reader.text_bytes
        note(self._dump.notices, reader.notices)

    def _start_section(self, before: Piece | None, piece: Piece, role: str, file: str) -> None:
        self._end_section(before, file)
        section, seen = piece.section, self._dump.sections
        if section in seen or (len(self._files) > 1 and section not in SECTIONS_OF[role]):
            raise misplaced(section, file, piece.line)
        if before is not None and section <= Section.SEQUENCE:
            note(self._dump.notices, note_blank_lines(before.text, piece, file, self._dump.features))
        if section is Section.VALUES:
            self._finish_values()
            self._dump.features.add(features.USED_VALUES)

    def _end_section(self, before: Piece | None, file: str) -> None:
        """Tell what can be told only when all pieces of a section are scanned."""
        if self._late is not None:
            raise self._late
        if before is not None and before.section is Section.ALLOCATIONS:
            is_mixed = len(self._styles) > 1 or self._values_after_reuse
            if is_mixed or (self._unknown_lines and features.EMBEDDED_VALUES in self._dump.features):
                error = first_unreadable(file)
                if error is not None:
                    raise error

    def _submit(
        self, piece: Piece, source: Text, file: str
    ) -> tuple[Future[Any], Callable[[Any], None]] | None:
        """Hand a piece to a worker, or scan it here when it is small by nature."""
        section, text, line = piece
        suffix = f"-{self._piece:05d}"
        self._piece += 1
        where = (self._run_no, self._directory, suffix)
        submit = self._pool.submit
        match section:
            case Section.ALLOCATIONS:
                facts = self._beside.allocation_facts()
                future: Future[Any] = submit(scan_allocation_piece, source, line, file, facts, where)
                return future, lambda found: self._take_allocations(found, suffix)
            case Section.VALUES:
                self._dump.sections.add(section)
                values = self._slice_for(text)
                sources = {} if values is None else self._sources_of(values)
                future = submit(stage_used_piece, source, line, file, values, sources, where)
                return future, self._take_used
            case Section.SEQUENCE if features.LIVE_RANGE_UNAVAILABLE in self._dump.features:
                note_lines(self._dump, LINES.findall(text), line, file)
                return None
            case Section.SEQUENCE if features.LIVE_RANGE in self._dump.features or not text.startswith(
                UNAVAILABLE
            ):
                self._dump.sections.add(section)
                if features.LIVE_RANGE not in self._dump.features:
                    self._dump.schedule_length, text = scan_head(text, line, file)
                    self._dump.features.add(features.LIVE_RANGE)
                    source = text
                    line += 2
                slot = SLOT.search(text)
                first = int(slot[1]) if slot else 0
                printed = None
                if slot is not None:
                    printed = _FirstSlot(slot[1], slot[2], line + text.count("\n", 0, slot.start()))
                future = submit(stage_sequence_piece, source, first, line, file, where)
                return future, lambda found: self._take_sequence(found, printed, file)
            case Section.RANGES:
                if section not in self._dump.sections:
                    source = text.removeprefix(RANGES_HEAD)
                    line += 1
                self._dump.sections.add(section)
                return submit(scan_range_piece, source, line, file), self._take_ranges
            case _:
                scan_section(self._dump, piece, file)
                return None

    def _take_allocations(self, piece: AllocationPiece | LateError, suffix: str) -> None:
        if isinstance(piece, LateError):
            self._late = self._late or piece
            return
        self._dump.features |= piece.features
        note(self._dump.notices, piece.notices)
        self.rows += piece.rows
        self._look_at_style(piece)
        if piece.orphans and not self._headers:
            self._blame(Fault(Rule.FIRST_VALUE, _value_first(piece)))
        if piece.headers and piece.first != self._headers:
            self._blame(Fault(Rule.HEADERS, _out_of_order(piece.first, self._headers)))
        self._headers += piece.headers
        if piece.headers:
            self._last_size, self._last_has_values = piece.last_size, piece.last_has_values
        elif piece.orphans:
            self._last_has_values = True
        if piece.orphans and self._allocation_sizes:
            self._check_orphans(piece)
        self._blame(*piece.faults)
        if self._faults.keys().isdisjoint(_AHEAD_OF_VALUES) and piece.values is not None:
            self._take_values(piece, piece.values, suffix)
        self._allocation_sizes.extend(piece.sizes)
        self._allocation_colors.extend(piece.colors)
        self._dump.memory |= piece.memory

    def _look_at_style(self, piece: AllocationPiece) -> None:
        """Look for lines that another release prints than those before; `_end_section` refuses them."""
        if self._ends_in_reuse and piece.orphans:
            self._values_after_reuse = True
        if piece.headers or piece.orphans:
            self._ends_in_reuse = piece.ends_in_reuse
        if piece.value_count:
            self._styles.add(piece.style)
        if not piece.style and any(notice.kind == "unknown-line" for notice in piece.notices):
            self._unknown_lines = True

    def _check_orphans(self, piece: AllocationPiece) -> None:
        """Check the bounds of the values that belong to the last allocation of the piece before."""
        if piece.orphan_places is not None:
            ids, offsets, sizes = piece.orphan_places
        else:
            assert piece.values is not None  # it has them where `orphan_places` has not
            orphans = piece.values.slice(0, piece.orphans)
            ids, offsets, sizes = (as_list(orphans[name]) for name in ("id", "offset", "size"))
        faults: list[Fault] = []
        with fault_of(Rule.BOUNDS, faults):
            last = len(self._allocation_sizes) - 1
            check_bounds(ids, offsets, sizes, [last] * len(ids), self._allocation_sizes)
        self._blame(*faults)

    def _take_values(self, piece: AllocationPiece, values: pa.Table, suffix: str) -> None:
        last = len(self._allocation_sizes) - 1
        if piece.orphans:
            owners = values["allocation"].combine_chunks().to_numpy(zero_copy_only=False).copy()
            owners[: piece.orphans] = last
            values = values.set_column(
                values.schema.get_field_index("allocation"), "allocation", pa.array(owners, pa.int64())
            )
        self._reuse += [line if line.header >= 0 else line._replace(header=last) for line in piece.reuse]
        if Rule.UNIQUE in self._faults:
            # The ids are all that is asked for yet: a file may repeat one line for gigabytes.
            values = values.select(["id"])
            self._value_pieces = [piece.select(["id"]) for piece in self._value_pieces]
        self._allocated += sum(piece.sizes)
        self._value_bytes += piece.value_bytes
        self._value_pieces.append(values)
        if piece.used is not None and not self._faults:
            in_order = values.take(pc.sort_indices(values["id"]))
            batch = Batch()
            lines, sources = value_lines(in_order), self._sources_of(in_order)
            batch.add_values(self._run_no, *lines, piece.used, sources)
            self._add_parameters(lines, piece.used, sources)
            write_tables(batch_tables(batch), self._directory, suffix)
            self.rows += batch.size

    def _note_colors(self) -> None:
        """Note, once an allocation, values of another color than their allocation's."""
        assert self._values is not None
        number: dict[int, int] = {}  # colors have up to 40 digits

        def numbers(colors: Iterable[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
            return np.array([number.setdefault(color, len(number)) for color in colors], np.int64)

        printed = self._values["color"].combine_chunks()
        distinct = numbers(int(color or 0) for color in printed.dictionary.to_pylist())
        of_allocations = numbers(self._allocation_colors)
        if len(number) < 2:
            return
        owners = self._values["allocation"].to_numpy()
        is_printed = pc.not_equal(printed.dictionary, "").to_numpy(zero_copy_only=False)[printed.indices]
        rows = np.flatnonzero(is_printed & (distinct[printed.indices] != of_allocations[owners]))
        told = {(line.header, int(line.id)) for line in self._reuse}
        if told:
            pairs = zip(owners[rows].tolist(), self._ids[rows].tolist(), strict=True)
            rows = rows[[pair not in told for pair in pairs]]
        for owner, first in zip(*np.unique(owners[rows], return_index=True), strict=True):
            row = int(rows[first])
            color = printed[row].as_py()
            of_allocation = self._allocation_colors[owner]
            notice = note_color(int(self._ids[row]), color, of_allocation, self._files["primary"])
            note(self._dump.notices, [notice])

    def _blame(self, *faults: Fault) -> None:
        for fault in faults:
            known = self._faults.get(fault.rule)
            if known is None or fault.value < known.value:
                self._faults[fault.rule] = fault

    def _require(self, rule: Rule) -> None:
        """Raise the fault of a rule; those of the rules before were asked for already."""
        if rule in self._faults:
            raise self._faults[rule].error

    def _finish_values(self) -> None:
        """Put all value lines in order of their ids, once the allocations are complete."""
        if self._values is not None or not self._faults.keys().isdisjoint(_AHEAD_OF_VALUES):
            return
        values = self._values = sorted_by_id(self._value_pieces)
        release_freed()
        self._ids = values["id"].to_numpy()
        twice = np.flatnonzero(self._ids[1:] == self._ids[:-1])
        if len(twice):
            faults: list[Fault] = []
            with fault_of(Rule.UNIQUE, faults):
                check_unique(self._ids[twice[0] : twice[0] + 2].tolist())
            self._faults[Rule.UNIQUE] = faults[0]
            return
        shapes = values["shape"].combine_chunks()
        self._is_tuple = np.zeros(len(values), np.bool_)
        if len(shapes):
            tuples = pc.starts_with(shapes.dictionary, "(").to_numpy(zero_copy_only=False)
            self._is_tuple = tuples[shapes.indices.to_numpy()]
            self._dump.tiled = bool(pc.any(pc.match_substring(shapes.dictionary, "T(")).as_py())

    def _check_values(self) -> None:
        """Look at the rules of allocations and values, in their order."""
        dump = self._dump
        self._finish_values()
        check_told_once(dump, self._files)
        if dump.total is None:
            size = self._last_size if self._headers else None
            check_last_allocation(self._headers - 1, size, self._last_has_values)
        for rule in (Rule.HEADERS, Rule.FIRST_VALUE, Rule.BOUNDS, Rule.UNIQUE):
            self._require(rule)
        if self._reuse and self._values is not None:
            check_reuse(self._reuse, self._places([int(line.id) for line in self._reuse]))
            self._small.add_reuse(self._run_no, [(line.header, line) for line in self._reuse])
        check_size_sum(self._value_bytes)
        check_total(self._allocated, dump.total)
        self._note_colors()
        self._require(Rule.FIRST_POSITION)
        of_values = self._files.get("values", self._files["primary"])
        note(dump.notices, note_mixed(dump.features, of_values))
        if features.USED_VALUES in dump.features:
            if Rule.SAME_VALUES in self._faults or self._used != len(self._ids):
                assert self._values is not None  # no rule ahead of the values is broken
                require_same_values(
                    self._values, of_values, START["values" if "values" in self._files else "primary"]
                )
            check_texts(self._without_text[:1], dump.features)

    def _places(self, ids: list[int]) -> dict[int, tuple[str, str, int]]:
        """Return instruction, index and allocation of some values."""
        assert self._values is not None
        wanted = [id_ for id_ in ids if id_ < LIMIT]
        rows = [row for row in np.searchsorted(self._ids, wanted).tolist() if row < len(self._ids)]
        found = self._values.take(pa.array(rows, pa.int64()))
        columns = (as_list(found[name]) for name in ("id", "name", "index", "allocation"))
        return {id_: (name, index, owner) for id_, name, index, owner in zip(*columns, strict=True)}

    def _write_values_alone(self) -> None:
        """Write the rows of `values` of a dump that has no section on them."""
        assert self._values is not None
        faults: list[Fault] = []
        for start in range(0, len(self._values), _VALUES_AT_ONCE):
            values = self._values.slice(start, _VALUES_AT_ONCE)
            lines = value_lines(values)
            with fault_of(Rule.COLORS, faults):
                check_colors(lines.rows)
            self._blame(*faults)
            if faults:
                return
            batch = Batch()
            sources = self._sources_of(values)
            batch.add_values(self._run_no, *lines, None, sources)
            self._add_parameters(lines, None, sources)
            write_tables(batch_tables(batch), self._directory, f"-{start // _VALUES_AT_ONCE:05d}")
            self.rows += batch.size

    def _add_parameters(
        self, lines: ValueLines, used: UsedScan | None, sources: Mapping[str, Source]
    ) -> None:
        self._parameters.update(parameter_ids(lines.ids, (row[1] for row in lines.rows), used, sources))

    def _sources_of(self, values: pa.Table) -> dict[str, Source]:
        """Return what the HLO module tells of the instructions of some values."""
        known = self._beside.sources
        if not known:
            return {}
        return {name: known[name] for name in values["name"].to_pylist() if name in known}

    def _slice_for(self, text: str) -> pa.Table | None:
        """Return the value lines of the blocks that `text` holds; None if they are not the next ones."""
        ends = first_and_last(text)
        if self._faults or self._values is None or ends is None:
            return None
        low = self._used
        high = int(np.searchsorted(self._ids, min(ends[1], LIMIT - 1), "right"))
        if low >= len(self._ids) or self._ids[low] != ends[0] or high <= low:
            self._blame(_DIFFERENT_VALUES)
            return None
        self._used = high
        return compact(self._values.slice(low, high - low))

    def _take_used(self, piece: UsedPiece | LateError) -> None:
        if isinstance(piece, LateError):
            self._late = self._late or piece
            return
        self._dump.features |= piece.features
        note(self._dump.notices, piece.notices)
        self._without_text += piece.without_text
        self._parameters.update(piece.parameters)
        self._blame(*piece.faults)
        self.rows += piece.rows

    def _take_sequence(self, piece: SequencePiece | LateError, first: _FirstSlot | None, file: str) -> None:
        if first is not None and int(first.number) != self._slots:
            name = (first.number, first.instruction)
            self._late = self._late or slot_out_of_order(name, self._slots, first.line, file)
        if isinstance(piece, LateError):
            self._late = self._late or piece
            return
        self._slots += piece.slots
        note(self._dump.notices, piece.notices)
        self.rows += piece.rows

    def _take_ranges(self, piece: RangePiece) -> None:
        self._too_large |= {self._ranges + row: pair for row, pair in piece.too_large.items()}
        self._ranges += len(piece.table)
        self._range_pieces.append(piece.table)
        note(self._dump.notices, piece.notices)

    def _finish_ranges(self) -> None:
        """Join the ranges with their values, measure the live bytes and write the rows."""
        dump, values = self._dump, self._values
        dump.resident_peak = resident_peak(dump.memory)
        if values is None:
            return
        if features.LIVE_RANGE not in dump.features or dump.schedule_length is None:
            self._measure_occupancy(values, np.full(len(values), NOT_RANGED), None)
            return
        for _ in range(self._in_flight):
            self._pool.submit(rest)
        file = self._files.get("live_range", self._files["primary"])
        check_sequence_length(dump.schedule_length, self._slots, file)
        # What is needed no more goes first: the join takes most memory.
        values = self._values = values.select(["id", "allocation", "name", "index", "size", "offset"])
        table = joined(self._range_pieces)
        starts, ends = table["start"].to_numpy(), table["end"].to_numpy()
        wrong = np.flatnonzero((starts > ends) | (ends > dump.schedule_length))
        if len(wrong):
            row = table.slice(int(wrong[0]), 1).to_pylist()[0]
            start, end = self._too_large.get(int(wrong[0]), (row["start"], row["end"]))
            check_range(row["name"], row["index"], start, end, dump.schedule_length, file)
        rows = rows_in(table, values)
        values = self._values = values.drop_columns(["name", "index"])
        release_freed()
        ranged = rows.drop_null()
        if len(ranged) < len(table) or len(np.unique(ranged.to_numpy())) < len(ranged):
            keys = [as_list(table[name]) for name in ("name", "index")]
            check_unique_ranges(zip(*keys, strict=True))
            absent = pc.is_null(rows).to_pylist()
            missing = (
                f"{name}{index}" for name, index, is_absent in zip(*keys, absent, strict=True) if is_absent
            )
            note(dump.notices, (note_missing_value(key, file) for key in missing))
        present = pc.is_valid(rows).to_numpy(zero_copy_only=False)

        allocation, offset, size = (
            plain_array(values[name].take(ranged).to_numpy()) for name in ("allocation", "offset", "size")
        )
        intervals = Intervals(
            allocation, offset, size, plain_array(starts[present]), plain_array(ends[present])
        )
        del allocation, offset, size
        ids = values["id"].take(rows)
        values = self._values = values.drop_columns(["offset"])
        dump.liveness = measure(intervals, dump.schedule_length)
        assert self._is_tuple is not None  # it comes with the values
        dump.resident_peak = resident_peak(
            dump.memory,
            intervals,
            self._is_tuple[ranged.to_numpy()].tolist(),
            dump.liveness,
            dump.schedule_length,
        )
        last_slots = np.full(len(values), NOT_RANGED)
        last_slots[ranged.to_numpy()] = ends[present]
        self._measure_occupancy(values, last_slots, intervals)
        del values, intervals, last_slots
        self._values = None
        note(dump.notices, note_overlaps(dump.liveness, self._ids[ranged.to_numpy()], file))
        if dump.peak is not None and dump.peak.time is not None:
            at_peak = table.filter(pa.array((starts <= dump.peak.time) & (ends >= dump.peak.time)))
            live = list(zip(at_peak["name"].to_pylist(), at_peak["index"].to_pylist(), strict=True))
            check_peak_list(dump, live, file)
        shares = [_spread(column, present) for column in dump.liveness.columns()]
        matcher = PeakMatcher(dump.peak)
        for start in range(0, len(table), _RANGES_AT_ONCE):
            batch = Batch()
            columns = [as_list(one) for one in table.slice(start, _RANGES_AT_ONCE).columns]
            batch.add_ranges(
                self._run_no,
                ids.slice(start, _RANGES_AT_ONCE).to_pylist(),
                columns,
                matcher.match(*columns),
                [column.slice(start, _RANGES_AT_ONCE).to_pylist() for column in shares],
            )
            write_tables(batch_tables(batch), self._directory, f"-{start // _RANGES_AT_ONCE:05d}")
            self.rows += batch.size

    def _measure_occupancy(
        self, values: pa.Table, ends: np.ndarray[Any, np.dtype[np.int64]], intervals: Intervals | None
    ) -> None:
        ids, owners, sizes = (_numbers(values[name].to_numpy()) for name in ("id", "allocation", "size"))
        placed = Placed(ids, owners, sizes, _numbers(ends), self._parameters)
        self._held = occupancies(self._headers, placed, intervals, self._dump.liveness)

    def _complete_allocations(self) -> None:
        """Fill in what the allocations hold, which is known only when all values are."""
        for name in os.listdir(self._directory):
            if not name.startswith("allocations"):
                continue
            table = pq.read_table(f"{self._directory}/{name}")
            facts = (table[column].to_pylist() for column in _ALLOCATION_FACTS)
            held = [
                self._held[index].of(is_parameter=parameter is not None, leaves=leaves)
                for index, parameter, leaves in zip(*facts, strict=True)
            ]
            for column, cells in zip(Occupancy._fields, zip(*held, strict=True), strict=True):
                place = table.schema.get_field_index(column)
                table = table.set_column(place, column, pa.array(cells, pa.int64()))
            suffix = name.removeprefix("allocations").removesuffix(".parquet")
            write_tables({"allocations": table}, self._directory, suffix)

    def _write_small_tables(self) -> None:
        if self._dump.tree is not None:
            self._small.add_tree(self._run_no, self._dump.tree)
        self._small.add_siblings(self._run_no, self._beside)
        self._small.add_notices(self._run_no, self._dump.notices)
        write_tables(batch_tables(self._small), self._directory)
        self.rows += self._small.size


def _spread(column: Sequence[int | None], present: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Array:
    """Put the cells of a column at the rows that are present; the others are null."""
    rows = np.cumsum(present) - 1
    return pa.array(column, pa.int64()).take(pa.array(rows, mask=~present))


class InThisProcess(Executor):
    """Run calls at once, for a set that turns out to be large where there are no workers."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Return what the call came to."""
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def stage_large(task: Task, part: str, pool: Executor, in_flight: int) -> Staged:
    """Stage one large set as a part of its own; the same result as `ingest.staging.stage.stage_sets`."""
    unnamed = f"{part}.tmp"
    os.mkdir(unnamed, mode=0o700)
    result = Staged()
    try:
        large = LargeDump(task.run_no, task.dump_set, unnamed, pool, in_flight)
        dump = parse_unless_unfinished(task, result, lambda _: large.stage())
        if dump is not None and not known_already(task, dump, result):
            write_run_tables(unnamed, [run_row(task, dump)], file_rows(task, dump.sha256))
            seal(unnamed, part)
            result.add(Staged(loaded=1, rows=large.rows + 1, part=part))
    except (OSError, BrokenExecutor):
        raise
    except Exception as error:
        return Staged(rejected=[internal(task.dump_set, error)])
    finally:
        shutil.rmtree(unnamed, ignore_errors=True)
    return result


def _numbers(column: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[int]:
    """Yield the numbers of a column; a list of them all would take five times its memory."""
    for start in range(0, len(column), _VALUES_AT_ONCE):
        yield from column[start : start + _VALUES_AT_ONCE].tolist()


def _out_of_order(allocation: int, expected: int) -> DumpError:
    return DumpError(
        "allocation-index",
        f"allocation {allocation} stands where {expected} should; are lines missing or repeated?",
        section="allocations",
        text=f"allocation {allocation}: ",
    )


def _value_first(piece: AllocationPiece) -> DumpError:
    first = piece.values["id"][0] if piece.values is not None else (piece.orphan_places or [[None]])[0][0]
    return DumpError(
        "bad-line",
        "a value comes before the first allocation",
        section="allocations",
        text=f" value: <{first} ",
    )


def _mark_last(pieces: Iterator[Piece]) -> Iterator[tuple[Piece, bool]]:
    """Yield each piece and whether it is the last of the file."""
    piece = next(pieces, None)
    while piece is not None:
        following = next(pieces, None)
        yield piece, following is None
        piece = following


def _started(reader: BlockReader, role: str, file: str) -> Iterator[str]:
    """Pass the blocks on; require the file to begin as its role says."""
    first = True
    for block in reader:
        if first:
            check_start(block, role, file)
            first = False
        yield block
    if first:
        check_start("", role, file)


def _drain(waiting: deque[tuple[Future[Any], Callable[[Any], None]]], leave: int) -> None:
    """Take results in order until no more than `leave` are awaited."""
    while len(waiting) > leave:
        future, take = waiting.popleft()
        take(future.result())
