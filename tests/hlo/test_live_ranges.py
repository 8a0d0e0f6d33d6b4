"""Uses, schedule and live ranges that a protobuf implies, against those that the compiler prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from ingest.dump.parse import parse_dump
from ingest.hlo.assignment import HloProto, ProtoValue
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


def heap_steps(proto: HloProto) -> list[list[int]]:
    """Return for each heap trace the derived slots of its steps: starts of ranges, at `free` ends."""
    assert proto.lifetimes is not None
    ranges = proto.lifetimes.ranges
    return [
        [ranges[event.value_id][event.kind == "free"] for event in trace.events]
        for trace in proto.heap_traces
    ]


def peaks(proto: HloProto) -> Iterator[tuple[bool, int, int]]:
    """Yield of each allocation with listed peak buffers that have ranges what these and the ranges say.

    Whether they live at one slot, their bytes, and the most bytes that live at one slot.
    """
    assert proto.lifetimes is not None
    ranges = proto.lifetimes.ranges
    values = {value.value_id: value for value in proto.values}
    for peak in proto.peak_buffers:
        if peak.value_ids and ranges.keys() >= set(peak.value_ids):
            placed = [
                value
                for value in proto.values
                if value.allocation_index == peak.allocation_index and value.value_id in ranges
            ]
            first, last = zip(*(ranges[id_] for id_ in peak.value_ids), strict=True)
            most = max(
                covered(
                    value
                    for value in placed
                    if ranges[value.value_id][0] <= slot <= ranges[value.value_id][1]
                )
                for slot in {ranges[value.value_id][0] for value in placed}
            )
            yield max(first) <= min(last), covered(values[id_] for id_ in peak.value_ids), most


def covered(values: Iterable[ProtoValue]) -> int:
    """Return how many bytes of their allocation values take, whatever they share."""
    bytes_, end = 0, 0
    for start, stop in sorted((value.offset, value.offset + value.size) for value in values):
        bytes_ += max(0, stop - max(start, end))
        end = max(end, stop)
    return bytes_


@pytest.mark.parametrize("proto_file", SETS, ids=lambda path: f"{path.parent.name}/{path.name[:20]}")
def test_the_heap_simulator_goes_by_them(proto_file: Path) -> None:
    """A second judge: steps allocate where ranges start, free where they end, and come in that order."""
    traces = heap_steps(read_proto(proto_file, derive_lifetimes=True))
    assert traces
    for slots in traces:
        assert slots == sorted(slots)


def test_the_buffers_of_a_peak_live_at_one_slot_of_them() -> None:
    """A third: what the protobuf lists as the buffers of an allocation's peak is its fullest slot."""
    proto_file = DATA / "jaxlib-0.10.2-cpu" / "module_0004.jit_cd.cpu_after_optimizations.hlo.pb"
    found = list(peaks(read_proto(proto_file, derive_lifetimes=True)))
    assert len(found) > 3
    assert all(together and listed == most for together, listed, most in found)


@pytest.mark.slow
def test_other_judges_on_the_whole_corpus(shared_corpus: Path) -> None:
    """114 of 115 traces, 198 of 204 peaks: the others differ from the printed ranges, too."""
    in_order: Counter[bool] = Counter()
    agree: Counter[bool] = Counter()
    for path in sorted(shared_corpus.rglob("*.hlo.pb")):
        proto = read_proto(path, derive_lifetimes=True)
        if proto.lifetimes is not None and proto.lifetimes.schedule:
            in_order.update(slots == sorted(slots) for slots in heap_steps(proto))
            agree.update(together and listed == most for together, listed, most in peaks(proto))
    assert in_order[False] <= 1
    assert in_order[True] >= 114
    assert agree[False] <= 6
    assert agree[True] >= 198
