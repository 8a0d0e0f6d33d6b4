"""Two runs on one page: rows that add up, and slots that correspond."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import duckdb
import pytest

from ingest.report.compared import compare_runs, longest_rise


@pytest.fixture(scope="module")
def batches(demonstration: duckdb.DuckDBPyConnection) -> list[tuple[int, int]]:
    """Three runs of one model, of batch size 8, 16 and 32, with their peaks."""
    return demonstration.execute(
        "SELECT run_id, peak_bytes FROM run_labels JOIN runs USING (run_id) WHERE key = 'batch'"
        " ORDER BY value::INTEGER"
    ).fetchall()


@pytest.mark.parametrize(("pairs", "most"), [(1, 1), pytest.param(3, 400, marks=pytest.mark.slow)])
def test_changes_add_up(
    demonstration: duckdb.DuckDBPyConnection,
    batches: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    pairs: int,
    most: int,
) -> None:
    """The rows come to the change of the peak, also where most of them are one row."""
    monkeypatch.setattr("ingest.report.compared.CHANGES_SHOWN", most)
    for (before, before_peak), (after, after_peak) in [(batches[-1], batches[0]), *pairwise(batches)][:pairs]:
        changes = compare_runs(demonstration, before, after).changes
        assert sum(row.after_bytes - row.before_bytes for row in changes) == after_peak - before_peak != 0
        assert len(changes) <= most + 1


def test_a_run_compared_with_itself_has_no_change(
    demonstration: duckdb.DuckDBPyConnection, batches: list[tuple[int, int]]
) -> None:
    """And nothing to align."""
    [(run, _), *_] = batches
    comparison = compare_runs(demonstration, run, run)
    assert (comparison.changes, comparison.anchors, comparison.order_kept) == ([], [], None)


def test_slots_correspond_where_the_order_is_kept(
    demonstration: duckdb.DuckDBPyConnection, batches: list[tuple[int, int]]
) -> None:
    """Two batch sizes of one model are scheduled alike: pairs of slots ascend on both sides."""
    comparison = compare_runs(demonstration, batches[0][0], batches[1][0])
    assert comparison.order_kept is not None
    assert 0.8 <= comparison.order_kept <= 1
    assert len(comparison.anchors) > 2
    for one, next_ in pairwise(comparison.anchors):
        assert one[0] <= next_[0]
        assert one[1] <= next_[1]


def test_the_longest_rise_is_one_of_the_longest() -> None:
    """As long as trying all parts finds, and never falling."""
    assert longest_rise([]) == []
    assert longest_rise([3, 1, 2, 2, 0]) == [1, 2, 3]
    dice = random.Random(7)
    for _ in range(200):
        numbers = [dice.randrange(5) for _ in range(dice.randrange(8))]
        found = longest_rise(numbers)
        assert found == sorted(set(found))
        assert all(numbers[a] <= numbers[b] for a, b in pairwise(found))
        best = max(
            size
            for size in range(len(numbers) + 1)
            for part in combinations(numbers, size)
            if list(part) == sorted(part)
        )
        assert len(found) == best
