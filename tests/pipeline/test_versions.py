"""Which run a dump set is: a set that gains files completes its run, other content is a new version of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.maintenance.doctor import examine
from ingest.maintenance.export import export_database, import_export
from tests.support.dump_sets import DATA
from tests.support.place import Place

FOLDER = DATA / "dumps" / "jaxlib-0.10.2-cpu"
STEM = "module_0002.jit_step.cpu_after_optimizations"
PRIMARY, VALUES, LIVE_RANGE = (
    f"{STEM}{ending}"
    for ending in ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt")
)
TABLES = ("values", "uses", "ranges", "schedule", "peak_breakdown", "run_files")


class Versions(Place):
    """Holds a set whose files change."""

    def __init__(self, folder: Path, database: Path) -> None:
        super().__init__(folder, database)
        self._time = 1_700_000_000

    def put(self, name: str, old: str = "", new: str = "") -> None:
        """Put a file of the set there, with one text in place of another."""
        text = (FOLDER / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new, 1))
        self._time += 1
        os.utime(self.folder / name, (self._time, self._time))

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def runs(self) -> list[tuple[int, bool, bool]]:
        return self.query("SELECT run_id, has_values, has_ranges FROM runs ORDER BY ALL")


@pytest.fixture
def place(tmp_path: Path, database: Path) -> Iterator[Versions]:
    place = Versions(tmp_path / "dumps", database)
    yield place
    place.close()


def other(name: str) -> tuple[str, str]:
    """Return a text of a member, and another that may stand there as well."""
    if name == LIVE_RANGE:
        return "BufferLiveRange:\n", "BufferLiveRange:\n    another_compilation{}:0-0\n"
    return 'op_name="', 'op_name="another_'


@pytest.mark.parametrize("changed", [VALUES, pytest.param(LIVE_RANGE, marks=pytest.mark.slow)])
def test_another_text_beside_an_equal_primary_is_a_new_version(changed: str, place: Versions) -> None:
    """The run of before stays as it was, with all its rows."""
    for name in (PRIMARY, VALUES, LIVE_RANGE):
        place.put(name)
    place.load(labels={"night": "1"})
    before = {table: place.query(f'FROM "{table}" ORDER BY ALL') for table in TABLES}
    place.put(changed, *other(changed))
    assert place.load().loaded == 1
    assert place.runs() == [(1, True, True), (2, True, True)]
    for table, rows in before.items():
        assert place.query(f'FROM "{table}" WHERE run_id = 1 ORDER BY ALL') == rows, table
    assert place.query("SELECT run_id FROM run_labels") == [(1,)]
    place.put(changed)  # the old content, of another time
    summary = place.load()
    assert (summary.loaded, summary.unchanged) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [(PRIMARY, VALUES, LIVE_RANGE), (PRIMARY, LIVE_RANGE, VALUES)],
)
def test_what_a_set_gains_completes_its_run(order: tuple[str, ...], place: Versions) -> None:
    """One by one, whichever comes first; the run keeps number and labels."""
    for count, name in enumerate(order, 1):
        place.put(name)
        assert place.load(labels={str(count): name}).loaded == 1
        has = [one in order[:count] for one in (VALUES, LIVE_RANGE)]
        assert place.runs() == [(1, *has)]
    assert place.query("SELECT count(*) FROM run_labels") == [(3,)]


@pytest.mark.slow
def test_what_a_set_loses_is_kept(place: Versions) -> None:
    """A set without a file that its run has is unchanged; with another file instead it is a new version."""
    place.put(PRIMARY)
    place.put(LIVE_RANGE)
    place.load()
    place.remove(LIVE_RANGE)
    assert place.load(rehash=True).unchanged == 1
    place.put(VALUES)
    assert place.load().loaded == 1
    assert place.runs() == [(1, False, True), (2, True, False)]


@pytest.mark.slow
def test_replace_keeps_the_newest_version_alone(place: Versions) -> None:
    """A changed text replaces the run as a changed primary does; a gained one completes it."""
    place.put(PRIMARY)
    place.put(LIVE_RANGE)
    place.load(replace_runs=True)
    place.put(VALUES)
    place.load(replace_runs=True)
    assert place.runs() == [(1, True, True)]
    place.put(LIVE_RANGE, *other(LIVE_RANGE))
    place.load(replace_runs=True)
    assert place.runs() == [(2, True, True)]
    assert place.query('SELECT DISTINCT run_id FROM "ranges"') == [(2,)]


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_gained_once(place: Versions) -> None:
    """Its notice is kept, and the next import has nothing to read."""
    place.put(PRIMARY)
    place.load()
    damaged = place.folder / f"{STEM}.hlo.pb"
    damaged.write_bytes(b"no protobuf")
    os.utime(damaged, (1_700_000_000, 1_700_000_000))
    assert place.load().loaded == 1
    assert place.query("SELECT count(*) FROM notices WHERE file LIKE '%.hlo.pb'") == [(1,)]
    for rehash in (False, True):
        assert place.load(rehash=rehash).unchanged == 1
    assert [run_id for run_id, *_ in place.runs()] == [1]


def test_a_file_under_a_new_name_is_read_once(place: Versions) -> None:
    """The name is recorded with size and time: a third import does not read what the second found equal."""
    import gzip

    place.put(PRIMARY)
    place.load()
    packed = place.folder / f"{PRIMARY}.gz"
    packed.write_bytes(gzip.compress((place.folder / PRIMARY).read_bytes()))
    os.utime(packed, (1_700_000_000, 1_700_000_000))
    place.remove(PRIMARY)
    assert place.load().unchanged == 1
    assert place.query("SELECT file_name FROM run_files") == [(packed.name,)]
    assert place.load(dry_run=True).unchanged == 1


@pytest.mark.slow
def test_versions_stay_apart_through_an_export(place: Versions, tmp_path: Path) -> None:
    """An export has both; a database that has one of them takes the other; what lacks a file is completed."""
    place.put(PRIMARY)
    place.load()
    primary_alone = Path(shutil.copy(place.database, tmp_path / "primary.duckdb"))
    place.put(LIVE_RANGE)
    place.load()
    one = Path(shutil.copy(place.database, tmp_path / "one.duckdb"))
    place.put(LIVE_RANGE, *other(LIVE_RANGE))
    place.load()
    everything = place.query("SELECT run_id, role, content_sha256 FROM run_files ORDER BY ALL")
    assert len(everything) == 4
    place.close()
    assert [one for one in examine(str(place.database)) if one.level == "trouble"] == []
    export_database(str(place.database), str(tmp_path / "export"))
    for database, known in ((one, 1), (primary_alone, 0), (tmp_path / "new.duckdb", 0)):
        restored = import_export(str(tmp_path / "export"), str(database))
        assert (restored.runs, restored.known) == (2 - known, known)
        place.close()
        place.database = database
        assert place.query("SELECT run_id, role, content_sha256 FROM run_files ORDER BY ALL") == everything
