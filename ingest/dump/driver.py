"""Read a dump set as a stream of pieces, and hold it to the rules: the one way into a dump, small or large.

The driver cuts the files, hands on what a piece must know of those before it, and looks at what only the
whole can show. Where rows are held, and by whom pieces are scanned, is the matter of `ingest.dump.columns`.
Pieces are taken in the order of the stream, so the first thing wrong is what a dump is rejected for; whether
it is rejected does not depend on how it was cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Final

from ingest.dump import features
from ingest.dump.check import (
    check_allocated,
    check_magnitude,
    check_peak_list,
    check_positions_once,
    check_reuse,
    check_same_values,
    check_size_sum,
    check_texts,
    check_total,
    check_tree,
    check_unique,
    check_unique_ranges,
)
from ingest.dump.columns import Columns, Joined, Place, Text
from ingest.dump.completeness import (
    SECTIONS_OF,
    check_end,
    check_last_allocation,
    check_sections,
    check_sequence_length,
    check_start,
    misplaced,
    without_blank_end,
)
from ingest.dump.content import BLOCK_BYTES, BlockReader, FileRange
from ingest.dump.grammar import LIMIT, LINES
from ingest.dump.live_range import (
    RANGES_HEAD,
    UNAVAILABLE,
    scan_head,
    scan_peak,
    scan_tree,
)
from ingest.dump.locate import locate
from ingest.dump.notices import note
from ingest.dump.parsed import ParsedDump
from ingest.dump.pieces import AllocationsBefore, slot_after
from ingest.dump.resident import resident_peak
from ingest.dump.sections import Piece, Section, cut
from ingest.dump.total import note_lines, scan_total, scan_unavailable
from ingest.dump.used_values import last_id
from ingest.dump.warnings import (
    note_blank_lines,
    note_colors,
    note_missing_value,
    note_mixed,
    note_overlaps,
)
from ingest.errors import DumpError
from ingest.liveness.measure import measure

_ALLOCATIONS, _TOTAL, _VALUES, _SEQUENCE, _RANGES, _PEAK, _TREE = Section  # a look-up in Python 3.11: 0.3 us
START: Final = {"primary": _ALLOCATIONS, "values": _TOTAL, "live_range": _SEQUENCE}
"""Section in which the text of a member begins, by role."""


class Driver:
    """Reads one dump set; `read` is called once."""

    def __init__(
        self,
        files: Mapping[str, str],
        columns: Columns,
        dump: ParsedDump,
        block_bytes: int = BLOCK_BYTES,
        max_bytes: int | None = None,
    ) -> None:
        """Prepare to read.

        Args:
            files: path of each member by role, in the order of `START`.
            columns: take the rows.
            dump: takes all else.
            block_bytes: bytes of a piece, about.
            max_bytes: how much text to read, uncompressed; None for any.
        """
        self._files = files
        self._columns = columns
        self._facts = columns.facts
        self._dump = dump
        self._block_bytes = block_bytes
        self._max_bytes = max_bytes
        self._allocations = AllocationsBefore()
        self._text_before = ""
        """Of the piece before in this section, until what it hands on is asked for."""
        self._used = 0
        self._next_slot = 0

    def read(self) -> None:
        """Read and check the set.

        Raises:
            DumpError: a file cannot be read, is damaged, or breaks a rule.
            TooMuchText: there is more than `max_bytes` of it.
        """
        try:
            for role, file in self._files.items():
                self._read_file(role, file)
            self._finish()
        except DumpError as error:
            self._columns.abandon()
            locate(error, list(self._files.values()))
            raise
        except BaseException:
            self._columns.abandon()
            raise

    def read_onto(self, role: str) -> None:
        """Read the text of one role alone, onto a dump that has its allocations and values already.

        Raises:
            DumpError: as `read`, without the place of what only names the text at fault.
            TooMuchText: as `read`.
        """
        self._facts.size = self._dump.allocated
        self._read_file(role, self._files[role])
        check_sections(self._dump, self._files)
        self._finish_ranges()

    def _read_file(self, role: str, file: str) -> None:
        dump = self._dump
        most = None if self._max_bytes is None else self._max_bytes - dump.text_bytes
        reader = BlockReader(file, self._block_bytes, most)
        blocks = iter(reader)
        first = next(blocks, "")
        check_start(first, role, file)
        before: Piece | None = None
        offset = 0
        for piece in cut(chain((first,), blocks), START[role]):
            section = piece.section
            if piece.is_last:
                piece = self._checked_end(piece, role, file)
            begins = before is None or section is not before.section
            if begins:
                self._start_section(before, piece, role, file)
            source: Text = piece.text
            if self._columns.reads_files:
                size = len(piece.text) if piece.text.isascii() else len(piece.text.encode())
                if reader.is_verbatim:
                    source = FileRange(file, offset, size)
                offset += size
            _SCANS[section](self, piece, source, file, begins)
            before = piece
        if before is None:
            check_end("", file, 1, START[role], False)
        else:
            self._end_section(before.section)
        dump.sha256[role] = reader.sha256
        dump.text_bytes += reader.text_bytes
        note(dump.notices, reader.notices)

    def _checked_end(self, piece: Piece, role: str, file: str) -> Piece:
        """Return the last piece of a file without blank lines at its end."""
        section, text, line, _ = piece
        if text.endswith("\n") and not text.endswith("\n\n"):
            return piece
        if role == "live_range" and (
            text.startswith(UNAVAILABLE) or features.LIVE_RANGE_UNAVAILABLE in self._dump.features
        ):
            return piece  # ends without a line end
        is_whole = (
            role == "values"
            or (role == "primary" and "values" in self._files)
            or (
                section is _ALLOCATIONS and bool(self._allocations.after(self._text_before).after(text).style)
            )
        )
        note(self._dump.notices, check_end(text, file, line + text.count("\n"), section, is_whole))
        return piece._replace(text=without_blank_end(text))

    def _start_section(self, before: Piece | None, piece: Piece, role: str, file: str) -> None:
        dump, section = self._dump, piece.section
        if before is not None:
            self._end_section(before.section)
        if section in dump.sections or (len(self._files) > 1 and section not in SECTIONS_OF[role]):
            raise misplaced(section, file, piece.line)
        dump.sections.add(section)
        self._text_before = ""
        if before is not None and section <= _SEQUENCE:
            note(dump.notices, note_blank_lines(before.text, piece, file, dump.features))
        if section is _VALUES:
            check_positions_once(dump.features, file)
            dump.features.add(features.USED_VALUES)
        elif section is _RANGES:
            self._check_schedule()

    def _end_section(self, section: Section) -> None:
        self._columns.wait()
        if section is _ALLOCATIONS:
            self._check_allocations()
        elif section is _VALUES:
            check_same_values(self._columns.lines(self._used, self._used + 1), [])
            check_texts(self._facts.without_text, self._dump.features)

    def _scan_allocations(self, piece: Piece, source: Text, file: str, begins: bool) -> None:
        if not begins:
            self._allocations = self._allocations.after(self._text_before)
        self._text_before = piece.text
        self._columns.scan_allocations(source, Place(piece.line, file), self._allocations)

    def _scan_total(self, piece: Piece, source: Text, file: str, begins: bool) -> None:
        dump = self._dump
        scan_total(dump, piece.text, piece.line, file)
        check_total(self._facts.size, dump.total)
        check_magnitude("total", "total", (dump.total,), "Total bytes used: ")

    def _scan_used(self, piece: Piece, source: Text, file: str, begins: bool) -> None:
        low, last = self._used, last_id(piece.text)
        if last is not None:
            self._used = max(low, bisect_right(self._columns.ids, min(last, LIMIT - 1)))
        self._columns.scan_used(source, Place(piece.line, file), low, self._used)

    def _scan_sequence(self, piece: Piece, source: Text, file: str, begins: bool) -> None:
        dump, text, line = self._dump, piece.text, piece.line
        if not begins:
            if features.LIVE_RANGE_UNAVAILABLE in dump.features:
                note_lines(dump, LINES.findall(text), line, file)
                return
            self._next_slot = slot_after(self._text_before, self._next_slot)
        elif text.startswith(UNAVAILABLE):
            scan_unavailable(dump, piece, file)
            return
        else:
            dump.schedule_length, end = scan_head(text, line, file)
            dump.features.add(features.LIVE_RANGE)
            source, line = _without_head(source, end), line + 2
        self._text_before = text
        self._columns.scan_sequence(source, Place(line, file), self._next_slot)

    def _scan_ranges(self, piece: Piece, source: Text, file: str, begins: bool) -> None:
        line = piece.line
        if begins and piece.text.startswith(RANGES_HEAD):
            source, line = _without_head(source, len(RANGES_HEAD)), line + 1
        slots = LIMIT - 1 if self._dump.schedule_length is None else self._dump.schedule_length
        self._columns.scan_ranges(source, Place(line, file), slots)

    def _scan_peak(self, piece: Piece, source: Text, file: str, begins: bool) -> None:
        dump = self._dump
        dump.peak = scan_peak(piece.text, piece.line, file, dump.notices)
        dump.features.add(features.PEAK_UNBOUNDED if dump.peak.time is None else features.PEAK)
        if any(row.shape_index for row in dump.peak.rows):
            dump.features.add(features.PEAK_INDEX)
        if any(row.cumulative for row in dump.peak.rows):
            dump.features.add(features.PEAK_CUMULATIVE)

    def _scan_tree(self, piece: Piece, source: Text, file: str, begins: bool) -> None:
        dump = self._dump
        dump.tree = scan_tree(piece.text, piece.line, file, dump.notices)
        check_tree(dump.tree)
        dump.features.add(features.STACK_TREE)

    def _check_allocations(self) -> None:
        """Look at the rules of all allocations and values together."""
        columns, facts, dump = self._columns, self._facts, self._dump
        columns.sort_values()
        check_unique(columns.repeated())
        if facts.reuse:
            check_reuse(facts.reuse, columns.places([int(line.id) for line in facts.reuse]))
        check_size_sum(facts.value_size)
        check_allocated(facts.size)
        dump.allocated = facts.size
        note(dump.notices, note_colors(facts.other_colors, facts.reuse, self._files["primary"]))
        dump.other_color_values = Counter(one.allocation for one in facts.other_colors)
        facts.other_colors.clear()
        dump.reuse, dump.memory, dump.tiled = facts.reuse, facts.memory, facts.is_tiled
        dump.parameters = facts.parameters

    def _check_schedule(self) -> None:
        if features.LIVE_RANGE in self._dump.features:
            assert self._dump.schedule_length is not None  # it comes with that feature
            check_sequence_length(self._dump.schedule_length, self._facts.slots, self._ranges_file)

    @property
    def _ranges_file(self) -> str:
        return self._files.get("live_range", self._files["primary"])

    def _finish(self) -> None:
        """Look at the rules of the whole set, and measure the live bytes."""
        dump = self._dump
        if len(self._files) > 1:
            dump.features.add(features.SPLIT_FILES)
        if dump.total is None:
            facts = self._facts
            size = facts.last_size if facts.headers else None
            check_last_allocation(facts.headers - 1, size, facts.ends_in_value)
        note(dump.notices, note_mixed(dump.features, self._files.get("values", self._files["primary"])))
        check_sections(dump, self._files)
        self._finish_ranges()

    def _finish_ranges(self) -> None:
        self._check_schedule()
        dump, columns, file = self._dump, self._columns, self._ranges_file
        dump.resident_peak = resident_peak(dump.memory)
        if dump.features & {features.USED_VALUES, features.EMBEDDED_VALUES}:
            dump.uses_from = "dump"
        if features.LIVE_RANGE not in dump.features:
            return
        dump.ranges_from = "dump"
        joined = columns.join()
        if joined.missing or not joined.is_unique:
            check_unique_ranges(columns.keys())
            note(dump.notices, (note_missing_value(key, file) for key in joined.missing))
        measure_ranges(dump, joined, file)
        if dump.peak is not None and dump.peak.time is not None:
            check_peak_list(dump, columns.live_at(dump.peak.time), file)


def measure_ranges(dump: ParsedDump, joined: Joined, file: str) -> None:
    """Measure the live bytes of a dump whose live ranges are known, printed or derived.

    Args:
        dump: takes the figures; its schedule and its allocations are known.
        joined: the live ranges with their values.
        file: where the live ranges come from, for messages.
    """
    assert dump.schedule_length is not None  # it comes with the schedule
    dump.intervals = joined.intervals
    dump.liveness = measure(joined.intervals, dump.schedule_length)
    dump.resident_peak = resident_peak(
        dump.memory, joined.intervals, joined.is_tuple, dump.liveness, dump.schedule_length
    )
    note(dump.notices, note_overlaps(dump.liveness, joined.id_of, file))


def _without_head(source: Text, length: int) -> Text:
    """Return a text without so many characters at its start, which are ASCII."""
    if isinstance(source, str):
        return source[length:]
    return source._replace(offset=source.offset + length, length=source.length - length)


_SCANS: Final = {
    _ALLOCATIONS: Driver._scan_allocations,
    _TOTAL: Driver._scan_total,
    _VALUES: Driver._scan_used,
    _SEQUENCE: Driver._scan_sequence,
    _RANGES: Driver._scan_ranges,
    _PEAK: Driver._scan_peak,
    _TREE: Driver._scan_tree,
}
