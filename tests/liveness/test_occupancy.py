"""What each allocation holds, as an import stores it, is what brute force finds."""

from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Sequence

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.liveness import occupancy_columns as occupancy_columns_module
from ingest.liveness.measure import Intervals, measure
from ingest.liveness.occupancy import NOT_RANGED, Occupancy, Placed, color_peaks, occupancies
from ingest.liveness.occupancy_columns import (
    ABSENT,
    PlacedColumns,
    color_peaks_of_many,
    occupancy_columns,
)
from ingest.staging.batch import Batch, Printed
from ingest.staging.dump_rows import parameter_ids
from ingest.staging.sidecars import Source
from tests.support.live_bytes import union_at

SLOTS = 6
ALLOCATIONS = 3

Row = tuple[int, int, int, int, int, bool]
"""Allocation, offset, size, start (-1 without a range), end, and whether a parameter defines the value."""


@st.composite
def values(draw: st.DrawFn) -> list[Row]:
    """Few places and slots, so that ranges nest, touch, repeat, are empty or missing."""
    rows: list[Row] = []
    for _ in range(draw(st.integers(0, 9))):
        start = draw(st.integers(-1, SLOTS))
        end = NOT_RANGED if start < 0 else draw(st.integers(start, SLOTS))
        place = (draw(st.integers(0, ALLOCATIONS - 1)), draw(st.integers(0, 5)), draw(st.integers(0, 6)))
        rows.append((*place, start, end, draw(st.booleans())))
    return rows


def measured(rows: Sequence[Row]) -> list[Occupancy]:
    """Measure values, whose ids are 10, 11, 12 ..., as the import does."""
    owners, offsets, sizes, starts, ends, flags = zip(*rows, strict=True) if rows else ((),) * 6
    ids = range(10, 10 + len(rows))
    parameters = {id_ for id_, flag in zip(ids, flags, strict=True) if flag}
    ranged = [number for number, start in enumerate(starts) if start >= 0]
    columns = (owners, offsets, sizes, starts, ends)
    intervals = Intervals(*([column[number] for number in ranged] for column in columns))
    placed = Placed(ids, owners, sizes, ends, parameters)
    return occupancies(ALLOCATIONS, placed, intervals, measure(intervals, SLOTS))


def by_brute_force(rows: Sequence[Row], owner: int) -> Occupancy:
    """Look at every slot, and at every value, of one allocation."""
    mine = [(10 + number, *row) for number, row in enumerate(rows) if row[0] == owner]
    if not mine:
        return Occupancy()

    def curve(shorter: int) -> list[int]:
        live = [(o, offset, size, s, e - shorter) for _, o, offset, size, s, e, _ in mine if s >= 0]
        intervals = Intervals(*([row[column] for row in live] for column in range(5)))
        return [union_at(time, intervals).get(owner, 0) for time in range(SLOTS + 1)]

    starts = [start for _, _, _, _, start, _, _ in mine if start >= 0]
    closed = curve(0)
    # Where nothing is ever live the peak is the first start.
    first = closed.index(max(closed)) if max(closed) else min(starts, default=0)
    return Occupancy(
        len(mine),
        sum(size for _, _, _, size, _, _, _ in mine),
        first if starts else None,
        max(closed) if starts else None,
        max(curve(1)) if starts else None,
        min((not flag, id_) for id_, _, _, _, _, _, flag in mine)[1],
        max((end, size, id_) for id_, _, _, size, _, end, _ in mine)[2],
    )


@given(values())
def test_every_allocation_holds_what_brute_force_finds(rows: list[Row]) -> None:
    """Peaks are unions of addresses, with closed and with half-open ranges; counts and values by the book."""
    assert measured(rows) == [by_brute_force(rows, owner) for owner in range(ALLOCATIONS)]


@pytest.mark.parametrize("at_once", [1, 3, 100])
@given(rows=values())
def test_columns_of_large_dumps_hold_the_same(at_once: int, rows: list[Row]) -> None:
    """In NumPy, where a group of intervals may be more than is summed at once, or several may be."""
    owners, offsets, sizes, starts, ends, flags = zip(*rows, strict=True) if rows else ((),) * 6
    ids = range(10, 10 + len(rows))
    ranged = [number for number, start in enumerate(starts) if start >= 0]
    columns = (owners, offsets, sizes, starts, ends)
    intervals = Intervals(*([column[number] for number in ranged] for column in columns))
    parameters = [id_ for id_, flag in zip(ids, flags, strict=True) if flag]
    placed = PlacedColumns(*(np.array(column, np.int64) for column in (ids, owners, sizes, ends, parameters)))
    liveness = measure(intervals, SLOTS)
    colors = (0, 7, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occupancy_columns_module, "_AT_ONCE", at_once)
        found = occupancy_columns(ALLOCATIONS, placed, intervals, liveness)
        peaks = color_peaks_of_many(intervals, liveness, colors)
    cells = ([None if cell == ABSENT else cell for cell in column.tolist()] for column in found)
    assert [Occupancy(*row) for row in zip(*cells, strict=True)] == measured(rows)
    assert peaks == color_peaks(intervals, liveness, colors)


@given(values())
def test_every_memory_space_peaks_where_brute_force_finds(rows: list[Row]) -> None:
    """Two allocations lie in one memory space, a third in another one; one that stays empty is left out."""
    colors = (0, 7, 0)
    ranged = [row[:5] for row in rows if row[3] >= 0]
    intervals = Intervals(*([row[column] for row in ranged] for column in range(5)))
    expected = []
    for color in sorted(set(colors)):
        live = [
            sum(size for owner, size in union_at(time, intervals).items() if colors[owner] == color)
            for time in range(SLOTS + 1)
        ]
        if max(live):
            expected.append((color, live.index(max(live)), max(live)))
    assert color_peaks(intervals, measure(intervals, SLOTS), colors) == expected


def test_many_values_take_few_bytes_each() -> None:
    """A Python object for each value of a gigabyte of text took 300 MB; columns of numbers take a tenth."""
    count = 100_000
    ids = np.arange(count)
    owners, sizes, starts = ids // 2, np.full(count, 64), ids % 1000
    placed = PlacedColumns(ids, owners, sizes, starts + 1, ids[::2])
    columns = (array("q", column.tolist()) for column in (owners, 64 * (ids % 2), sizes, starts, starts + 1))
    intervals = Intervals(*columns)
    liveness = measure(intervals, 1001)
    tracemalloc.start()
    found = occupancy_columns(count // 2, placed, intervals, liveness)
    color_peaks_of_many(intervals, liveness, [0] * (count // 2))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.live_peak_bytes.max() == 128
    assert most / count < 400


def test_what_begins_and_ends_is_kept_where_it_has_a_meaning() -> None:
    """A parameter's value only in a parameter's allocation, a leaving one only where something leaves."""
    held = Occupancy(3, 48, 2, 32, 16, 7, 9)
    assert held.of(is_parameter=True, leaves=True) == held
    assert held.of(is_parameter=False, leaves=False)[:5] == held[:5]
    assert held.of(is_parameter=False, leaves=False)[5:] == (None, None)


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (" %p.1 = f32[2]{0} parameter(0)", None, True),
        (' %add.1 = f32[2]{0} add(%a, %b), metadata={op_name="f parameter(0)"}', None, False),
        (" %parameter.1 = f32[2]{0} copy(%parameter.2)", None, False),
        ("", "parameter", True),
        ("", "add", False),
        ("", None, False),
    ],
)
def test_parameters_are_known_by_their_text_or_by_the_module(
    text: str, known: str | None, expected: bool
) -> None:
    """Where no text is printed the HLO module says what an instruction is, as for column `opcode`."""
    from ingest.dump.notices import Notices
    from ingest.dump.used_values import UsedScan

    block = ("4", "p.1", "", "", "", "", "", text)
    used = UsedScan([block], [("p.1", "")], [1], [], [0], set(), Notices())
    sources = {} if known is None else {"p.1": Source(None, None, None, None, known, None, None)}
    lines = Printed.of([("4", "p.1", "", "", "", "8", "0", "f32[2]")])
    batch = Batch()
    batch.add_values(0, lines, [4], [0], [0], [8], used, sources)
    assert parameter_ids([4], batch.opcodes(lines.names, sources)) == ([4] if expected else [])


def test_live_ranges_repeat_what_their_values_are(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Size and role: questions about lifetimes read no other table."""
    differing = demonstration.execute(
        """
        SELECT g.run_id, g.value_id
        FROM ranges AS g
        LEFT JOIN "values" AS v USING (run_id, value_id)
        LEFT JOIN allocations AS a USING (run_id, allocation_index)
        WHERE g.value_bytes IS DISTINCT FROM v.size_bytes
           OR g.role IS DISTINCT FROM CASE
                WHEN v.value_id IS NULL THEN NULL
                WHEN v.opcode = 'parameter' THEN 'parameter'
                WHEN v.opcode = 'constant' OR a.is_constant THEN 'constant'
                WHEN a.parameter_number IS NOT NULL THEN 'donated'
                ELSE 'result' END
        """
    ).fetchall()
    assert differing == []
    roles = demonstration.execute("SELECT DISTINCT role FROM ranges ORDER BY 1").fetchall()
    assert {"constant", "donated", "parameter", "result"} <= {role for (role,) in roles}


def test_what_is_stored_is_what_the_rows_give(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Over dumps of many releases, with and without ranges: by the rows of values and ranges."""
    differing = demonstration.execute(
        """
        WITH held AS (
            SELECT
                run_id,
                allocation_index,
                count(*) AS placed_values,
                sum(v.size_bytes) AS placed_bytes,
                arg_max(value_id, (coalesce(g.end_time, -1), v.size_bytes, value_id)) AS last_id,
                arg_min(value_id, (v.opcode IS DISTINCT FROM 'parameter', value_id)) AS first_id
            FROM "values" AS v LEFT JOIN ranges AS g USING (run_id, value_id)
            GROUP BY ALL
        )
        SELECT run_id, allocation_index
        FROM allocations AS a LEFT JOIN held AS h USING (run_id, allocation_index)
        WHERE a.placed_values <> coalesce(h.placed_values, 0)
           OR a.placed_bytes <> coalesce(h.placed_bytes, 0)
           OR a.other_color_values <> (
                SELECT count(*) FROM "values" AS v
                WHERE v.run_id = a.run_id AND v.allocation_index = a.allocation_index AND v.color <> a.color)
           OR a.live_out_value_id IS DISTINCT FROM CASE WHEN a.maybe_live_out THEN h.last_id END
           OR a.parameter_value_id IS DISTINCT FROM CASE WHEN a.parameter_number >= 0 THEN h.first_id END
        """
    ).fetchall()
    assert differing == []
    counts = demonstration.execute(
        "SELECT count(live_peak_bytes), count(live_out_value_id), count(parameter_value_id),"
        " 30 * sum(other_color_values) FROM allocations"
    ).fetchone()
    assert counts is not None
    assert min(counts) > 20
