"""How sets are shared out to the workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.dump.find import discover
from ingest.dump.sets import DumpSet, Member
from ingest.staging.at_hand import AtHand
from ingest.staging.parts import Parts
from ingest.staging.stage import is_large
from ingest.staging.task import Task
from ingest.staging.workers import CHUNK_BYTES, CHUNK_SETS, SET_BYTES, _chunks, stage_tasks
from tests.support.dump_sets import DATA


def tasks_of(sizes: list[int]) -> list[Task]:
    """Return tasks with so much text."""
    return [
        Task(number, DumpSet("/dumps", f"module_{number}", (Member("primary", "", size, 0),)))
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize("jobs", [1, 2, 3, 16])
@pytest.mark.parametrize(
    "sizes",
    [
        [4700] * 5900,
        [3000] * 2100,
        [100] * 10,
        [7],
        [40 << 20] * 5,
        [1, 40 << 20, 1, 1, 40 << 20],
        [0] * 9000,
    ],
    ids=["many", "tiny", "few", "one", "large", "mixed", "empty"],
)
def test_workers_get_like_shares(sizes: list[int], jobs: int) -> None:
    """Every set once and in order; no more for one worker than for another, as far as sets can be shared."""
    tasks = tasks_of(sizes)
    chunks = list(_chunks(tasks, jobs))
    assert [task for chunk in chunks for task in chunk] == tasks
    assert all(chunks)
    costs = [sum(sizes[task.run_no] + SET_BYTES for task in chunk) for chunk in chunks]
    largest = max(sizes) + SET_BYTES
    assert max(costs) <= CHUNK_BYTES + largest
    assert max(map(len, chunks)) <= max(CHUNK_SETS, CHUNK_BYTES // SET_BYTES) + 1
    shares = [sum(costs[worker::jobs]) for worker in range(jobs)]
    assert max(shares) - min(shares) <= 2 * largest * (len(chunks) // jobs + 1)


def test_no_tasks_are_no_chunks() -> None:
    """Where all sets are large there is nothing to share out."""
    assert list(_chunks([], 2)) == []


def test_little_text_makes_one_part(tmp_path: Path) -> None:
    """Where one process reads all sets, sharing them out would only make more files to write and to load."""
    sets = [one for one in discover([DATA]).sets if not is_large(one)][:3]
    AtHand.create(Parts(tmp_path).at_hand.path, 3)
    staged = list(stage_tasks([Task(number, one) for number, one in enumerate(sets)], Parts(tmp_path), 2))
    assert [count for count, _ in staged] == [3]
    assert len(Parts(tmp_path).complete()) == 1
