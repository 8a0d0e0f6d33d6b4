"""Collect the rows of many dumps, which are staged together.

Rows are kept column by column in Python lists. Shapes and instruction texts repeat by the thousand, so each
distinct text of a batch is kept once and parsed once. `ingest.staging.arrow_rows` writes a batch as Parquet,
`ingest.staging.small_batch` a small one. A staged row carries `run_no`, the place of its dump in the import,
where the database has `run_id`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, NamedTuple

from ingest.database.tables import TABLES, types_of
from ingest.display import display
from ingest.dump.allocations import ReuseLine
from ingest.dump.entry import layout_digest
from ingest.dump.headers import Header
from ingest.dump.instructions import Instruction, parse_instruction
from ingest.dump.live_range import TreeScan
from ingest.dump.records import Notice
from ingest.dump.used_values import UsedScan, instruction_text
from ingest.hlo.records import Alias, Donor
from ingest.liveness.addresses import SharedAddress
from ingest.liveness.donations import NO_DONATION, Donation
from ingest.liveness.occupancy import Occupancy
from ingest.staging.peak_list import PeakMatch
from ingest.staging.program_digest import Prints
from ingest.staging.sidecars import Sidecars, Source

COLUMNS: Final = {
    table.name: types_of(table.name, "row") for table in TABLES.values() if table.rows == "dump"
}
"""Columns that a batch collects row by row, with their types; `values` gets more from its texts."""

# `astuple` copies each value deeply: a quarter of the time of adding sidecar files.
_OF_ALIAS: Final = attrgetter(*(field.name for field in fields(Alias)))
_OF_DONOR: Final = attrgetter(*(field.name for field in fields(Donor)))

_UNKNOWN: Final = Occupancy()
_NO_FACTS: Final = (None, None)

TEXT_LIMIT: Final = 2000
"""Characters that a notice or a reject keeps of the text concerned."""


class Printed(NamedTuple):
    """What value lines print, column-wise; '' where a part is not printed."""

    ids: Sequence[str]
    names: Sequence[str]
    indices: Sequence[str]
    phis: Sequence[str]
    colors: Sequence[str]
    sizes: Sequence[str]
    offsets: Sequence[str]
    shapes: Sequence[str]

    @classmethod
    def of(cls, values: Sequence[tuple[str, ...]]) -> Printed:
        """Take rows as `ValueLine`."""
        return cls(*zip(*values, strict=True)) if values else _NOTHING_PRINTED


_NOTHING_PRINTED: Final = Printed(*[()] * 8)


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
        prints: what rows count in the digests of their dumps.
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
        self.prints = Prints()
        self._numbers: dict[str, int] = {}
        """Of instruction texts as printed."""

    def add_allocations(
        self,
        run_no: int,
        headers: Sequence[Header],
        facts: Mapping[int, tuple[bool, bool | None]],
        held: Sequence[Occupancy] | None,
        donated: Mapping[int, Donation],
        other_colors: Mapping[int, int],
    ) -> None:
        """Add allocations.

        Args:
            run_no: run that they belong to.
            headers: their lines.
            facts: is_tuple and is_aliased_with_output by index, from the protobuf.
            held: what each allocation of the run holds; None where that is filled in later.
            donated: what became of the donation of parameters, by index; empty where that comes later.
            other_colors: how many values of other colors they hold, by index; empty where that comes later.
        """
        rows = []
        for index, _, size, flags, _ in headers:
            known = facts.get(index, _NO_FACTS)
            holds = _UNKNOWN if held is None else held[index]
            cells = holds.of(is_parameter=flags.parameter_number is not None, leaves=flags.maybe_live_out)
            donation = donated.get(index, NO_DONATION)
            stated = (index, size, *flags[:10], flags.kind, *known)
            rows.append((*stated, *cells, *donation, other_colors.get(index, 0)))
        self._extend("allocations", run_no, rows)

    def add_color_peaks(self, run_no: int, peaks: Sequence[tuple[int, int, int]]) -> None:
        """Add the peaks of the memory spaces: color, slot and bytes."""
        self._extend("color_peaks", run_no, peaks)

    def add_shared_addresses(self, run_no: int, addresses: Sequence[SharedAddress]) -> None:
        """Add addresses that several values share."""
        self._extend("shared_addresses", run_no, addresses)

    def add_reuse(self, run_no: int, reuse: Sequence[tuple[int, ReuseLine]]) -> None:
        """Add reuse lines, each with the index of its allocation."""
        self._extend("color_reuse", run_no, [(owner, int(line.id), int(line.color)) for owner, line in reuse])

    def add_values(
        self,
        run_no: int,
        lines: Printed,
        ids: Sequence[int],
        allocation_of: Sequence[int],
        offsets: Sequence[int],
        sizes: Sequence[int],
        used: UsedScan | None,
        sources: Mapping[str, Source],
        *,
        prints_phi: bool = True,
    ) -> None:
        """Add values, by id, with their positions and uses, where these are known.

        `sources` are what the HLO module states of the instructions' source lines. With `prints_phi`, a line
        without the mark is no phi.
        """
        if not ids:
            return
        names: Sequence[str] = lines.names
        columns: tuple[Iterable[Any], ...] = (
            ids,
            allocation_of,
            names,
            _indices(lines.indices),
            map(bool, lines.phis) if prints_phi else [None] * len(ids),
            [int(color) if color else None for color in lines.colors],
            offsets,
            sizes,
        )
        _append(self.rows["values"], columns)  # others follow from these
        self.sources += map(sources.get, names)
        self._count("values", run_no, len(ids))
        number = self.shapes
        self.shape_numbers += [number.setdefault(shape, len(number)) for shape in lines.shapes]
        if used is None:
            self.text_numbers += [None] * len(ids)
            return
        known = self._numbers
        self.text_numbers += [known[raw] if raw in known else self._text_number(raw) for raw in used.texts]
        names, indices = zip(*used.positions, strict=True)
        _, _, instructions, places = self.rows["positions"]
        instructions += names
        places += _indices(indices)
        self.position_counts.append((list(ids), used.position_counts))
        self._count("positions", run_no, len(names))
        if used.uses:
            names, operands, indices = zip(*used.uses, strict=True)
            _, _, users, numbers, places = self.rows["uses"]
            users += names
            numbers += map(int, operands)
            places += _indices(indices)
            self.use_counts.append((list(ids), used.use_counts))
            self._count("uses", run_no, len(names))

    def opcodes(self, names: Sequence[str], sources: Mapping[str, Source]) -> list[str | None]:
        """Return the opcodes of the values that were added last: of their texts, else of the HLO module.

        Arguments are as for `add_values`.
        """
        numbers = self.text_numbers[-len(names) :] if names else []
        printed = [None if number is None else self.instructions[number].opcode for number in numbers]
        if not sources:
            return printed
        stated = (source and source.opcode for source in map(sources.get, names))
        return [one or other for one, other in zip(printed, stated, strict=True)]

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
            [(*frame, sidecars.is_framework(frame.file)) for frame in module.frames],
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
            _append(self.rows["instructions"], columns)
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
        _append(self.rows["ranges"], columns)
        self._count("ranges", run_no, len(ids))

    def add_tree(self, run_no: int, tree: TreeScan) -> None:
        """Add the stack-trace tree."""
        rows = [
            (position, parent, depth, label, _percent(percent), *figures)
            for position, (depth, parent, label, percent, *figures) in enumerate(tree.nodes)
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

    def _text_number(self, raw: str) -> int | None:
        text = instruction_text(raw)
        if text is None:
            return None
        number = self._numbers[raw] = self.texts.setdefault(text, len(self.texts))
        if number == len(self.instructions):
            self.instructions.append(parse_instruction(text))
        return number

    def _extend(self, name: str, run_no: int, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            _append(self.rows[name], zip(*rows, strict=True))
            self._count(name, run_no, len(rows))

    def _count(self, name: str, run_no: int, rows: int) -> None:
        if rows:
            self.runs[name].append((run_no, rows))
            self.size += rows


def _append(columns: list[list[Any]], more: Iterable[Iterable[Any]]) -> None:
    """Add cells to the first columns."""
    deque(map(list.extend, columns, more), maxlen=0)


def _indices(printed: Sequence[str]) -> list[str]:
    """Return shape indexes, most of which are not printed: those of the whole."""
    return [index or "{}" for index in printed] if any(printed) else ["{}"] * len(printed)


def _percent(text: str) -> float | None:
    value = float(text)
    return value if value == value and abs(value) != float("inf") else None
