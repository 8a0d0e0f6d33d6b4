"""Addresses that several values share, and the turns that these take there, as an import stores them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.liveness import address_columns
from ingest.liveness.address_columns import shared_addresses_of_many
from ingest.liveness.addresses import Located, Loop, SharedAddress, shared_addresses
from ingest.liveness.occupancy import NOT_RANGED

SLOTS = 6


@st.composite
def values(draw: st.DrawFn) -> Located:
    """Few places and slots, so that values share addresses; some are empty, some have no live range."""
    rows = []
    for _ in range(draw(st.integers(0, 9))):
        size, start = draw(st.sampled_from([0, 4, 8])), draw(st.integers(NOT_RANGED, SLOTS))
        end = NOT_RANGED if start == NOT_RANGED else draw(st.integers(start, SLOTS))
        handover = 0 if end == NOT_RANGED else draw(st.sampled_from([0, size // 2, size]))
        rows.append((draw(st.integers(0, 1)), draw(st.integers(0, 1)), size, start, end, handover))
    return Located(*zip(*rows, strict=True)) if rows else Located(*[()] * 6)


def by_brute_force(values: Located, loops: list[Loop], *, has_ranges: bool) -> list[SharedAddress]:
    """Follow every turn from value to value: one ends with a value that hands over less than all it has."""
    rows = list(zip(*values, strict=True))
    found = []
    for place in sorted({row[:2] for row in rows}):
        here = [number for number, row in enumerate(rows) if row[:2] == place and row[2]]
        if len(here) < 2:
            continue
        ending = {number for number in here if rows[number][5] < rows[number][2]}
        turns = len(ending)
        freed = sum(rows[number][2] - rows[number][5] for number in here)
        going_on = set()
        for entered, result in loops:
            if (
                entered not in here
                or rows[result][:2] != place
                or NOT_RANGED in (rows[entered][4], rows[result][3])
            ):
                continue
            last = [(rows[number][4], number) for number in ending if rows[number][4] >= rows[entered][4]]
            if last and min(last)[0] < rows[result][3]:
                going_on.add(min(last)[1])
        turns -= len(going_on)
        freed -= sum(rows[number][2] - rows[number][5] for number in going_on)
        sizes = [rows[number][2] for number in here]
        known = (turns, freed) if has_ranges else (None, None)
        found.append(SharedAddress(place[0], place[1], len(here), max(sizes), sum(sizes), *known))
    return found


@given(values(), st.data(), st.booleans())
def test_every_shared_address_is_what_brute_force_finds(
    values: Located, data: st.DataObject, has_ranges: bool
) -> None:
    """One by one as in columns, which large dumps have, some at a time."""
    rows = st.integers(0, max(0, len(values.size) - 1))
    loops = data.draw(st.lists(st.builds(Loop, rows, rows), max_size=4)) if values.size else []
    expected = by_brute_force(values, loops, has_ranges=has_ranges)
    assert shared_addresses(values, loops, has_ranges=has_ranges) == expected
    columns = Located(*(np.array(column, np.int64) for column in values))  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(address_columns, "_AT_ONCE", 2)
        some = list(shared_addresses_of_many(columns, loops, has_ranges=has_ranges))
    assert sorted(row for rows in some for row in rows) == expected


def test_the_state_of_a_loop_is_one_turn() -> None:
    """What lies in its place between its last use in the body and its update there is another one."""
    values = Located(
        [0] * 6, [0] * 6, [8, 8, 8, 8, 8, 4], [0, 2, 5, 7, 9, 13], [2, 4, 6, 9, 12, 14], [8, 0, 0, 8, 0, 0]
    )
    assert shared_addresses(values, [Loop(0, 4)], has_ranges=True) == [SharedAddress(0, 0, 6, 8, 44, 3, 20)]
    assert shared_addresses(values, [], has_ranges=True) == [SharedAddress(0, 0, 6, 8, 44, 4, 28)]


def test_what_is_stored_is_what_the_rows_give(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Over dumps of many releases, with and without ranges and loops: by the rows of the other tables."""
    sql = (Path(__file__).parent / "address_turns.sql").read_text(encoding="utf-8")
    expected = demonstration.execute(sql).fetchall()
    assert demonstration.execute("FROM shared_addresses ORDER BY ALL").fetchall() == expected
    assert len(expected) > 50
