"""Dump sets with a scheduled HLO text that print no uses or live ranges: the same rows as where they do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest import ImportSummary, import_dumps, open_database
from ingest.query.catalog import shipped
from ingest.query.run import bind, count_derived
from tests.staging.test_large_dumps import stage_both_ways
from tests.staging.test_protobuf_alone import SAME, Databases, assert_same_rows
from tests.support.dump_sets import DATA, PAST

pytestmark = pytest.mark.usefixtures("macros")

EXACT = ("jaxlib-0.10.2-cpu", "tpu-jaxlib-0.10.0")
ELIDED = "jaxlib-0.11.2-cpu"
DERIVED = ("-buffer-assignment-values.txt", "-live-range.txt")


def copy_texts(release: str, folder: Path, *, leave_out: tuple[str, ...] = ()) -> list[Path]:
    """Copy the texts of a release's sets; return the HLO texts."""
    folder.mkdir(parents=True)
    for text in sorted((DATA / "hlo" / release).glob("*.txt")):
        if not text.name.endswith(leave_out):
            shutil.copyfile(text, folder / text.name)
            os.utime(folder / text.name, (PAST, PAST))
    return sorted(path for path in folder.glob("*_optimizations.txt"))


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """The same sets, imported whole and from the same places with allocations and HLO text alone."""
    folder = tmp_path_factory.mktemp("beside")
    for release in EXACT:
        copy_texts(release, folder / "dumps" / release)
    assert import_dumps(folder / "dumps", folder / "whole.duckdb", jobs=1).loaded == 3
    for text in (folder / "dumps").rglob("*.txt"):
        if text.name.endswith(DERIVED):
            text.unlink()
    assert import_dumps(folder / "dumps", folder / "stripped.duckdb", jobs=1).loaded == 3
    with (
        open_database(folder / "whole.duckdb", read_only=True) as whole,
        open_database(folder / "stripped.duckdb", read_only=True) as stripped,
    ):
        yield Databases(whole, stripped)


@pytest.mark.parametrize("table", [table for table in SAME if table not in ("runs", "allocations", "values")])
def test_the_rows_are_those_that_are_printed(databases: Databases, table: str) -> None:
    """Positions, uses, schedule, live ranges and the peaks of colors."""
    assert_same_rows(databases, table)


def test_the_peaks_are_those_of_the_printed_ranges(databases: Databases) -> None:
    """And the run says that its ranges are derived."""
    peaks = "SELECT stem, schedule_length, peak_time, peak_bytes, resident_peak_bytes FROM runs ORDER BY ALL"
    assert databases.stripped.execute(peaks).fetchall() == databases.whole.execute(peaks).fetchall()
    origins = "SELECT DISTINCT uses_from, ranges_from FROM runs"
    assert databases.stripped.execute(origins).fetchall() == [("hlo", "hlo")]


def notices(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    return connection.execute("SELECT kind, message FROM notices").fetchall()


def load(database: Path, folder: Path) -> ImportSummary:
    return import_dumps(folder, database, jobs=1)


def test_a_text_that_leaves_instructions_out_is_said_to_be_approximate(
    database: Path, tmp_path: Path
) -> None:
    """In the run, in a notice and under the answers: get-tuple-elements take slots, and are not printed."""
    copy_texts(ELIDED, tmp_path / "dumps", leave_out=DERIVED)
    assert load(database, tmp_path / "dumps").loaded == 1
    with open_database(database, read_only=True) as connection:
        assert connection.execute("SELECT uses_from, ranges_from FROM runs").fetchall() == [
            ("approximate", "approximate")
        ]
        [(kind, message)] = notices(connection)
        found = count_derived(connection, query := shipped().load("live_at_peak"), bind(query, {}))
    assert kind == "approximate"
    assert "get-tuple-elements of 4 operands" in message
    assert found is not None
    assert (found.runs, found.approximate) == (1, 1)


def test_a_text_of_another_compilation_gives_nothing(database: Path, tmp_path: Path) -> None:
    """A notice names the first value that does not fit."""
    [first, second] = copy_texts("jaxlib-0.10.2-cpu", tmp_path / "dumps", leave_out=DERIVED)
    shutil.copyfile(second, first)
    assert load(database, tmp_path / "dumps").loaded == 2
    with open_database(database, read_only=True) as connection:
        assert connection.execute("SELECT ranges_from FROM runs ORDER BY stem").fetchall() == [
            (None,),
            ("hlo",),
        ]
        [(kind, message)] = notices(connection)
    assert kind == "hlo-differs"
    assert "of another compilation: ynn_fusion is f32[] in it" in message


def test_large_dumps_are_derived_alike(tmp_path: Path) -> None:
    """In pieces as in one."""
    copy_texts("tpu-jaxlib-0.10.0", tmp_path / "dumps", leave_out=DERIVED)
    _, whole, _, pieces = stage_both_ways(tmp_path / "dumps", tmp_path)
    assert whole["ranges"]
    assert pieces == whole
