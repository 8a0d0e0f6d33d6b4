"""Live bytes are the union of addresses, whatever values share: checked by brute force."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.dump.parse import parse_set
from ingest.dump.parsed import ParsedDump
from ingest.liveness import union
from ingest.liveness.measure import NOT_LIVE, Intervals, Liveness, allocation_peaks, live_peak, measure
from tests.support.dump_sets import DumpSet, committed_sets, dump_sets
from tests.support.live_bytes import differences, summed_curves, union_at, union_curves

SLOTS = 7


@st.composite
def intervals_of_all_kinds(draw: st.DrawFn) -> Intervals:
    """Few addresses and few slots, so that ranges nest, cross, touch, repeat and are empty."""
    rows = []
    for _ in range(draw(st.integers(0, 9))):
        start = draw(st.integers(0, SLOTS))
        place = (draw(st.integers(0, 2)), draw(st.integers(0, 6)), draw(st.integers(0, 6)))
        rows.append((*place, start, draw(st.integers(start, SLOTS))))
    return Intervals(*([row[column] for row in rows] for column in range(5)))


def assert_live_bytes_are_the_union(intervals: Intervals, found: Liveness, slots: int) -> None:
    """Compare everything that is measured with the union of addresses."""
    expected = union_curves(intervals)
    assert differences(summed_curves(intervals, found.gained, found.handover), expected) == []
    sums = {time: sum(by_allocation.values()) for time, by_allocation in expected.items()}
    if not expected:
        assert (found.peak_time, found.peak_bytes, len(found.at_peak)) == (None, None, 0)
        return
    peak_bytes = max(sums.values())
    assert found.peak_bytes == peak_bytes
    assert found.peak_time is not None
    first = min(time for time in sums if sums[time] == peak_bytes)
    assert found.peak_time == (first if peak_bytes else 0)
    assert sum(one for one in found.at_peak if one != NOT_LIVE) == peak_bytes
    for start, end, counted in zip(intervals.start, intervals.end, found.at_peak, strict=True):
        assert (counted != NOT_LIVE) == (start <= found.peak_time <= end)
    for allocation, (time, size) in allocation_peaks(intervals, found.gained, found.handover).items():
        assert size == max(curve.get(allocation, 0) for curve in expected.values())
        assert union_at(time, intervals)[allocation] == size
        peak = live_peak(intervals, found.gained, found.handover, slots, among={allocation})
        assert peak is not None
        assert peak[1] == size


@given(intervals_of_all_kinds())
def test_live_bytes_are_the_union_of_addresses(intervals: Intervals) -> None:
    """Whatever the ranges share, the sums give the union: in every slot, for every allocation."""
    assert_live_bytes_are_the_union(intervals, measure(intervals, SLOTS), SLOTS)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [(union, "_STEPS", 0), (union, "_MANY", 0), (sys.modules["ingest.liveness.measure"], "_MANY", 0)],
    ids=["counted in a tree", "compressed by NumPy", "summed by NumPy"],
)
def test_every_way_of_measuring_gives_the_same(
    module: object, name: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is chosen for many intervals, or for many that overlap, answers as for few."""
    cases = [intervals for dump_set in committed_sets()[:8] if (intervals := _intervals(dump_set))]
    cases.append(
        Intervals([0] * 6, [0, 2, 1, 0, 0, 5], [4, 4, 2, 6, 6, 1], [0, 1, 1, 3, 3, 3], [4, 1, 3, 5, 5, 5])
    )
    plain = [measure(intervals, max(intervals.end)) for intervals in cases]
    plain_peaks = _peaks(cases, plain)
    monkeypatch.setattr(module, name, value)
    found = [measure(intervals, max(intervals.end)) for intervals in cases]
    assert [one[:5] for one in found] == [one[:5] for one in plain]
    assert _peaks(cases, found) == plain_peaks


def _peaks(cases: list[Intervals], measured: list[Liveness]) -> list[dict[int, tuple[int, int]]]:
    return [
        allocation_peaks(intervals, found.gained, found.handover)
        for intervals, found in zip(cases, measured, strict=True)
    ]


def test_values_of_two_branches_count_once() -> None:
    """Two values share addresses over many slots, as those of a conditional's branches can."""
    shared = Intervals([3, 3, 3], [0, 0, 512], [1024, 1024, 512], [1, 3, 4], [6, 5, 9])
    found = measure(shared, 9)
    assert (found.peak_time, found.peak_bytes) == (1, 1024)
    assert (list(found.gained), list(found.handover)) == ([1024, 0, 0], [512, 1024, 0])
    assert found.overlaps == [(1, 0), (2, 0)]


@pytest.mark.parametrize(
    "shape",
    [
        lambda n: [(64 * (7919 * i % n), 64, i, 2 * n - i) for i in range(n)],
        lambda n: [(0, 64 * n, i, n + i) for i in range(n)],
        lambda n: [(128 * i, 64, i, 5 * n) if i < n // 2 else (i % 97, 64 * n, i, n + i) for i in range(n)],
    ],
    ids=["all alive at once", "all on one place", "wide ones over lasting ones"],
)
def test_the_work_grows_with_the_intervals(shape: Callable[[int], list[tuple[int, ...]]]) -> None:
    """Twice the values take about twice the steps, whatever they share; the square would take four times."""
    steps = [_count_lines(shape(count)) for count in (300, 600, 1200)]
    assert steps[1] < 2.6 * steps[0]
    assert steps[2] < 2.6 * steps[1]


def _count_lines(rows: list[tuple[int, ...]]) -> int:
    """Return how many lines Python runs to measure: a clock would depend on the machine."""
    lines = 0

    def trace(_frame: object, event: str, _argument: object) -> object:
        nonlocal lines
        lines += event == "line"
        return trace

    intervals = Intervals([0] * len(rows), *([row[column] for row in rows] for column in range(4)))
    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        measure(intervals, max(intervals.end))
    finally:
        sys.settrace(before)
    return lines


def _parsed(dump_set: DumpSet) -> ParsedDump:
    return parse_set({role: os.fspath(path) for role, path in dump_set.files.items()})


def _intervals(dump_set: DumpSet) -> Intervals | None:
    return intervals_of(_parsed(dump_set))


def intervals_of(dump: ParsedDump) -> Intervals | None:
    """Return what a dump says of places and ranges; None without ranges."""
    if not dump.ranges:
        return None
    rows: Iterator[tuple[int, ...]] = (
        (dump.allocation_of[row], dump.offsets[row], dump.sizes[row], start, end)
        for (_, _, start, end), row in zip(dump.ranges, dump.range_values, strict=True)
        if row >= 0
    )
    return Intervals(*(list(column) for column in zip(*rows, strict=True)))


@pytest.mark.parametrize("dump_set", committed_sets(), ids=lambda dump_set: dump_set.name)
def test_real_dumps_have_the_live_bytes_of_the_union(dump_set: DumpSet) -> None:
    """In every slot and every allocation of a real dump the sums are the union."""
    dump = _parsed(dump_set)
    intervals = intervals_of(dump)
    if intervals is None:
        assert dump.liveness is None or dump.liveness.peak_bytes is None
        return
    assert dump.liveness is not None
    assert dump.schedule_length is not None
    assert_live_bytes_are_the_union(intervals, dump.liveness, dump.schedule_length)


@pytest.mark.slow
def test_the_corpus_has_the_live_bytes_of_the_union(shared_corpus: Path) -> None:
    """The same for the sets of many releases outside the repository."""
    for dump_set in dump_sets(shared_corpus):
        test_real_dumps_have_the_live_bytes_of_the_union(dump_set)
