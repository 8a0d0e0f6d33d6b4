"""Uses, schedule and live ranges that a protobuf implies, against those that the compiler prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.dump.parse import parse_dump
from ingest.hlo.proto import read_proto

DATA = Path(__file__).parents[1] / "data" / "hlo"
ENDING = "-buffer-assignment.txt"
SETS = sorted(path for path in DATA.rglob("*.hlo.pb") if "tf-1" not in path.parent.name)
UNSCHEDULED = ("j0413", "j0426", "t114", "t115", "t21", "t25", "t26", "t210", "t212")
"""Releases whose protobuf holds no schedule: on CPU until jaxlib 0.4.36."""


def assert_as_printed(proto_file: Path) -> bool:
    """Compare what is derived of a protobuf with the dump of the same stem; False if it has no ranges."""
    dump = parse_dump(proto_file.with_name(proto_file.name.removesuffix(".hlo.pb") + ENDING))
    proto = read_proto(proto_file, derive_lifetimes=True)
    found = proto.lifetimes
    assert found is not None
    if dump.values and dump.values[0].uses is not None:
        printed = {
            value.id: sorted((use.instruction, use.operand_number, use.operand_index or "{}") for use in uses)
            for value in dump.values
            if (uses := value.uses) is not None
        }
        assert {id_: sorted(found.uses[id_]) for id_ in printed} == printed
    if dump.ranges is None or found.schedule is None:
        return False
    assert found.schedule == dump.schedule
    places = {value.value_id: (value.instruction, value.shape_index) for value in proto.values}
    derived = {places[id_]: range_ for id_, range_ in found.ranges.items()}
    assert derived == {(one.instruction, one.shape_index): (one.start, one.end) for one in dump.ranges}
    return True


@pytest.mark.parametrize("proto_file", SETS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_they_are_what_the_compiler_prints(proto_file: Path) -> None:
    """Every use, slot and range of a scheduled module."""
    assert assert_as_printed(proto_file)


def test_they_are_what_the_compiler_prints_on_the_whole_corpus(shared_corpus: Path) -> None:
    """Of every release that stores a schedule: CPU since jaxlib 0.4.36, TPU, GPU; uses of all others too."""
    compared = 0
    for path in sorted(shared_corpus.rglob("*.hlo.pb")):
        has_ranges = assert_as_printed(path)
        assert has_ranges != (path.parent.name in UNSCHEDULED), path
        compared += has_ranges
    assert compared >= 120


def test_a_module_without_a_schedule_has_uses_and_no_ranges() -> None:
    """Nothing is guessed."""
    [proto_file] = list((DATA / "tf-1.15-cpu").glob("*.hlo.pb"))
    found = read_proto(proto_file, derive_lifetimes=True).lifetimes
    assert found is not None
    assert found.schedule is None
    assert found.ranges == {}
    assert any(found.uses.values())


def test_they_are_derived_only_where_asked_for() -> None:
    """A dump that prints them needs no second set."""
    assert read_proto(SETS[0]).lifetimes is None


@pytest.mark.parametrize("proto_file", SETS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_the_heap_simulator_goes_by_them(proto_file: Path) -> None:
    """A second judge: steps allocate where ranges start, free where they end, and come in that order."""
    proto = read_proto(proto_file, derive_lifetimes=True)
    assert proto.lifetimes is not None
    ranges = proto.lifetimes.ranges
    assert proto.heap_traces
    for trace in proto.heap_traces:
        slots = [ranges[event.value_id][event.kind == "free"] for event in trace.events]
        assert slots == sorted(slots)
