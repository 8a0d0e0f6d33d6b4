"""A dump that lost its primary file loads from its protobuf, with what its other texts say."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dump_sets import DATA
from tests.support.place import Place

FOLDER = DATA / "hlo" / "jaxlib-0.10.2-cpu"
STEM, OTHER = "module_0010.jit_dn.cpu_after_optimizations", "module_0004.jit_cd.cpu_after_optimizations"
PRIMARY, VALUES, LIVE_RANGE, PROTO = (
    "-buffer-assignment.txt",
    "-buffer-assignment-values.txt",
    "-live-range.txt",
    ".hlo.pb",
)
OF_VALUES = {
    "positions": "*",
    "uses": "*",
    "values": "value_id, instruction, shape_index, opcode, op_name, instruction_text",
}
OF_RANGES = {"ranges": "*", "schedule": "*", "peak_breakdown": "*"}


class Texts(Place):
    """Holds some files of a set."""

    def put(self, *endings: str, of: str = STEM) -> None:
        for ending in endings:
            shutil.copy(FOLDER / f"{of}{ending}", self.folder / f"{STEM}{ending}")
            os.utime(self.folder / f"{STEM}{ending}", (1_700_000_000, 1_700_000_000))

    def rows(self, columns: dict[str, str]) -> dict[str, list[Any]]:
        return {
            table: self.query(f'SELECT {what} FROM "{table}" ORDER BY ALL') for table, what in columns.items()
        }

    def kinds(self) -> list[str]:
        return [kind for (kind,) in self.query("SELECT kind FROM notices ORDER BY kind")]


@pytest.fixture
def place(tmp_path: Path, database: Path) -> Iterator[Texts]:
    place = Texts(tmp_path / "dumps", database)
    yield place
    place.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Texts]:
    """The set with all its files."""
    folder = tmp_path_factory.mktemp("whole")
    place = Texts(folder / "dumps", folder / "whole.duckdb")
    place.put(PRIMARY, VALUES, LIVE_RANGE, PROTO)
    assert place.load().loaded == 1
    yield place
    place.close()


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param((VALUES,), marks=pytest.mark.slow),
        pytest.param((LIVE_RANGE,), marks=pytest.mark.slow),
        (VALUES, LIVE_RANGE),
    ],
)
def test_the_texts_give_what_they_give_in_a_whole_set(
    texts: tuple[str, ...], place: Texts, whole: Texts
) -> None:
    """Row by row, and the figures of the run; one notice says that the primary file is missing."""
    place.put(PROTO, *texts)
    summary = place.load()
    assert (summary.found, summary.loaded, summary.rejected) == (1, 1, 0)
    assert place.kinds() == ["no-primary"]
    [(message,)] = place.query("SELECT message FROM notices")
    assert all(f"{STEM}{ending}" in message for ending in texts)
    for ending, columns in ((VALUES, OF_VALUES), (LIVE_RANGE, OF_RANGES)):
        if ending in texts:
            assert place.rows(columns) == whole.rows(columns)
    figures = (
        "total_bytes, has_values" if VALUES in texts else "schedule_length, peak_time, peak_bytes, has_ranges"
    )
    assert place.query(f"SELECT {figures} FROM runs") == whole.query(f"SELECT {figures} FROM runs")
    sizes = "SELECT allocation_index, size_bytes, kind FROM allocations ORDER BY ALL"
    assert place.query(sizes) == whole.query(sizes)
    assert place.load().unchanged == 1


@pytest.mark.slow
@pytest.mark.parametrize("ending", [VALUES, LIVE_RANGE])
def test_a_text_of_another_compilation_is_left_out(ending: str, place: Texts) -> None:
    """It is held against the protobuf, which loads without it; the right text completes the run later."""
    place.put(PROTO)
    place.put(ending, of=OTHER)
    assert place.load().loaded == 1
    assert place.kinds() == ["no-primary", "total-mismatch" if ending == VALUES else "value-mismatch"]
    assert place.query("SELECT uses_from, ranges_from FROM runs") == [("hlo", "hlo")]
    assert place.load().unchanged == 1
    place.put(ending)
    os.utime(place.folder / f"{STEM}{ending}", (1_700_000_001, 1_700_000_001))
    assert place.load().loaded == 1
    origins = ("dump", "hlo") if ending == VALUES else ("hlo", "dump")
    assert place.query("SELECT run_id, uses_from, ranges_from FROM runs") == [(1, *origins)]


def test_a_damaged_text_is_left_out_and_the_other_is_used(place: Texts, whole: Texts) -> None:
    """Nothing of what was read before the damage is kept."""
    place.put(PROTO, VALUES, LIVE_RANGE)
    values = place.folder / f"{STEM}{VALUES}"
    text = values.read_text()
    values.write_text(text[: text.rindex(" uses:")])
    os.utime(values, (1_700_000_000, 1_700_000_000))
    assert place.load().loaded == 1
    assert "no-primary" in place.kinds()
    assert len(place.kinds()) == 2
    assert place.query("SELECT format, uses_from, ranges_from FROM runs") == [
        (
            ["live_range", "peak", "peak_cumulative", "peak_index", "protobuf_alone", "stack_tree"],
            "hlo",
            "dump",
        )
    ]
    assert place.query("SELECT total_bytes FROM runs") == whole.query("SELECT total_bytes FROM runs")
    assert place.rows(OF_RANGES) == whole.rows(OF_RANGES)
    [(file, line)] = place.query("SELECT file, line FROM notices WHERE kind <> 'no-primary'")
    assert (file, line > 1) == (str(values), True)


@pytest.mark.slow
def test_the_primary_file_completes_the_run(place: Texts, whole: Texts) -> None:
    """It is the same run, and then one as if all its files had come at once."""
    place.put(PROTO, VALUES)
    place.load()
    place.put(LIVE_RANGE)
    assert place.load().loaded == 1
    place.put(PRIMARY)
    assert place.load().loaded == 1
    assert place.kinds() == []
    columns = {**OF_VALUES, **OF_RANGES, "runs": "run_id, content_sha256, total_bytes, peak_bytes"}
    assert place.rows(columns) == whole.rows(columns)


@pytest.mark.slow
def test_without_a_protobuf_it_stays_a_reject(place: Texts) -> None:
    """So it does where protobufs are not to be read."""
    place.put(VALUES)
    summary = place.load()
    assert (summary.found, summary.rejected) == (1, 1)
    place.put(PROTO)
    assert place.load(read_hlo=False).rejected == 1
    assert place.load().loaded == 1
