"""The resident peak is XProf's peak heap: figures of XProf 2.24.2, memory space 0."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Literal

import pytest

from ingest.database.connect import open_database
from ingest.dump.parse import parse_set
from ingest.dump.resident import MainMemory
from ingest.hlo.assignment import HeapEvent
from ingest.hlo.heap_trace import simulated_peak, traced_resident_peak
from ingest.hlo.proto import read_proto
from ingest.pipeline.importer import import_dumps
from tests.support.dump_sets import DATA, committed_sets, dump_sets

PEAK_HEAP = {
    "dumps/jaxlib-0.10.0-cpu/module_0005.jit_cd": 12_309,
    "dumps/jaxlib-0.11.0-cpu/module_0006.jit_so": 24_344,
    "dumps/jaxlib-0.11.2-cpu/module_0062.jit_sc": 360_552,
    "dumps/jaxlib-0.11.2-cpu/module_0066.jit__lambda": 0,
    "dumps/jaxlib-0.4.13-cpu/module_0002.jit_cd": 12_309,
    "dumps/jaxlib-0.4.26-cpu/module_0023.jit_cb": 544,
    "dumps/jaxlib-0.4.26-cpu/module_0033.jit__lambda_": 2_996,
    "dumps/jaxlib-0.4.36-cpu/module_0055.jit_sc": 393_312,
    "dumps/jaxlib-0.7.2-cpu/module_0039.jit__lambda": 240,
    "dumps/jaxlib-0.8.3-cpu/module_0073.jit_weird_name": 72,
    "dumps/jaxlib-0.9.2-cpu/module_0013.jit_nm": 16_416,
    "dumps/tf-2.10-cpu/module_0035.": 40_984,
    "dumps/tf-2.12-cpu/module_0038.": 8_216,
    "dumps/tpu-jaxlib-0.10.0/module_0093.jit_mlp": 17_303_040,
    "dumps/tpu-jaxlib-0.5.3/module_0077.jit__lambda_": 12_288,
    "dumps/tpu-jaxlib-0.5.3/module_0126.jit__lambda_": 8_388_608,
    "hlo/jaxlib-0.10.2-cpu/module_0010.jit_dn": 33_044,
    "hlo/jaxlib-0.4.36-cpu/module_0007.jit_so": 24_056,
    "hlo/tpu-jaxlib-0.10.0/module_0024.jit_dn": 34_816,
}


def resident_peak_of(files: dict[str, Path]) -> int | None:
    """Return the figure of one set."""
    return parse_set({role: os.fspath(path) for role, path in files.items()}).resident_peak


@pytest.mark.parametrize("start", PEAK_HEAP)
def test_the_resident_peak_is_xprofs_peak_heap(start: str) -> None:
    """The text alone gives what XProf works out from the protobuf."""
    [dump_set] = [one for one in committed_sets() if one.name.startswith(start)]
    assert resident_peak_of(dump_set.files) == PEAK_HEAP[start]


def test_arenas_without_ranges_leave_the_resident_peak_unknown() -> None:
    """TF 2.1 prints no live ranges: what is live in its arena is not told; without an arena all is."""
    peaks = {one.name: resident_peak_of(one.files) for one in committed_sets() if "tf-2.5-cpu" in one.name}
    assert sorted(peaks.values(), key=str) == [8216, None]


def test_the_heap_simulators_steps_stand_in_for_ranges(database: Path, tmp_path: Path) -> None:
    """A protobuf alone has no live ranges, and gives the same peak heap."""
    for name in ("jaxlib-0.10.2-cpu/module_0010.jit_dn", "tpu-jaxlib-0.10.0/module_0024.jit_dn"):
        [path] = (DATA / "hlo").glob(f"{name}*.pb*")
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert import_dumps([tmp_path], database, jobs=1).loaded == 2
    with open_database(database, read_only=True) as connection:
        rows = connection.execute("SELECT resident_peak_bytes FROM runs ORDER BY module_id").fetchall()
    assert rows == [(33_044,), (34_816,)]


def test_a_share_takes_over_memory_that_may_be_freed_already() -> None:
    """Memory goes with the last of those that share it, and comes back with a share after that."""
    sizes = {1: 100, 2: 100, 3: 10, 4: 100}
    steps: list[tuple[Literal["alloc", "free", "share"], int, int | None]] = [
        ("alloc", 1, None), ("alloc", 3, None), ("share", 2, 1), ("free", 1, None), ("alloc", 3, None),
        ("free", 2, None), ("share", 4, 2), ("free", 9, None), ("free", 4, None),
    ]  # fmt: skip
    events = [HeapEvent(kind, value, None, None, shared) for kind, value, shared in steps]
    assert simulated_peak(events, sizes) == 110
    again = [HeapEvent("alloc", 3, None, None, None), *events[:1], events[3], events[2]]
    assert simulated_peak(again, sizes) == 110
    assert simulated_peak(again[1:3], sizes) == 100


def test_values_of_color_0_in_an_arena_of_another_color_count() -> None:
    """Without an arena in memory space 0 the trace of its values is taken, as XProf does."""
    [path] = (DATA / "hlo").glob("jaxlib-0.10.2-cpu/module_0004*.pb")
    proto = read_proto(path)
    [trace] = proto.heap_traces
    peak = simulated_peak(trace.events, {value.value_id: value.size for value in proto.values})
    assert peak > 0
    assert traced_resident_peak(MainMemory(100), proto) == 100 + peak
    assert traced_resident_peak(MainMemory(100), dataclasses.replace(proto, heap_traces=())) == 100
    arena = MainMemory(100, frozenset({trace.allocation_index or 0}))
    assert traced_resident_peak(arena, dataclasses.replace(proto, heap_traces=())) is None
    assert traced_resident_peak(arena, dataclasses.replace(proto, heap_traces=(trace, trace))) is None


@pytest.mark.slow
def test_the_corpus_has_xprofs_peak_heap(shared_corpus: Path) -> None:
    """Every one of the 168 modules that XProf answers for has its figure."""
    figures = json.loads((shared_corpus.parent / "design/xprof-corpus.json").read_text())
    sets = {one.name.removesuffix("-buffer-assignment.txt"): one for one in dump_sets(shared_corpus)}
    answered = {name: told for name, told in figures.items() if "error" not in told}
    assert len(answered) == 168
    for name, told in answered.items():
        # XProf leaves out fields of zero.
        assert resident_peak_of(sets[name].files) == round((told.get("peakHeapMib") or 0) * 2**20), name
