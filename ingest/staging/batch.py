"""Collect the rows of many dumps, which are staged together.

Rows are kept column by column in Python lists. Shapes and instruction texts repeat by the thousand, so each
distinct text of a batch is kept once and parsed once. `ingest.staging.arrow_rows` writes a batch as Parquet,
`ingest.staging.small_batch` a small one. A staged row carries `run_no`, the place of its dump in the import,
where the database has `run_id`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from ingest.database.tables import TABLES, types_of
from ingest.display import display
from ingest.dump.allocations import ReuseLine
from ingest.dump.entry import layout_digest
from ingest.dump.headers import Header
from ingest.dump.instructions import Instruction, parse_instruction
from ingest.dump.live_range import TreeScan
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Notice, role_within
from ingest.dump.shapes import parse_shape
from ingest.dump.used_values import UsedScan, instruction_text
from ingest.hlo.records import Alias, Donor, SourceFrame
from ingest.liveness.donations import NO_DONATION, Donation, Held, donations
from ingest.liveness.measure import NOT_LIVE
from ingest.liveness.occupancy import NOT_RANGED, Occupancy, Placed, color_peaks, occupancies
from ingest.staging.peak_list import PeakMatch, PeakMatcher
from ingest.staging.program_digest import Prints, placed, signed
from ingest.staging.sidecars import NO_SIDECARS, Sidecars, Source

COLUMNS: Final = {
    table.name: types_of(table.name, "row") for table in TABLES.values() if table.rows == "dump"
}
"""Columns that a batch collects row by row, with their types; `values` gets more from its texts."""

# `astuple` copies each value deeply: a quarter of the time of adding sidecar files.
_OF_FRAME: Final = attrgetter(*(field.name for field in fields(SourceFrame)))
_OF_ALIAS: Final = attrgetter(*(field.name for field in fields(Alias)))
_OF_DONOR: Final = attrgetter(*(field.name for field in fields(Donor)))

_UNKNOWN: Final = Occupancy()

TEXT_LIMIT: Final = 2000
"""Characters that a notice or a reject keeps of the text concerned."""


class Batch:
    """Rows of any number of dumps, waiting to be written.

    Attributes:
        rows: the columns of each table, in the order of `COLUMNS`; those that come later are empty.
        runs: (run_no, rows) of each table, in the order of the rows.
        shapes: the distinct shapes, numbered; `shape_numbers` has one for each value.
        texts: the distinct instruction texts, numbered; `text_numbers` has one or None for each value.
        instructions: what each of them says.
        sources: what the HLO module states of each value's instruction.
        position_counts: (ids of values, rows of each in `positions`) of each run.
        use_counts: the same of `uses`.
        size: rows collected.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[list[Any]]] = {
            name: [[] for _ in columns] for name, columns in COLUMNS.items()
        }
        self.runs: dict[str, list[tuple[int, int]]] = {name: [] for name in COLUMNS}
        self.shapes: dict[str, int] = {}
        self.shape_numbers: list[int] = []
        self.texts: dict[str, int] = {}
        self.instructions: list[Instruction] = []
        self.text_numbers: list[int | None] = []
        self.sources: list[Source | None] = []
        self.position_counts: list[tuple[list[int], list[int]]] = []
        self.use_counts: list[tuple[list[int], list[int]]] = []
        self.size = 0
        self._types: dict[str, object] = {}
        self._prints = Prints()

    def add(self, run_no: int, dump: ParsedDump, sidecars: Sidecars = NO_SIDECARS) -> None:
        """Add every row of one checked dump and of its sidecar files; fill in the dump's digest."""
        starts, ends = _slots(dump)
        parameters = _parameters(dump, sidecars.sources)
        held = _occupancies(dump, parameters, ends)
        donated = donations(self._held(dump, held, sidecars.declared_donations()))
        self.add_allocations(run_no, dump.headers, sidecars.allocation_facts(), held, donated)
        if dump.intervals is not None and dump.liveness is not None:
            colors = [header.attributes.color for header in dump.headers]
            self.add_color_peaks(run_no, color_peaks(dump.intervals, dump.liveness, colors))
        self.add_reuse(run_no, [(dump.headers[line.header].allocation, line) for line in dump.reuse])
        self.add_values(
            run_no,
            dump.values,
            dump.ids,
            dump.allocation_of,
            dump.offsets,
            dump.sizes,
            dump.used,
            sidecars.sources,
        )
        if not sidecars.has_fingerprint:
            prints = self.value_prints(dump.values, dump.used, sidecars.sources)
            dump.digest = signed(placed(prints, starts, ends) + self.allocation_prints(dump.headers))
        self.add_sidecars(run_no, sidecars)
        if dump.schedule is not None:
            self.add_schedule(run_no, 0, dump.schedule)
        if dump.ranges and dump.liveness is not None:
            ids = [dump.ids[row] if row >= 0 else None for row in dump.range_values]
            columns = tuple(zip(*dump.ranges, strict=True))
            shares = [_spread(column, ids) for column in dump.liveness.shares()]
            match = PeakMatcher(dump.peak).match(*columns)
            self.add_ranges(run_no, ids, columns, match, shares, _sizes_and_roles(dump, parameters))
        if dump.tree is not None:
            self.add_tree(run_no, dump.tree)
        self.add_notices(run_no, dump.notices)

    def add_allocations(
        self,
        run_no: int,
        headers: Sequence[Header],
        facts: Mapping[int, tuple[bool, bool | None]],
        held: Sequence[Occupancy] | None,
        donated: Mapping[int, Donation],
    ) -> None:
        """Add allocations.

        Args:
            run_no: run that they belong to.
            headers: their lines.
            facts: is_tuple and is_aliased_with_output by index, from the protobuf.
            held: what each allocation of the run holds; None where that is filled in later.
            donated: what became of the donation of parameters, by index; empty where that comes later.
        """
        rows = []
        for header in headers:
            flags = header.attributes
            known = facts.get(header.allocation, (None, None))
            holds = _UNKNOWN if held is None else held[header.allocation]
            holds = holds.of(is_parameter=flags.parameter_number is not None, leaves=flags.maybe_live_out)
            donation = donated.get(header.allocation, NO_DONATION)
            rows.append((header.allocation, header.size, *flags[:10], flags.kind, *known, *holds, *donation))
        self._extend("allocations", run_no, rows)

    def add_color_peaks(self, run_no: int, peaks: Sequence[tuple[int, int, int]]) -> None:
        """Add the peaks of the memory spaces: color, slot and bytes."""
        self._extend("color_peaks", run_no, peaks)

    def add_reuse(self, run_no: int, reuse: Sequence[tuple[int, ReuseLine]]) -> None:
        """Add reuse lines, each with the index of its allocation."""
        self._extend("color_reuse", run_no, [(owner, int(line.id), int(line.color)) for owner, line in reuse])

    def add_values(
        self,
        run_no: int,
        values: Sequence[tuple[str, ...]],
        ids: Sequence[int],
        allocation_of: Sequence[int],
        offsets: Sequence[int],
        sizes: Sequence[int],
        used: UsedScan | None,
        sources: Mapping[str, Source],
    ) -> None:
        """Add values (rows as `ValueLine`, by id) with their positions and uses, where these are known.

        `sources` are what the HLO module states of the instructions' source lines.
        """
        if not values:
            return
        _, names, indices, phis, colors, _, _, shapes = zip(*values, strict=True)
        columns: tuple[Iterable[Any], ...] = (
            ids,
            allocation_of,
            names,
            [index or "{}" for index in indices],
            [phi != "" for phi in phis],
            [int(color) if color else None for color in colors],
            offsets,
            sizes,
        )
        for column, more in zip(self.rows["values"], columns, strict=False):  # others follow from these
            column += more
        self.sources += map(sources.get, names)
        self._count("values", run_no, len(ids))
        number = self.shapes
        self.shape_numbers += [number.setdefault(shape, len(number)) for shape in shapes]
        if used is None:
            self.text_numbers += [None] * len(ids)
            return
        self.text_numbers += map(self._text_number, used.texts)
        names, indices = zip(*used.positions, strict=True)
        _, _, instructions, places = self.rows["positions"]
        instructions += names
        places += [index or "{}" for index in indices]
        self.position_counts.append((list(ids), used.position_counts))
        self._count("positions", run_no, len(names))
        if used.uses:
            names, operands, indices = zip(*used.uses, strict=True)
            _, _, users, numbers, places = self.rows["uses"]
            users += names
            numbers += map(int, operands)
            places += [index or "{}" for index in indices]
            self.use_counts.append((list(ids), used.use_counts))
            self._count("uses", run_no, len(names))

    def value_prints(
        self, values: Sequence[tuple[str, ...]], used: UsedScan | None, sources: Mapping[str, Source]
    ) -> array[int]:
        """Return what values that were added last count in the digest of their dump, but for live ranges.

        Arguments are as for `add_values`.
        """
        if not values:
            return array("Q")
        _, names, indices, _, _, _, _, shapes = zip(*values, strict=True)
        opcodes = [
            None if number is None else self.instructions[number].opcode
            for number in self.text_numbers[-len(values) :]
        ]
        if sources:
            stated = (source and source.opcode for source in map(sources.get, names))
            opcodes = [one or other for one, other in zip(opcodes, stated, strict=True)]
        if used is None:
            return self._prints.of_values(names, indices, shapes, opcodes)
        return self._prints.of_values(names, indices, shapes, opcodes, used.uses, used.use_counts)

    def allocation_prints(self, headers: Sequence[Header]) -> int:
        """Return what allocations count in the digest of their dump."""
        return self._prints.of_allocations(headers)

    def add_sidecars(self, run_no: int, sidecars: Sidecars) -> None:
        """Add what HLO text and protobuf state."""
        module = sidecars.module
        if module is None:
            return
        header = module.header
        self._extend(
            "hlo_modules",
            run_no,
            [
                (
                    header.name,
                    header.is_scheduled,
                    header.num_partitions,
                    header.replica_count,
                    header.entry_computation_layout,
                    "text" if sidecars.proto is None else "protobuf",
                    module.program_sha256,
                    layout_digest(header.entry_computation_layout),
                )
            ],
        )
        self._extend(
            "source_frames",
            run_no,
            [
                (*_OF_FRAME(frame), rule(frame.file))
                for rule in (sidecars.is_framework,)
                for frame in module.frames
            ],
        )
        self._extend("aliases", run_no, [_OF_ALIAS(alias) for alias in header.aliases])
        self._extend("buffer_donors", run_no, [_OF_DONOR(donor) for donor in header.donors])
        self._extend("heap_events", run_no, sidecars.heap_events())
        self._extend("peak_buffers", run_no, sidecars.peak_buffers())
        rows = module.instructions
        located = sidecars.located
        if len(rows) and located is not None:
            columns: tuple[Iterable[Any], ...] = (
                range(len(rows)),
                rows.computation,
                rows.instruction,
                rows.opcode,
                rows.shape,
                rows.operands,
                rows.op_name,
                rows.stack_frame_id,
                rows.called_computations,
                rows.is_root,
                located.file,
                located.line,
                located.via,
            )
            for column, more in zip(self.rows["instructions"], columns, strict=True):
                column += more
            self._count("instructions", run_no, len(rows))

    def add_schedule(self, run_no: int, first_slot: int, names: Sequence[str]) -> None:
        """Add consecutive slots of the flattened schedule."""
        times, instructions = self.rows["schedule"]
        times += range(first_slot, first_slot + len(names))
        instructions += names
        self._count("schedule", run_no, len(names))

    def add_ranges(
        self,
        run_no: int,
        ids: Sequence[int | None],
        ranges: Sequence[Sequence[Any]],
        peak: PeakMatch,
        shares: Sequence[Sequence[int | None]],
        values: Sequence[Sequence[Any]],
    ) -> None:
        """Add live ranges.

        Args:
            run_no: run that they belong to.
            ids: the value of each range, None where the dump lists no such value.
            ranges: the columns instruction, index, start and end.
            peak: what the peak list says of each.
            shares: those of `Liveness.shares`, None without a value and for `NOT_LIVE`.
            values: size and role of the value of each, None without one.
        """
        handover, *others = shares
        columns = (ids, *ranges, handover, *peak, *others, *values)
        for column, more in zip(self.rows["ranges"], columns, strict=True):
            column += more
        self._count("ranges", run_no, len(ids))

    def add_tree(self, run_no: int, tree: TreeScan) -> None:
        """Add the stack-trace tree."""
        rows = [
            (
                position,
                node.parent,
                node.depth,
                node.label,
                _percent(node.percent),
                node.total,
                node.current,
                node.remaining,
            )
            for position, node in enumerate(tree.nodes)
        ]
        self._extend("peak_breakdown", run_no, rows)

    def add_notices(self, run_no: int, notices: Iterable[Notice]) -> None:
        """Add the notices."""
        rows = [
            (
                display(note.file),
                note.line,
                note.kind,
                display(note.message[:TEXT_LIMIT]),
                note.text and display(note.text[:TEXT_LIMIT]),
            )
            for note in notices
        ]
        self._extend("notices", run_no, rows)

    def _held(
        self, dump: ParsedDump, held: Sequence[Occupancy], declared: Mapping[tuple[int, str], str]
    ) -> Iterator[Held]:
        """Yield the allocations that hold an array which is a parameter or leaves."""
        for header in dump.headers:
            flags = header.attributes
            number = flags.parameter_number
            if number is None and not flags.maybe_live_out:
                continue
            holds = held[header.allocation]
            value = holds.live_out_value_id if number is None else holds.parameter_value_id
            if value is None:
                continue
            type_ = self._type(dump.values[bisect_left(dump.ids, value)][7])
            if type_ is None:
                continue
            kind = None if number is None else declared.get((number, flags.parameter_shape_index or ""))
            yield Held(
                header.allocation, header.size, flags.color, number, flags.maybe_live_out, kind, value, type_
            )

    def _type(self, text: str) -> object:
        """Return element type and dimensions of a shape; None where it is no array."""
        if text not in self._types:
            shape = parse_shape(text)
            self._types[text] = None if shape.dimensions is None else (shape.dtype, shape.dimensions)
        return self._types[text]

    def _text_number(self, raw: str) -> int | None:
        text = instruction_text(raw)
        if text is None:
            return None
        number = self.texts.setdefault(text, len(self.texts))
        if number == len(self.instructions):
            self.instructions.append(parse_instruction(text))
        return number

    def _extend(self, name: str, run_no: int, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            for column, more in zip(self.rows[name], zip(*rows, strict=True), strict=True):
                column += more
            self._count(name, run_no, len(rows))

    def _count(self, name: str, run_no: int, rows: int) -> None:
        if rows:
            self.runs[name].append((run_no, rows))
            self.size += rows


def parameter_ids(
    ids: Sequence[int], names: Iterable[str], used: UsedScan | None, sources: Mapping[str, Source]
) -> list[int]:
    """Return the ids of the values that a parameter instruction defines.

    Its text says so, or the HLO module where no text is printed (as for column `opcode`).
    """
    texts = [""] * len(ids) if used is None else used.texts
    found = []
    for id_, name, text in zip(ids, names, texts, strict=True):
        if text:
            at = text.find(" parameter(")
            is_parameter = at >= 0 and text.find('"', 0, at) < 0  # not in the metadata of another one
        else:
            source = sources.get(name)
            is_parameter = source is not None and source.opcode == "parameter"
        if is_parameter:
            found.append(id_)
    return found


def _slots(dump: ParsedDump) -> tuple[list[int], list[int]]:
    """Return the first and the last slot of each value, `NOT_RANGED` where they are not known."""
    starts, ends = [NOT_RANGED] * len(dump.ids), [NOT_RANGED] * len(dump.ids)
    for row, (_, _, start, end) in zip(dump.range_values, dump.ranges or (), strict=True):
        if row >= 0:
            starts[row], ends[row] = start, end
    return starts, ends


def _parameters(dump: ParsedDump, sources: Mapping[str, Source]) -> set[int]:
    names = [name for _, name, _, _, _, _, _, _ in dump.values]
    return set(parameter_ids(dump.ids, names, dump.used, sources))


def _sizes_and_roles(
    dump: ParsedDump, parameters: Collection[int]
) -> tuple[list[int | None], list[str | None]]:
    """Return size and role of the value of each live range, None without one."""
    flags = (header.attributes for header in dump.headers)
    within = [role_within(one.parameter_number is not None, one.is_constant) for one in flags]
    sizes: list[int | None] = [None if row < 0 else dump.sizes[row] for row in dump.range_values]
    roles = [
        None if row < 0 else "parameter" if dump.ids[row] in parameters else within[dump.allocation_of[row]]
        for row in dump.range_values
    ]
    return sizes, roles


def _occupancies(dump: ParsedDump, parameters: Collection[int], ends: Sequence[int]) -> list[Occupancy]:
    placed = Placed(dump.ids, dump.allocation_of, dump.sizes, ends, parameters)
    return occupancies(len(dump.headers), placed, dump.intervals, dump.liveness)


def _spread(column: Sequence[int], ids: Sequence[int | None]) -> list[int | None]:
    """Put the cells of a column, one for each range with a value, at their ranges."""
    cells: list[int | None] = [None if cell == NOT_LIVE else cell for cell in column]
    if None in ids:
        present = iter(cells)
        return [None if id_ is None else next(present) for id_ in ids]
    return cells


def _percent(text: str) -> float | None:
    value = float(text)
    return value if value == value and abs(value) != float("inf") else None
