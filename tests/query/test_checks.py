"""Figures of the database against independent computations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.pipeline.importer import import_dumps
from tests.support.padded_bytes import padded_bytes
from tests.support.query_databases import DATA, rows_as_dicts


def _load(paths: list[Path], folder: Path) -> Path:
    path = folder / "xbuf.duckdb"
    import_dumps(paths, path, jobs=1)
    return path


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """All dumps that the repository carries."""
    with open_database(_load([DATA], tmp_path_factory.mktemp("committed")), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def corpus(
    tmp_path_factory: pytest.TempPathFactory, shared_corpus: Path, shared_seeds: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The 342 dump sets that lie outside the repository."""
    paths = [shared_seeds, shared_corpus]
    with open_database(_load(paths, tmp_path_factory.mktemp("corpus")), read_only=True) as connection:
        yield connection


def naive_peak(ranges: list[tuple[int, int, int, int, int]], last_slot: int) -> tuple[int | None, int | None]:
    """Find the peak slot by slot, as the union of the addresses of what is live there.

    Args:
        ranges: allocation, offset, size, start and end of each value.
    """
    best: tuple[int | None, int | None] = (None, None)
    for time in range(last_slot + 1):
        by_allocation: dict[int, list[tuple[int, int]]] = {}
        for allocation, offset, size, start, end in ranges:
            if start <= time <= end:
                by_allocation.setdefault(allocation, []).append((offset, offset + size))
        live = 0
        for intervals in by_allocation.values():
            reached = -1
            for low, high in sorted(intervals):
                live += max(0, high - max(low, reached))
                reached = max(reached, high)
        if ranges and (best[1] is None or live > best[1]):
            best = (time, live)
    return best


def check_sums(connection: duckdb.DuckDBPyConnection) -> int:
    rows = connection.execute(
        "SELECT r.run_id, r.total_bytes, sum(a.size_bytes)::BIGINT FROM runs AS r JOIN allocations AS a "
        "USING (run_id) WHERE r.total_bytes IS NOT NULL GROUP BY ALL"
    ).fetchall()
    assert [row for row in rows if row[1] != row[2]] == []
    return len(rows)


def check_peaks(connection: duckdb.DuckDBPyConnection, most_work: int) -> int:
    """Compare the peaks of all runs whose naive computation takes at most `most_work` steps."""
    checked = 0
    for run in rows_as_dicts(
        connection,
        "SELECT run_id, r.stem, r.peak_time, r.peak_bytes, max(g.end_time) AS last_slot, count(*) AS number "
        "FROM runs AS r JOIN ranges AS g USING (run_id) GROUP BY ALL ORDER BY run_id",
    ):
        if run["last_slot"] * run["number"] > most_work:
            continue
        ranges = connection.execute(
            "SELECT v.allocation_index, v.offset_bytes, v.size_bytes, g.start_time, g.end_time "
            'FROM ranges AS g JOIN "values" AS v USING (run_id, value_id) WHERE run_id = ?',
            [run["run_id"]],
        ).fetchall()
        assert naive_peak(ranges, run["last_slot"]) == (run["peak_time"], run["peak_bytes"]), run["stem"]
        checked += 1
    return checked


def check_padding(connection: duckdb.DuckDBPyConnection) -> int:
    rows = connection.execute(
        # Sync flags (memory space 2) are single words, whatever tiles their layout prints.
        "SELECT DISTINCT shape, size_bytes, logical_bytes, memory_space = 2 "
        'FROM "values" WHERE tiling IS NOT NULL'
    ).fetchall()
    for text, size, logical, is_flag in rows:
        assert size == (logical if is_flag else padded_bytes(text)), text
        assert size >= logical, text
    return len(rows)


def test_allocations_add_up_to_the_printed_total(committed: duckdb.DuckDBPyConnection) -> None:
    """Each run's allocations sum to the total that the dump prints."""
    assert check_sums(committed) > 40


def test_the_peak_is_that_of_a_naive_computation(committed: duckdb.DuckDBPyConnection) -> None:
    """Going through every slot by hand finds the same peak at the same slot."""
    assert check_peaks(committed, 300_000) > 30


def test_tiled_values_have_the_size_of_the_formula(committed: duckdb.DuckDBPyConnection) -> None:
    """The size of every tiled array follows from its shape and tiles."""
    assert check_padding(committed) > 20


def test_the_corpus_adds_up(corpus: duckdb.DuckDBPyConnection) -> None:
    """The same three checks on all dump sets at hand."""
    assert check_sums(corpus) > 300
    assert check_peaks(corpus, 300_000) > 250
    assert check_padding(corpus) > 100
