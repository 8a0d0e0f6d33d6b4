"""The rows of one dump that was parsed whole: what its text says, and what follows of all its values.

A large dump never is whole in memory: `ingest.staging.arrow_columns` finds the same over Arrow columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from ingest.dump.parsed import ParsedDump
from ingest.dump.records import role_within
from ingest.dump.shapes import parse_shape
from ingest.liveness.addresses import Located, Loop, SharedAddress, shared_addresses
from ingest.liveness.donations import Held, donations
from ingest.liveness.measure import NOT_LIVE
from ingest.liveness.occupancy import LEAVES, NOT_RANGED, Occupancy, Placed, color_peaks, occupancies
from ingest.staging.batch import Batch, Printed
from ingest.staging.loops import Part, first_operands, loop_results, loops_of
from ingest.staging.peak_list import PeakMatcher
from ingest.staging.program_digest import placed, signed
from ingest.staging.sidecars import NO_SIDECARS, Sidecars


def add_dump(batch: Batch, run_no: int, dump: ParsedDump, sidecars: Sidecars = NO_SIDECARS) -> None:
    """Add every row of one checked dump and of its sidecar files; fill in the dump's digest."""
    starts, ends = _slots(dump)
    lines = Printed.of(dump.values)
    sources = sidecars.sources(lines.names)
    batch.add_values(
        run_no,
        lines,
        dump.ids,
        dump.allocation_of,
        dump.offsets,
        dump.sizes,
        dump.used,
        sources,
        prints_phi=dump.prints_phi,
    )
    opcodes = batch.opcodes(lines.names, sources)
    parameters = set(parameter_ids(dump.ids, opcodes))
    held = _occupancies(dump, parameters, ends)
    donated = donations(_held(dump, held, sidecars.declared_donations()))
    batch.add_allocations(
        run_no, dump.headers, sidecars.allocation_facts(), held, donated, dump.other_color_values
    )
    if dump.intervals is not None and dump.liveness is not None:
        colors = [header.attributes.color for header in dump.headers]
        batch.add_color_peaks(run_no, color_peaks(dump.intervals, dump.liveness, colors))
    batch.add_reuse(run_no, [(dump.headers[line.header].allocation, line) for line in dump.reuse])
    if not sidecars.has_fingerprint:
        uses, counts = ((), ()) if dump.used is None else (dump.used.uses, dump.used.use_counts)
        prints = batch.prints.of_values(lines.names, lines.indices, lines.shapes, opcodes, uses, counts)
        dump.digest = signed(placed(prints, starts, ends) + batch.prints.of_allocations(dump.headers))
    results = loop_results(lines, opcodes, range(len(dump.ids)))
    batch.add_shared_addresses(run_no, _shared_addresses(dump, (starts, ends), results))
    batch.add_sidecars(run_no, sidecars)
    if dump.schedule is not None:
        batch.add_schedule(run_no, 0, dump.schedule)
    if dump.ranges and dump.liveness is not None:
        ids = _at_ranges(dump.ids, dump.range_values)
        columns = tuple(zip(*dump.ranges, strict=True))
        shares = [_spread(column, ids) for column in dump.liveness.shares()]
        match = PeakMatcher(dump.peak).match(*columns)
        batch.add_ranges(run_no, ids, columns, match, shares, _sizes_and_roles(dump, parameters))
    if dump.tree is not None:
        batch.add_tree(run_no, dump.tree)
    batch.add_notices(run_no, dump.notices)


def parameter_ids(ids: Sequence[int], opcodes: Sequence[str | None]) -> list[int]:
    """Return the ids of the values that a parameter instruction defines."""
    return [id_ for id_, opcode in zip(ids, opcodes, strict=True) if opcode == "parameter"]


def _held(
    dump: ParsedDump, held: Sequence[Occupancy], declared: Mapping[tuple[int, str], str]
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
        type_ = _array_type(dump.values[bisect_left(dump.ids, value)][7])
        if type_ is None:
            continue
        kind = None if number is None else declared.get((number, flags.parameter_shape_index or ""))
        yield Held(
            header.allocation, header.size, flags.color, number, flags.maybe_live_out, kind, value, type_
        )


@lru_cache(maxsize=4096)
def _array_type(text: str) -> object:
    """Return element type and dimensions of a shape; None where it is no array."""
    return parse_shape(text).array_type


def _slots(dump: ParsedDump) -> tuple[list[int], list[int]]:
    """Return the first and the last slot of each value, `NOT_RANGED` where they are not known."""
    starts, ends = [NOT_RANGED] * len(dump.ids), [NOT_RANGED] * len(dump.ids)
    for row, (_, _, start, end) in zip(dump.range_values, dump.ranges or (), strict=True):
        if row >= 0:
            starts[row], ends[row] = start, end
    return starts, ends


def _shared_addresses(
    dump: ParsedDump, slots: tuple[Sequence[int], Sequence[int]], results: Mapping[Part, int]
) -> list[SharedAddress]:
    if len(set(dump.allocation_of)) == len(dump.allocation_of):
        return []  # as in most tiny dumps, each value has an allocation of its own
    loops: list[Loop] = []
    if results and dump.used is not None:
        names = {name for name, _ in results}
        loops = loops_of(results, first_operands(dump.used, range(len(dump.ids)), names))
    handover = [0] * len(dump.ids)
    if dump.liveness is not None:
        ranged = (row for row in dump.range_values if row >= 0)
        for row, handed_over in zip(ranged, dump.liveness.handover, strict=True):
            handover[row] = handed_over
    located = Located(dump.allocation_of, dump.offsets, dump.sizes, *slots, handover)
    return shared_addresses(located, loops, has_ranges=dump.liveness is not None)


def _sizes_and_roles(
    dump: ParsedDump, parameters: Collection[int]
) -> tuple[list[int | None], list[str | None]]:
    """Return size and role of the value of each live range, None without one."""
    flags = (header.attributes for header in dump.headers)
    within = [role_within(one.parameter_number is not None, one.is_constant) for one in flags]
    sizes = _at_ranges(dump.sizes, dump.range_values)
    roles = [
        None if row < 0 else "parameter" if dump.ids[row] in parameters else within[dump.allocation_of[row]]
        for row in dump.range_values
    ]
    return sizes, roles


def _occupancies(dump: ParsedDump, parameters: Collection[int], ends: Sequence[int]) -> list[Occupancy]:
    if dump.leaving:
        ends = [LEAVES if id_ in dump.leaving else NOT_RANGED for id_ in dump.ids]
    placed = Placed(dump.ids, dump.allocation_of, dump.sizes, ends, parameters)
    return occupancies(len(dump.headers), placed, dump.intervals, dump.liveness)


def _at_ranges(column: Sequence[int], rows: Sequence[int]) -> list[int | None]:
    """Return the cells of the values of live ranges, None without one, which is rare."""
    if -1 in rows:
        return [None if row < 0 else column[row] for row in rows]
    return [*map(column.__getitem__, rows)]


def _spread(column: Sequence[int], ids: Sequence[int | None]) -> list[int | None]:
    """Put the cells of a column, one for each range with a value, at their ranges."""
    cells: list[int | None] = [*column]
    if NOT_LIVE in cells:
        cells = [None if cell == NOT_LIVE else cell for cell in cells]
    if None in ids:
        present = iter(cells)
        return [None if id_ is None else next(present) for id_ in ids]
    return cells
