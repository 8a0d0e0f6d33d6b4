"""Stage one large dump set piece by piece, on all workers, within bounded memory.

The coordinator reads the files in blocks and cuts them at record borders; workers scan the pieces and
write their rows as Parquet at once. Only what the rules need of the whole dump stays in memory, in Arrow
and numpy columns: some 100 bytes a value. The rules and the rows are those of `ingest.dump.parse`.
"""

from __future__ import annotations

import os
import shutil
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.discover import DumpSet
from ingest.dump import features
from ingest.dump.allocations import ReuseLine, scan_allocations
from ingest.dump.check import (
    SECTIONS_OF,
    check_bounds,
    check_end,
    check_headers,
    check_last_allocation,
    check_magnitude,
    check_numbers,
    check_operands,
    check_peak_list,
    check_range,
    check_same_values,
    check_sections,
    check_sequence_length,
    check_size_sum,
    check_start,
    check_texts,
    check_total,
    check_unique_ranges,
    misplaced,
)
from ingest.dump.live_range import UNAVAILABLE, scan_head, scan_ranges, scan_sequence
from ingest.dump.liveness import Intervals, measure
from ingest.dump.locate import locate
from ingest.dump.notices import note
from ingest.dump.oddities import (
    note_colors,
    note_missing_value,
    note_mixed,
    note_overlaps,
)
from ingest.dump.parse import START, scan_section
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Notice
from ingest.dump.sections import Piece, Section, cut
from ingest.dump.source import BlockReader, FileRange, read_range
from ingest.dump.used_values import scan_used_values
from ingest.errors import DumpError
from ingest.store.batch import Batch, PeakMatcher, write_tables
from ingest.store.memory import release_freed
from ingest.store.siblings import NO_SIBLINGS, Source
from ingest.store.stage import (
    Staged,
    Task,
    file_rows,
    known_already,
    parse_unless_unfinished,
    read_beside,
    run_row,
    text_files,
    write_run_tables,
)

LARGE_BYTES: Final = 48 << 20
"""Sets with more text than this are staged in pieces; parsed whole they would take ten times as much."""

_RANGES_AT_ONCE: Final = 100_000
_VALUES_AT_ONCE: Final = 50_000


class _AllocationPiece(NamedTuple):
    """What the coordinator keeps of a piece of the allocations section."""

    first: int
    sizes: array[int]
    last_color: int
    orphans: int
    """Value lines before the first header: they belong to the last allocation of the piece before."""
    orphan_reuse: list[ReuseLine]
    values: pa.Table
    features: set[str]
    notices: list[Notice]
    rows: int


class _UsedPiece(NamedTuple):
    features: set[str]
    notices: list[Notice]
    rows: int
    without_text: list[tuple[str, ...]]
    """The first block without instruction text, if there is one."""


class _ValueLines(NamedTuple):
    """Value lines, column-wise; `rows` are as `ValueLine`."""

    rows: list[tuple[str, ...]]
    ids: list[int]
    allocation_of: list[int]
    offsets: list[int]
    sizes: list[int]


class _RangePiece(NamedTuple):
    table: pa.Table
    notices: list[Notice]


class LargeDump:
    """One large dump set on its way into a part directory."""

    def __init__(
        self, run_no: int, dump_set: DumpSet, directory: str, pool: Executor, in_flight: int
    ) -> None:
        self.rows = 0
        self._run_no = run_no
        self._files: Mapping[str, str] = text_files(dump_set)
        self._dump_set = dump_set
        self._beside = NO_SIBLINGS
        self._directory = directory
        self._pool = pool
        self._in_flight = in_flight
        self._dump = ParsedDump()
        self._allocation_sizes = array("q")
        self._allocated = 0
        self._last_color = 0
        self._without_text: list[tuple[str, ...]] = []
        self._small = Batch()
        self._value_pieces: list[pa.Table] = []
        self._values: pa.Table | None = None
        self._ids = np.empty(0, np.int64)
        self._used = 0
        self._slots = 0
        self._range_pieces: list[pa.Table] = []
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
            if "values" in self._files or "live_range" in self._files:
                dump.features.add(features.SPLIT_FILES)
            of_values = self._files.get("values", self._files["primary"])
            note(dump.notices, note_mixed(dump.features, of_values))
            self._finish_values()
            if features.USED_VALUES in dump.features and self._used != len(self._ids):
                raise self._mismatch(self._used)
            check_texts(self._without_text[:1], dump.features)
            if dump.total is None:
                self._check_last_allocation()
            check_total(self._allocated, dump.total)
            check_sections(dump, self._files)
            if features.USED_VALUES not in dump.features:
                self._write_values_alone()
            self._finish_ranges()
            check_numbers(dump)
            self._write_small_tables()
            return dump
        except DumpError as error:
            locate(error, list(self._files.values()))
            raise

    def _stage_file(self, role: str, file: str) -> None:
        reader = BlockReader(file)
        # Pieces of one section are scanned in parallel; a section starts when the one before is complete.
        waiting: deque[tuple[Future[Any], Callable[[Any], None]]] = deque()
        section = START[role]
        last = Piece(section, "", 1)
        offset = 0
        for piece in cut(_started(reader, role, file), section):
            last = piece
            size = len(piece.text) if piece.text.isascii() else len(piece.text.encode())
            # A worker reads its piece itself: through a pipe it took a fifth of the whole time.
            source = FileRange(file, offset, size) if reader.is_verbatim else piece.text
            offset += size
            if piece.section is not section:
                _drain(waiting, 0)
                section = piece.section
                if len(self._files) > 1 and section not in SECTIONS_OF[role]:
                    raise misplaced(section, file, piece.line)
            submitted = self._submit(piece, source, file)
            if submitted is not None:
                waiting.append(submitted)
                _drain(waiting, self._in_flight)
        _drain(waiting, 0)
        check_end(last.text, role, file, last.line + last.text.count("\n"), last.section)
        self._dump.sha256[role] = reader.sha256
        self._dump.text_bytes += reader.text_bytes
        note(self._dump.notices, reader.notices)

    def _submit(
        self, piece: Piece, source: _Text, file: str
    ) -> tuple[Future[Any], Callable[[Any], None]] | None:
        """Hand a piece to a worker, or scan it here when it is small by nature."""
        section, text, line = piece
        suffix = f"-{self._piece:05d}"
        self._piece += 1
        where = (self._run_no, self._directory, suffix)
        match section:
            case Section.ALLOCATIONS:
                facts = self._beside.allocation_facts()
                return (
                    self._pool.submit(_scan_allocations, source, line, file, facts, where),
                    self._take_allocations,
                )
            case Section.VALUES:
                self._finish_values()
                self._dump.sections.add(section)
                self._dump.features.add(features.USED_VALUES)
                values = self._slice_for(text)
                if values is None:
                    return None
                sources = self._sources_of(values)
                return (
                    self._pool.submit(_stage_used, source, line, file, values, sources, where),
                    self._take_used,
                )
            case Section.SEQUENCE if not text.startswith(UNAVAILABLE):
                self._dump.sections.add(section)
                if text.startswith("HloLiveRange"):
                    self._dump.features.add(features.LIVE_RANGE)
                    self._dump.schedule_length, text = scan_head(text, line, file)
                    source = text
                    line += 2
                first, self._slots = self._slots, self._slots + text.count("\n")
                return self._pool.submit(
                    _stage_sequence, source, first, line, file, where
                ), self._take_sequence
            case Section.RANGES:
                self._dump.sections.add(section)
                return self._pool.submit(_scan_ranges, source, line, file), self._take_ranges
            case _:
                scan_section(self._dump, piece, file)
                return None

    def _take_allocations(self, piece: _AllocationPiece) -> None:
        if piece.first != len(self._allocation_sizes) and piece.sizes:
            raise DumpError(
                "allocation-index",
                f"allocation {piece.first} stands where {len(self._allocation_sizes)} should;"
                " are lines missing or repeated?",
                section="allocations",
                text=f"allocation {piece.first}: ",
            )
        values = piece.values
        if piece.orphans:
            last = len(self._allocation_sizes) - 1
            if last < 0:
                raise DumpError(
                    "bad-line",
                    "a value comes before the first allocation",
                    section="allocations",
                    text=f" value: <{values['id'][0]} ",
                )
            orphans = values.slice(0, piece.orphans)
            check_bounds(
                orphans["id"].to_pylist(),
                orphans["offset"].to_pylist(),
                orphans["size"].to_pylist(),
                [last] * piece.orphans,
                self._allocation_sizes,
            )
            owners = values["allocation"].combine_chunks().to_numpy(zero_copy_only=False).copy()
            owners[: piece.orphans] = last
            values = values.set_column(
                values.schema.get_field_index("allocation"), "allocation", pa.array(owners, pa.int64())
            )
            self._note_orphan_color(orphans, piece.orphan_reuse)
            self._small.add_reuse(self._run_no, [(last, line) for line in piece.orphan_reuse])
        if piece.sizes:
            self._last_color = piece.last_color
        self._allocation_sizes.extend(piece.sizes)
        self._allocated += sum(piece.sizes)
        self._value_pieces.append(values)
        self._dump.features |= piece.features
        note(self._dump.notices, piece.notices)
        self.rows += piece.rows

    def _note_orphan_color(self, orphans: pa.Table, reuse: list[ReuseLine]) -> None:
        """Note the first value line of another color than the allocation that began a piece earlier."""
        told = {line.id for line in reuse}
        ids, colors = orphans["id"].to_pylist(), orphans["color"].to_pylist()
        for id_, color in zip(ids, colors, strict=True):
            if color and int(color) != self._last_color and str(id_) not in told:
                message = f"value {id_} has color {color}, its allocation has {self._last_color}"
                self._dump.notices.append(Notice(self._files["primary"], None, "color-differs", message))
                return

    def _finish_values(self) -> None:
        """Put all value lines in order of their ids, once the allocations are complete."""
        if self._values is not None:
            return
        self._values = _sorted_by_id(self._value_pieces)
        release_freed()
        self._ids = self._values["id"].to_numpy()
        sizes = self._values["size"].to_numpy()
        # In two halves: the sum itself may not fit 64 bits.
        check_size_sum((int((sizes >> 32).sum()) << 32) + int((sizes & 0xFFFFFFFF).sum()))
        twice = np.flatnonzero(self._ids[1:] == self._ids[:-1])
        if len(twice):
            raise DumpError(
                "duplicate-value",
                f"value {self._ids[twice[0]]} is listed twice",
                section="allocations",
                text=f" value: <{self._ids[twice[0]]} ",
            )
        shapes = self._values["shape"].combine_chunks()
        if len(shapes):
            self._dump.tiled = bool(pc.any(pc.match_substring(shapes.dictionary, "T(")).as_py())

    def _write_values_alone(self) -> None:
        """Write the rows of `values` of a dump that has no section on them."""
        assert self._values is not None
        for start in range(0, len(self._values), _VALUES_AT_ONCE):
            values = self._values.slice(start, _VALUES_AT_ONCE)
            batch = Batch()
            lines = _value_lines(values)
            batch.add_values(self._run_no, *lines, None, self._sources_of(values))
            write_tables(batch.tables(), self._directory, f"-{start // _VALUES_AT_ONCE:05d}")
            self.rows += batch.size

    def _sources_of(self, values: pa.Table) -> dict[str, Source]:
        """Return what the HLO module tells of the instructions of some values."""
        known = self._beside.sources
        if not known:
            return {}
        return {name: known[name] for name in values["name"].to_pylist() if name in known}

    def _check_last_allocation(self) -> None:
        """Refuse a primary file that is cut off after a header line."""
        assert self._values is not None
        last = len(self._allocation_sizes) - 1
        has_values = bool(pc.any(pc.equal(self._values["allocation"], last)).as_py())
        size = self._allocation_sizes[last] if last >= 0 else None
        check_last_allocation(last, size, has_values)

    def _slice_for(self, text: str) -> pa.Table | None:
        """Return the value lines of the blocks that `text` holds, by the ids of its first and last block."""
        start = text.find("<")
        last = text.rfind("<", 0, text.rfind("\n positions:\n") + 1)
        if start < 0 or last < 0:
            self._require_empty(text)
            return None
        low, high = self._used, int(np.searchsorted(self._ids, _id_at(text, last), "right"))
        if low >= len(self._ids) or self._ids[low] != _id_at(text, start):
            raise self._mismatch(low)
        self._used = high
        assert self._values is not None
        return _compact(self._values.slice(low, high - low))

    def _require_empty(self, text: str) -> None:
        if text.removeprefix("Used values:\n").strip("\n"):
            raise DumpError(
                "bad-line",
                "expected a value's block, <id name> and ' positions:'; is the file damaged?",
                section="values",
                text=text[:200].split("\n", 1)[0],
            )

    def _mismatch(self, row: int) -> DumpError:
        value = f"value {self._ids[row]}" if row < len(self._ids) else "a value after the last one"
        return DumpError(
            "value-mismatch",
            f"{value} is not listed both in an allocation and under Used values, in order",
            section="values",
            text=f"<{self._ids[row]} " if row < len(self._ids) else "Used values:",
        )

    def _take_used(self, piece: _UsedPiece) -> None:
        self._dump.features |= piece.features
        note(self._dump.notices, piece.notices)
        self._without_text += piece.without_text
        self.rows += piece.rows

    def _take_sequence(self, piece: _UsedPiece) -> None:
        note(self._dump.notices, piece.notices)
        self.rows += piece.rows

    def _take_ranges(self, piece: _RangePiece) -> None:
        self._range_pieces.append(piece.table)
        note(self._dump.notices, piece.notices)

    def _finish_ranges(self) -> None:
        """Join the ranges with their values, measure the live bytes and write the rows."""
        dump, values = self._dump, self._values
        if features.LIVE_RANGE not in dump.features or dump.schedule_length is None or values is None:
            return
        for _ in range(self._in_flight):
            self._pool.submit(_rest)
        file = self._files.get("live_range", self._files["primary"])
        check_sequence_length(dump.schedule_length, self._slots, file)
        table = pa.concat_tables(self._range_pieces).combine_chunks()
        self._range_pieces = []
        release_freed()
        starts, ends = table["start"].to_numpy(), table["end"].to_numpy()
        wrong = np.flatnonzero((starts > ends) | (ends > dump.schedule_length))
        if len(wrong):
            row = table.slice(int(wrong[0]), 1).to_pylist()[0]
            check_range(row["name"], row["index"], row["start"], row["end"], dump.schedule_length, file)
        keys = _range_keys(values)
        # From here on the names are not needed, and the join takes as much memory again as they do.
        values = self._values = values.select(["id", "allocation", "offset", "size"])
        release_freed()
        wanted = pc.binary_join_element_wise(table["name"], table["index"], "").combine_chunks()
        if pc.count_distinct(wanted).as_py() != len(wanted):
            check_unique_ranges(zip(table["name"].to_pylist(), table["index"].to_pylist(), strict=True))
        rows = _index_in(wanted, keys)
        for key in wanted.filter(pc.is_null(rows)).to_pylist():
            note(dump.notices, [note_missing_value(key, file)])
        ranged = rows.drop_null()
        present = pc.is_valid(rows).to_numpy(zero_copy_only=False)
        del keys, wanted
        release_freed()

        def column(name: str) -> array[int]:
            return _array(values[name].take(ranged).to_numpy())

        dump.liveness = measure(
            Intervals(
                column("allocation"),
                column("offset"),
                column("size"),
                _array(starts[present]),
                _array(ends[present]),
            ),
            dump.schedule_length,
        )
        ids = values["id"].take(rows)
        note(dump.notices, note_overlaps(dump.liveness, self._ids[ranged.to_numpy()], file))
        if dump.peak is not None and dump.peak.time is not None:
            at_peak = table.filter(pa.array((starts <= dump.peak.time) & (ends >= dump.peak.time)))
            live = list(zip(at_peak["name"].to_pylist(), at_peak["index"].to_pylist(), strict=True))
            check_peak_list(dump, live, file)
        handover = np.zeros(len(table), np.int64)
        handover[present] = dump.liveness.handover
        handed = pa.array(handover, mask=~present)
        matcher = PeakMatcher(dump.peak)
        for start in range(0, len(table), _RANGES_AT_ONCE):
            batch = Batch()
            columns = [_as_list(one) for one in table.slice(start, _RANGES_AT_ONCE).columns]
            batch.add_ranges(
                self._run_no,
                ids.slice(start, _RANGES_AT_ONCE).to_pylist(),
                columns,
                handed.slice(start, _RANGES_AT_ONCE).to_pylist(),
                matcher.match(*columns),
            )
            write_tables(batch.tables(), self._directory, f"-{start // _RANGES_AT_ONCE:05d}")
            self.rows += batch.size

    def _write_small_tables(self) -> None:
        if self._dump.tree is not None:
            self._small.add_tree(self._run_no, self._dump.tree)
        self._small.add_siblings(self._run_no, self._beside)
        self._small.add_notices(self._run_no, self._dump.notices)
        write_tables(self._small.tables(), self._directory)
        self.rows += self._small.size


def is_large(dump_set: DumpSet) -> bool:
    """Tell whether a set is to be staged in pieces."""
    return sum(member.size for member in dump_set.members) >= LARGE_BYTES


def stage_large(task: Task, part: str, pool: Executor, in_flight: int) -> Staged:
    """Stage one large set as a part of its own; the same result as `ingest.store.stage.stage_sets`."""
    unnamed = f"{part}.tmp"
    os.mkdir(unnamed, mode=0o700)

    def parse(_: DumpSet) -> ParsedDump:
        return large.stage()

    large = LargeDump(task.run_no, task.dump_set, unnamed, pool, in_flight)
    result = Staged()
    dump = parse_unless_unfinished(task, result, parse)
    if dump is not None and not known_already(task, dump, result):
        write_run_tables(unnamed, [run_row(task, dump)], file_rows(task, dump.sha256))
        os.rename(unnamed, part)
        result.part, result.loaded, result.rows = part, 1, large.rows + 1
    else:
        shutil.rmtree(unnamed)
    return result


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


def _id_at(text: str, at: int) -> int:
    end = text.find(" ", at)
    digits = text[at + 1 : end]
    if not digits.isdecimal() or len(digits) > 19:
        raise DumpError(
            "bad-line", "expected <id name>; is the file damaged?", section="values", text=text[at : at + 200]
        )
    return int(digits)


def _sorted_by_id(pieces: list[pa.Table]) -> pa.Table:
    """Put the value lines of all pieces together; column by column, so as to hold little twice.

    The list is emptied.
    """
    chunks = {name: [piece[name].chunks for piece in pieces] for name in pieces[0].column_names}
    pieces.clear()
    order = None
    columns = {}
    for name in list(chunks):
        column = pa.chunked_array([chunk for piece in chunks.pop(name) for chunk in piece])
        if order is None:  # the ids come first
            order = pc.sort_indices(column)
        columns[name] = column.unify_dictionaries().combine_chunks().take(order)
    return pa.table(columns)


def _range_keys(values: pa.Table) -> pa.Array:
    """Return the name and index of each value as a live range prints them."""
    index = values["index"].combine_chunks()
    texts = pa.array([text or "{}" for text in index.dictionary.to_pylist()], pa.string())
    index = pa.DictionaryArray.from_arrays(index.indices, texts).cast(pa.string())
    return pc.binary_join_element_wise(values["name"].combine_chunks(), index, "")


def _index_in(wanted: pa.Array, keys: pa.Array) -> pa.Array:
    """Return the row of each wanted text in `keys`, null for none.

    It looks up texts of like length at a time: a table of them all takes more memory than anything else.
    """
    rows = np.full(len(wanted), -1, np.int64)
    parts = [pc.binary_length(texts).to_numpy() % 8 for texts in (wanted, keys)]
    for part in range(8):
        of_wanted, of_keys = (np.flatnonzero(lengths == part) for lengths in parts)
        found = pc.index_in(wanted.take(pa.array(of_wanted)), value_set=keys.take(pa.array(of_keys)))
        is_found = found.is_valid().to_numpy(zero_copy_only=False)
        rows[of_wanted[is_found]] = of_keys[found.drop_null().to_numpy()]
    return pa.array(rows, mask=rows < 0)


def _as_list(column: pa.ChunkedArray) -> list[Any]:
    """Return a column without nulls as `to_pylist` does, in a tenth of its time."""
    array = column.combine_chunks()
    if pa.types.is_dictionary(array.type):
        texts = array.dictionary.to_pylist()
        return [texts[number] for number in array.indices.to_numpy().tolist()]
    return list(array.to_numpy(zero_copy_only=False).tolist())


def _compact(table: pa.Table) -> pa.Table:
    """Return a copy of a slice without what lies outside of it: pickled, a slice is as large as the whole."""
    columns = []
    for column in table.take(pa.array(range(len(table)))).columns:
        is_text = pa.types.is_dictionary(column.type)
        columns.append(column.cast(pa.string()).dictionary_encode() if is_text else column)
    return pa.table(columns, names=table.column_names)


def _array(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> array[int]:
    """Return a plain array: indexing one is as fast as a list, at a fifth of its memory."""
    result = array("q")
    result.frombytes(np.ascontiguousarray(numbers, np.int64).tobytes())
    return result


_Where = tuple[int, str, str]
"""Run number, part directory, suffix of the piece's files."""
_Text = str | FileRange
"""Text of a piece, or where a worker finds it."""


def _read(text: _Text) -> str:
    return text if isinstance(text, str) else read_range(text)


def _scan_allocations(
    text: _Text, line: int, file: str, facts: Mapping[int, tuple[bool, bool]], where: _Where
) -> _AllocationPiece:
    """Scan a piece of the allocations section; write its allocations, return its value lines."""
    run_no, directory, suffix = where
    scan = scan_allocations(_read(text), line, file)
    if scan.used:
        raise DumpError(
            "too-large",
            f"dumps of TF 1.15 are read up to {LARGE_BYTES >> 20} MiB",
            file=file,
            section="allocations",
        )
    first = scan.headers[0].allocation if scan.headers else 0
    check_headers(scan.headers, first, file)
    owners = [-1] * scan.orphans + [
        header.allocation for header in scan.headers for _ in range(header.values)
    ]
    columns = list(zip(*scan.values, strict=True)) or [()] * 8
    ids, sizes, offsets = (list(map(int, columns[place])) for place in (0, 5, 6))
    allocation_sizes = array("q", (header.size for header in scan.headers))
    check_bounds(
        ids[scan.orphans :],
        offsets[scan.orphans :],
        sizes[scan.orphans :],
        [owner - first for owner in owners[scan.orphans :]],
        allocation_sizes,
    )
    check_magnitude("id", "allocations", ids)
    check_magnitude("size", "allocations", sizes)
    check_magnitude("offset", "allocations", offsets)
    batch = Batch()
    batch.add_allocations(run_no, scan.headers, facts)
    of_piece = [line for line in scan.reuse if line.header >= 0]
    batch.add_reuse(run_no, [(scan.headers[line.header].allocation, line) for line in of_piece])
    write_tables(batch.tables(), directory, suffix)
    colors = [header.attributes.color for header in scan.headers]
    scan.notices.extend(
        note_colors(
            scan.values[scan.orphans :],
            [owner - first for owner in owners[scan.orphans :]],
            colors,
            of_piece,
            file,
        )
    )
    values = pa.table(
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
    return _AllocationPiece(
        first,
        allocation_sizes,
        colors[-1] if colors else 0,
        scan.orphans,
        [line for line in scan.reuse if line.header < 0],
        values,
        scan.features,
        scan.notices,
        batch.size,
    )


def _stage_used(
    text: _Text, line: int, file: str, values: pa.Table, sources: Mapping[str, Source], where: _Where
) -> _UsedPiece:
    """Scan a piece of `Used values:` and write its values, positions and uses."""
    run_no, directory, suffix = where
    used = scan_used_values(_read(text), line, file)
    lines = _value_lines(values)
    check_same_values(lines.rows, used.blocks)
    check_operands(used.uses)
    batch = Batch()
    batch.add_values(run_no, *lines, used, sources)
    write_tables(batch.tables(), directory, suffix)
    without_text = [block for block in used.blocks if not block[7]][:1]
    return _UsedPiece(used.features, used.notices, batch.size, without_text)


def _rest() -> None:
    """Give back memory while the coordinator needs most, for long enough that each worker gets a call."""
    release_freed()
    time.sleep(0.02)


def _value_lines(values: pa.Table) -> _ValueLines:
    """Return value lines as they come from the scanner, by id."""
    ids, owners, names, indices, phis, colors, sizes, offsets, shapes = (
        _as_list(column) for column in values.columns
    )
    parts = (map(str, ids), names, indices, phis, colors, map(str, sizes), map(str, offsets), shapes)
    return _ValueLines(list(zip(*parts, strict=True)), ids, owners, offsets, sizes)


def _stage_sequence(text: _Text, first: int, line: int, file: str, where: _Where) -> _UsedPiece:
    """Scan a piece of the instruction sequence and write it."""
    run_no, directory, suffix = where
    notices: list[Notice] = []
    batch = Batch()
    batch.add_schedule(run_no, first, scan_sequence(_read(text), first, line, file, notices))
    write_tables(batch.tables(), directory, suffix)
    return _UsedPiece(set(), notices, batch.size, [])


def _scan_ranges(text: _Text, line: int, file: str) -> _RangePiece:
    """Scan a piece of the live ranges."""
    notices: list[Notice] = []
    columns = list(zip(*scan_ranges(_read(text), line, file, notices), strict=True)) or [()] * 4
    starts, ends = list(map(int, columns[2])), list(map(int, columns[3]))
    check_magnitude("slot", "ranges", starts)
    check_magnitude("slot", "ranges", ends)
    table = pa.table(
        {
            "name": pa.array(columns[0], pa.string()),
            "index": pa.array(columns[1], pa.string()),
            "start": pa.array(starts, pa.int64()),
            "end": pa.array(ends, pa.int64()),
        }
    )
    return _RangePiece(table, notices)
