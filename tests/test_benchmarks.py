"""Generated dumps are as good as real ones, and the benchmarks measure what they say."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import by_line, process, rough
from benchmarks.columns import column_costs
from benchmarks.data import DUMPS, ONE_DUMP, Data
from benchmarks.generate import Pattern, many_dumps, one_dump, read_pattern, scale
from benchmarks.plain_load import export_rows, load_rows
from benchmarks.process import run
from benchmarks.report import CHART, DOCUMENTS, RESULTS, chart, filled, read_results
from benchmarks.runs import SMALL, Runs, Table, save
from ingest.database.connect import open_database
from ingest.dump import features
from ingest.dump.find import discover
from ingest.dump.parse import parse_dump
from ingest.dump.records import Dump
from ingest.pipeline.importer import import_dumps
from ingest.query.catalog import shipped
from tests.support.dump_sets import PRIMARY, DumpSet, committed_sets
from tests.support.render import render

# Of an era, or with a defect, that copies cannot keep.
_UNFIT = (
    "jaxlib-0.4.26-cpu/module_0023",
    "jaxlib-0.4.26-cpu/module_0027",
    "jaxlib-0.4.26-cpu/module_0033",
    "jaxlib-0.8.3-cpu/module_0001.jsonnl",
    "tf-1.14-cpu",
    "tf-1.15-cpu",
    "handmade/glued-multiline",
    "handmade/no-live-range",
    "handmade/oldest",
    "handmade/unbounded-peak",
)


def committed(*, unfit: bool) -> list[DumpSet]:
    """Return the committed dumps that can be scaled, or those that cannot."""
    return [
        dump_set
        for dump_set in committed_sets()
        # A dump of 4 EiB has no room for a copy.
        if dump_set.primary.name.endswith(PRIMARY) and "over-long-name" not in dump_set.name
        if any(name in dump_set.name for name in _UNFIT) is unfit
    ]


def counts(dump: Dump) -> dict[str, int]:
    """Return how many records of each kind a dump has, and their bytes."""
    return {
        "allocations": len(dump.allocations),
        "bytes": sum(allocation.size for allocation in dump.allocations),
        "values": len(dump.values),
        "positions": sum(len(value.positions or ()) for value in dump.values),
        "uses": sum(len(value.uses or ()) for value in dump.values),
        "ranges": len(dump.ranges or ()),
        "reuse": len(dump.color_reuse),
    }


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    """The dump that single large dumps are scaled from."""
    return read_pattern(DUMPS / f"{ONE_DUMP}{PRIMARY}")


@pytest.mark.parametrize("dump_set", committed(unfit=False), ids=lambda dump_set: dump_set.name)
def test_a_scaled_dump_is_a_valid_multiple(dump_set: DumpSet, tmp_path: Path) -> None:
    """It passes every check, has every record so many times and the same features; parsing loses nothing."""
    pattern = read_pattern(dump_set.primary)
    copies = 3
    scale(pattern, copies, tmp_path)
    (primary,) = tmp_path.glob(f"*{PRIMARY}")
    scaled = parse_dump(primary)
    files = {path.name.rpartition("optimizations")[2]: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(files.values()) == sorted(render(scaled).values())
    assert {name: count * copies for name, count in counts(pattern.dump).items()} == counts(scaled)
    assert (pattern.dump.features, pattern.dump.peak_time) == (scaled.features, scaled.peak_time)
    assert len({value.id for value in scaled.values}) == len(scaled.values)
    assert len({(value.instruction, value.shape_index) for value in scaled.values}) == len(scaled.values)


def test_dumps_that_cannot_be_copied_are_refused() -> None:
    """The ids of a dump of 2019 stand in other places; it is named."""
    refused = {}
    for dump_set in committed(unfit=True):
        with pytest.raises(ValueError, match=": cannot be scaled: ") as caught:
            read_pattern(dump_set.primary)
        refused[dump_set.name] = str(caught.value)
    assert all(any(name in refused_name for refused_name in refused) for name in _UNFIT)
    (oldest,) = (message for name, message in refused.items() if "tf-1.14" in name)
    assert re.search(rf"tf-1\.14.*{features.LOGICAL_BUFFERS}", oldest)


def test_one_dump_has_the_size_asked_for(pattern: Pattern, tmp_path: Path) -> None:
    """Within a tenth, and what it returns is what it wrote."""
    written = one_dump(pattern, 3_000_000, tmp_path)
    assert written == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 0.9 < written / 3_000_000 < 1.1


def test_many_dumps_are_so_many_sets(pattern: Pattern, tmp_path: Path) -> None:
    """Each is a set of its own."""
    many_dumps([pattern], 12, tmp_path)
    assert len(discover([tmp_path]).sets) == 12


@pytest.mark.parametrize("parse", [rough.scan, by_line.parse])
def test_comparisons_find_the_records(
    parse: Callable[[str], rough.Rows], pattern: Pattern, tmp_path: Path
) -> None:
    """The yardstick and the parser by line do the work that they are compared by."""
    scale(pattern, 5, tmp_path)
    (files,) = rough.find_sets(os.fspath(tmp_path))
    rows = parse(rough.read_set(files))
    expected = counts(pattern.dump)
    for table in ("allocations", "values", "positions", "uses", "ranges"):
        assert expected[table] * 5 == len(rows[table]), table
    assert 5 * len(pattern.dump.values) == len(rows["texts"])
    assert 5 * len(pattern.dump.schedule or ()) + 8 == len(rows["schedule"])


@pytest.fixture(scope="module")
def imported(pattern: Pattern, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of one scaled dump."""
    folder = tmp_path_factory.mktemp("imported")
    (folder / "dump").mkdir()
    one_dump(pattern, 500_000, folder / "dump")
    import_dumps([folder / "dump"], folder / "imported.duckdb", jobs=1)
    return folder / "imported.duckdb"


def test_the_plain_load_loads_every_row(imported: Path, tmp_path: Path) -> None:
    """What DuckDB is timed with is all that an import stores."""
    exported = export_rows(imported, tmp_path / "rows")
    for tuned in (False, True):
        assert load_rows(tmp_path / "rows", tmp_path / "loaded.duckdb", tuned=tuned) > 0
        assert exported == export_rows(tmp_path / "loaded.duckdb", tmp_path / "again")


def test_columns_add_up_to_no_more_than_the_file(imported: Path) -> None:
    """Every table's columns are there, and their bytes fit into the file."""
    costs = column_costs(imported)
    assert ("values", "instruction_text", "ZSTD") in {(c.table, c.column, c.compression) for c in costs}
    assert 0 < sum(cost.bytes for cost in costs) <= imported.stat().st_size


def test_memory_of_children_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process that holds 64 MB in a child of its own is seen to do so, once the child has them."""
    seen, real = tmp_path / "seen", process._memory

    def look(pid: int) -> tuple[int, int]:
        found = real(pid)
        if min(found) > 64 << 20:
            seen.touch()
        return found

    monkeypatch.setattr(process, "_memory", look)
    child = (
        "import os, time; held = bytearray(64 << 20)\n"
        f"while not os.path.exists({str(seen)!r}): time.sleep(0.01)"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    usage = run([sys.executable, "-c", parent], watch_memory=True)
    assert usage.together > 64 << 20
    assert usage.largest > 64 << 20


def test_a_failing_command_is_no_result() -> None:
    """Its message is told."""
    with pytest.raises(RuntimeError, match="no such thing"):
        run([sys.executable, "-c", "raise SystemExit('no such thing')"])


@pytest.fixture
def _fewer_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the memory ten times a second: a look takes some milliseconds of each process."""
    monkeypatch.setattr("benchmarks.process.INTERVAL", 0.1)


@pytest.fixture(scope="module")
def small_runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """The benchmarks on small data."""
    return Runs(tmp_path_factory.mktemp("benchmarks"), 1, SMALL, lambda _: None)


def cells(rows: tuple[tuple[Any, ...], ...], place: int) -> list[Any]:
    """Return a column of a table."""
    return [row[place] for row in rows]


@pytest.mark.slow
def test_an_import_costs_a_few_times_the_yardstick(small_runs: Runs, tmp_path: Path) -> None:
    """In CPU time, start-up and all, it stays in bounds that only a blunder breaks."""
    data = small_runs._data.many(SMALL.many[-1])
    imported = small_runs._import(data, tmp_path / "imported.duckdb")
    rough = small_runs._module("rough", data.directory, tmp_path / "rough.duckdb")
    assert 0 < imported.cpu < 8 * rough.cpu


@pytest.mark.slow
def test_throughput_is_that_of_all_rows(small_runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed has loaded every dump, and DuckDB alone is given the same rows."""
    data = small_runs._data.many(SMALL.many[-1])
    monkeypatch.setattr(small_runs, "_sets", lambda: [data])
    table, loads = small_runs.throughput()
    rows = table.head.index("rows")
    with open_database(small_runs._folder / "throughput.duckdb", read_only=True) as connection:
        (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone() or (0,)
    assert runs == SMALL.many[-1]
    assert min(cells(table.rows, rows)) > 1000
    assert min(cells(table.rows, table.head.index("import/rough"))) > 0
    assert cells(loads.rows, 1) == cells(table.rows, rows)
    assert min(cells(loads.rows, loads.head.index("load s"))) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("_fewer_looks")
def test_an_import_keeps_within_its_memory(small_runs: Runs) -> None:
    """All processes together stay under 600 MB."""
    (table,) = small_runs.memory()
    assert 0 < max(cells(table.rows, table.head.index("all processes MB"))) < 600


@pytest.mark.slow
@pytest.mark.usefixtures("_fewer_looks")
def test_dumps_of_middle_size_keep_within_the_memory(tmp_path: Path) -> None:
    """Two workers do not hold one each whole: that took 930 MB. Two dumps are at work at once, as of four."""
    runs = Runs(tmp_path, 1, SMALL, lambda _: None)
    together = runs.memory_of(Data(tmp_path).middle(2, 47)).together / 1e6
    assert 100 < together < 600


@pytest.mark.slow
def test_what_is_unchanged_is_not_opened(small_runs: Runs) -> None:
    """A second import opens no dump file, however many there are."""
    (table,) = small_runs.unchanged()
    assert cells(table.rows, table.head.index("unchanged dumps")) == [4, 40]
    assert cells(table.rows, table.head.index("dump files opened")) == [0, 0]


@pytest.mark.slow
def test_every_saved_query_is_timed(small_runs: Runs) -> None:
    """The table has a row a query, and times."""
    once, ten_times = small_runs.queries()
    for table in (once, ten_times):
        assert len(table.rows) == len(list((DUMPS.parents[2] / "queries").glob("*.sql")))
        assert min(cells(table.rows, 2)) > 0
    assert f" {10 * SMALL.query_runs} runs " in ten_times.title


@pytest.mark.slow
def test_every_question_about_one_run_is_timed_among_ten_times_as_many(small_runs: Runs) -> None:
    """A comparison finds another run of the module, so that it has something to match."""
    (table,) = small_runs.one_run()
    assert table.title.startswith(f"Questions about one run of {10 * SMALL.query_runs}")
    asked = {query.name for query in shipped().load_all() if query.reads_selected}
    assert {row[0] for row in table.rows} == asked
    assert {row[0]: row[3] for row in table.rows}["peak_growth"] == 1


def test_results_are_kept_by_name(tmp_path: Path) -> None:
    """A run that is repeated alone replaces its own tables."""
    path = tmp_path / "results.json"
    save([Table("one", "One", ("s",), ((1.0,),)), Table("two", "Two", ("s",), ((2.0,),))], "before", path)
    save([Table("two", "Two", ("s",), ((3.0,),))], "after", path)
    results = read_results(path)
    assert [(one["machine"], one["rows"]) for one in results.values()] == [
        ("before", [[1.0]]),
        ("after", [[3.0]]),
    ]
    text = "kept\n<!-- results: two -->\nold\n<!-- end -->\nkept too\n"
    assert "| 3.00 |" in (new := filled(text, results))
    assert new.startswith("kept\n")
    assert new.endswith("kept too\n")
    assert filled(new, results) == new


def test_the_document_shows_the_results_as_measured() -> None:
    """The tables are those of the results file: `python -m benchmarks.report` writes them."""
    results = read_results(RESULTS)
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert filled(text, results) == text
        assert "-->\n<!-- end -->" not in text  # no mark that is not understood


@pytest.mark.slow
def test_the_chart_shows_the_results_as_measured() -> None:
    """Places differ from one matplotlib to the next, labels do not; each bar is labelled with its seconds."""
    assert labels(chart(read_results(RESULTS))) == labels(CHART.read_text(encoding="utf-8"))


def labels(svg: str) -> list[str]:
    """Return the texts of a drawing."""
    texts = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(text.itertext()).strip() for text in texts]
