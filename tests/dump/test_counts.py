"""The parser counts and adds up to what a naive count of the lines finds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingest.dump.parse import parse_set, to_records
from tests.support.dump_sets import DumpSet, committed_sets, dump_sets
from tests.support.outside_count import OutsideCount, outside_count


def assert_counts_agree(dump_set: DumpSet) -> None:
    """Compare every figure of the outside count with the parsed dump."""
    parsed = parse_set({role: os.fspath(path) for role, path in dump_set.files.items()})
    dump = to_records(parsed)
    expected = outside_count(dump_set.texts())
    actual = OutsideCount(
        allocations=len(dump.allocations),
        values=len(dump.values),
        phi_values=sum(value.is_phi is True for value in dump.values),
        positions=sum(len(value.positions or ()) for value in dump.values),
        uses=sum(len(value.uses or ()) for value in dump.values),
        instruction_texts=sum(value.instruction_text is not None for value in dump.values),
        color_reuse=len(dump.color_reuse),
        schedule=len(dump.schedule or ()),
        ranges=len(dump.ranges or ()),
        peak_lines=len(dump.peak_lines or ()),
        tree_nodes=len(dump.stack_nodes or ()),
        allocation_bytes=sum(allocation.size for allocation in dump.allocations),
        value_bytes=sum(value.size for value in dump.values),
        value_offsets=sum(value.offset for value in dump.values),
        range_slots=sum(live.end - live.start for live in dump.ranges or ()),
        peak_line_bytes=sum(line.bytes for line in dump.peak_lines or ()),
        tree_own_bytes=sum(node.current for node in dump.stack_nodes or ()),
        total_bytes=dump.total_bytes,
        peak_time=parsed.liveness.peak_time if parsed.liveness else None,
        peak_bytes=parsed.liveness.peak_bytes if parsed.liveness else None,
    )
    assert expected == actual, dump_set.name


@pytest.mark.parametrize("dump_set", committed_sets(), ids=lambda dump_set: dump_set.name)
def test_counts_and_peak_agree_with_a_naive_count(dump_set: DumpSet) -> None:
    """Rows, sums and the recomputed peak are those that a line-by-line count finds."""
    assert_counts_agree(dump_set)


def test_counts_agree_on_the_corpus(shared_corpus: Path) -> None:
    """The 337 sets of the corpus count as a line-by-line count does."""
    sets = dump_sets(shared_corpus)
    assert len(sets) == 337
    for dump_set in sets:
        assert_counts_agree(dump_set)
