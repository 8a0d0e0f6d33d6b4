"""What lies beside a dump: HLO text and protobuf, with it and alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ingest import ImportSummary, import_dumps
from ingest.database.connect import create
from ingest.staging.sidecars import read_sidecars
from tests.support.content import rows
from tests.support.dump_sets import settle

HLO = Path(__file__).parents[1] / "data" / "hlo"


@pytest.fixture(params=["jaxlib-0.10.2-cpu", pytest.param(".", id="all", marks=pytest.mark.slow)])
def dumps(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A directory with real sets that have both siblings, of one release or of all."""
    return settle(Path(shutil.copytree(HLO / request.param, tmp_path / "dumps")))


@pytest.fixture(scope="module")
def loaded(macros: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the sets of all releases that have siblings. Only to be read."""
    folder = tmp_path_factory.mktemp("loaded")
    create(folder / "xbuf.duckdb", with_queries=True)
    summary = load(folder / "xbuf.duckdb", settle(Path(shutil.copytree(HLO, folder / "dumps"))))
    assert summary.loaded == len(names_of(HLO, "-buffer-assignment.txt"))
    return folder / "xbuf.duckdb"


def load(database: Path, *paths: Path, **options: Any) -> ImportSummary:
    return import_dumps(list(paths), database, **options)


def names_of(directory: Path, ending: str) -> list[Path]:
    found = sorted(path for path in directory.rglob("*") if path.name.endswith(ending))
    assert found, ending
    return found


def hlo_texts(directory: Path) -> list[Path]:
    return names_of(directory, "after_optimizations.txt")


def test_text_and_protobuf_agree_and_add_their_own(loaded: Path) -> None:
    """A set with both siblings loads without a notice; the module's tables are filled."""
    assert rows(loaded, "FROM notices") == []
    for table in ("hlo_modules", "instructions", "source_frames", "aliases", "heap_events"):
        assert rows(loaded, f"SELECT count(*) FROM {table}")[0][0] > 0, table
    assert rows(loaded, "SELECT count(*) FROM allocations WHERE is_tuple IS NULL") == [(0,)]
    assert rows(loaded, "SELECT count(*) FROM run_files WHERE content_sha256 IS NULL") == [(0,)]


def test_modern_dumps_get_their_source_lines_from_the_hlo_text(loaded: Path) -> None:
    """Since jaxlib 0.8 a value names a frame only; with the HLO text its file and line are known."""
    [(live, located)] = rows(
        loaded,
        "SELECT sum(v.size_bytes), sum(v.size_bytes) FILTER (v.source_file IS NOT NULL)"
        ' FROM runs JOIN ranges AS g USING (run_id) JOIN "values" AS v USING (run_id, value_id)'
        " WHERE run_id IN (SELECT run_id FROM source_frames) AND peak_time BETWEEN start_time AND end_time",
    )
    assert live > 0
    assert located / live > 0.95
    assert rows(
        loaded, 'SELECT count(*) FROM "values" WHERE (source_file IS NULL) <> (source_via IS NULL)'
    ) == [(0,)]


def test_the_stack_of_a_value_is_a_macro(loaded: Path) -> None:
    """stack_of gives a value's Python stack, outermost frame first, and ends at its source line."""
    [(run_id, value_id, file, line)] = rows(
        loaded,
        'SELECT run_id, value_id, source_file, source_line FROM "values"'
        " WHERE source_frame_id IS NOT NULL ORDER BY ALL LIMIT 1",
    )
    stack = rows(loaded, f"FROM stack_of({run_id}, {value_id})")
    assert stack
    assert any(file in frame and line in frame for frame in stack)


def test_without_the_hlo_text_only_its_facts_are_missing(dumps: Path, database: Path) -> None:
    """Missing siblings leave NULL, no notice and no error."""
    for path in [*hlo_texts(dumps), *names_of(dumps, ".hlo.pb")]:
        path.unlink()
    summary = load(database, dumps)
    assert summary.rejected == 0
    assert rows(database, "FROM notices") == []
    assert rows(database, "SELECT count(*) FROM hlo_modules") == [(0,)]
    assert rows(database, "SELECT DISTINCT is_tuple, is_aliased_with_output FROM allocations") == [
        (None, None)
    ]


def test_asynchronous_operations_are_named_alike_by_every_file(tmp_path: Path) -> None:
    """What a dump prints as slice-start, the HLO text writes as async-start of a slice."""
    path = tmp_path / "m.txt"
    path.write_text(
        "HloModule m, is_scheduled=true\n\n"
        "%sliced (p: f32[8]) -> f32[4] {\n"
        "  %p = f32[8]{0} parameter(0)\n"
        "  ROOT %slice = f32[4]{0} slice(%p), slice={[0:4]}\n"
        "}\n\n"
        "ENTRY %main (a: f32[8]) -> f32[4] {\n"
        "  %a = f32[8]{0} parameter(0)\n"
        "  %s = ((f32[8]{0}), f32[4]{0}, u32[]) async-start(%a), calls=%sliced\n"
        "  ROOT %d = f32[4]{0} async-done(%s)\n"
        "}\n"
    )
    names = ("slice", "s", "d")
    sources = read_sidecars({"hlo": str(path)}).sources([*names, "unknown"])
    assert [sources[name].opcode for name in names] == ["slice", "slice-start", "slice-done"]
    assert sources.keys() == {*names}


@pytest.mark.slow
def test_no_hlo_leaves_siblings_alone_until_they_are_wanted(dumps: Path, database: Path) -> None:
    """--no-hlo reads the dumps only; a later import without it completes the runs in place."""
    first = load(database, dumps, read_hlo=False)
    assert rows(database, "SELECT count(*) FROM instructions") == [(0,)]
    assert load(database, dumps, read_hlo=False).unchanged == first.loaded
    again = load(database, dumps)
    assert (again.loaded, again.unchanged) == (first.loaded, 0)
    assert rows(database, "SELECT count(*), max(run_id) FROM runs") == [(first.loaded, first.loaded)]
    assert rows(database, "SELECT count(DISTINCT run_id) FROM instructions") == [(first.loaded,)]
    assert load(database, dumps).unchanged == first.loaded


@pytest.mark.parametrize("ending", ["after_optimizations.txt", ".hlo.pb"])
def test_a_damaged_sibling_costs_a_notice_only(ending: str, dumps: Path, database: Path) -> None:
    """The dump loads, whatever lies beside it."""
    # A set without its dump is not looked at.
    of_dumps = [
        str(path).removesuffix("-buffer-assignment.txt") for path in names_of(dumps, "-assignment.txt")
    ]
    damaged = [path for path in names_of(dumps, ending) if str(path).startswith(tuple(of_dumps))]
    for path in damaged:
        path.write_bytes(b"\x00\xff" * 500)
    settle(dumps)
    summary = load(database, dumps)
    assert (summary.rejected, summary.loaded) == (0, len(names_of(dumps, "-buffer-assignment.txt")))
    assert {file for (file,) in rows(database, "SELECT file FROM notices")} == set(map(str, damaged))
    assert load(database, dumps).unchanged == summary.loaded


def test_a_protobuf_of_another_compilation_is_told(dumps: Path, database: Path) -> None:
    """Differences between text and protobuf are notices with both figures."""
    one, other = names_of(dumps, ".hlo.pb")[:2]
    shutil.copy(other, one)
    settle(dumps)
    load(database, dumps)
    told = rows(database, "SELECT message FROM notices WHERE kind = 'proto-differs'")
    assert told
    assert all(any(letter.isdigit() for letter in message) for (message,) in told)


@pytest.mark.slow
def test_text_that_comes_later_completes_the_run_of_a_protobuf(dumps: Path, tmp_path: Path) -> None:
    """A set that gains its text stays one run."""
    place = tmp_path / "place"
    shutil.copytree(dumps, place, ignore=shutil.ignore_patterns("*.txt"))
    settle(place)
    database = tmp_path / "growing.duckdb"
    first = load(database, place).loaded
    shutil.copytree(dumps, place, dirs_exist_ok=True)
    settle(place)
    assert load(database, place).loaded == first
    assert rows(database, "SELECT count(*), max(run_id), bool_and(has_values) FROM runs") == [
        (first, first, True)
    ]


def test_a_protobuf_of_an_earlier_stage_is_passed_over(dumps: Path, tmp_path: Path, database: Path) -> None:
    """before_optimizations holds no buffer assignment; it is no dump and no error."""
    place = tmp_path / "stages"
    place.mkdir()
    shutil.copy(names_of(dumps, ".hlo.pb")[0], place / "module_0001.jit_f.before_optimizations.hlo.pb")
    assert load(database, place).found == 0
