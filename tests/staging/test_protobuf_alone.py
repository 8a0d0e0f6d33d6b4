"""Dump sets stripped to their protobuf: the same rows and the same answers as with their texts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from ingest import import_dumps, open_database
from ingest.query.blocks import create_temporary
from ingest.query.catalog import shipped
from ingest.query.run import bind, count_derived, run_query
from tests.support.dump_sets import DATA, PAST
from tests.support.query_databases import one_of_each_parameter

TEXT_ALONE = {
    "runs": (
        "ingested_at",
        "content_sha256",
        "file_bytes",
        "format",
        "printed_peak_time",
        "printed_peak_bytes",
        "uses_from",
        "ranges_from",
    ),
    "allocations": ("page",),
    "values": ("instruction_text", "stack_frame_id"),
    "positions": ("position",),
    "uses": ("position",),
    "ranges": ("printed_at_peak", "printed_peak_bytes"),
}
"""Columns that only a text fills, or that say what was read. Positions and uses of a value are printed in the
order in which the compiler came upon them; jaxlib 0.4.36 writes stack frames to the protobuf alone."""
SAME = ("runs", "allocations", "values", "positions", "uses", "schedule", "ranges", "color_peaks")
"""Tables whose rows are the same; others are made of the protobuf, or of printed lines alone."""
OTHER_ANSWERS = {
    "dump_formats": "lists what the texts print",
    "agreement": "holds the printed peak against the computed one",
    "printed_peak_tree": "shows what is printed",
    "prefetches": "reads in the text of an instruction what crosses programs",
    "retraces": "counts different texts",
    "same_program": "counts different texts",
    "recent_runs": "says when it was loaded",
}
"""Saved queries that answer otherwise without a text, and why; the others give the same rows."""


class Databases(NamedTuple):
    """The same sets, imported whole and stripped to their protobufs; runs have the same numbers."""

    whole: duckdb.DuckDBPyConnection
    stripped: duckdb.DuckDBPyConnection


def load(folder: Path, sets: list[Path]) -> Iterator[Databases]:
    """Import the sets of some protobufs whole, then from the same places without their texts."""
    for number, proto in enumerate(sets):
        place = folder / "dumps" / f"{number:03d}-{proto.parent.name}"
        place.mkdir(parents=True)
        for member in proto.parent.glob(f"{proto.name.removesuffix('.hlo.pb')}*"):
            shutil.copyfile(member, place / member.name)
            os.utime(place / member.name, (PAST, PAST))
    for kind in Databases._fields:
        if kind == "stripped":
            for text in (folder / "dumps").rglob("*.txt"):
                text.unlink()
        summary = import_dumps(folder / "dumps", folder / f"{kind}.duckdb", jobs=1)
        assert (summary.loaded, summary.rejected) == (len(sets), 0)
    with (
        open_database(folder / "whole.duckdb", read_only=True) as whole,
        open_database(folder / "stripped.duckdb", read_only=True) as stripped,
    ):
        yield Databases(whole, stripped)


def scheduled(folder: Path) -> list[Path]:
    """Return the protobufs with a text beside them, of modules with a schedule."""
    from ingest.hlo.proto import read_proto

    found = [
        path
        for path in sorted(folder.rglob("*.hlo.pb"))
        if path.with_name(path.name.removesuffix(".hlo.pb") + "-buffer-assignment.txt").is_file()
    ]
    return [path for path in found if read_proto(path).schedule]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    yield from load(tmp_path_factory.mktemp("alone"), scheduled(DATA / "hlo"))


def columns_of(connection: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    found = [name for name, *_ in connection.execute(f'DESCRIBE "{table}"').fetchall()]
    return [name for name in found if name not in TEXT_ALONE.get(table, ())]


def assert_same_rows(databases: Databases, table: str) -> None:
    columns = ", ".join(columns_of(databases.whole, table))
    whole, stripped = (
        one.execute(f'SELECT {columns} FROM "{table}" ORDER BY ALL').fetchall() for one in databases
    )
    assert whole, table
    assert stripped == whole, table


@pytest.mark.parametrize("table", SAME)
def test_the_rows_are_those_of_the_text(databases: Databases, table: str) -> None:
    """All columns that a protobuf can fill."""
    assert_same_rows(databases, table)


def test_it_is_said_what_was_derived(databases: Databases) -> None:
    """The defining position comes first either way."""
    origins = [
        one.execute("SELECT DISTINCT uses_from, ranges_from FROM runs").fetchall() for one in databases
    ]
    assert origins == [[("dump", "dump")], [("hlo", "hlo")]]
    first = "SELECT * FROM positions WHERE position = 0 ORDER BY ALL"
    assert databases.stripped.execute(first).fetchall() == databases.whole.execute(first).fetchall()


def test_a_query_says_for_how_many_runs_it_was_derived(databases: Databases) -> None:
    """Where nothing was derived, nothing is said."""
    query = shipped().load("live_at_peak")
    values = bind(query, {})
    for connection in databases:
        create_temporary(connection, query.sql, "selected_runs")
    assert count_derived(databases.whole, query, values) is None
    found = count_derived(databases.stripped, query, values)
    assert found is not None
    assert (found.selected, found.runs, found.what) == (5, 5, "live ranges")


def answers(connection: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    """Return the rows of a saved query, all of them, in any order."""
    query = shipped().load(name)
    given = {"top": None} if query.parameter("top") is not None else {}
    return sorted(map(repr, run_query(connection, query, bind(query, given)).rows()))


@pytest.mark.parametrize("name", one_of_each_parameter(set(shipped()) - set(OTHER_ANSWERS)))
def test_saved_queries_answer_as_with_texts(databases: Databases, name: str) -> None:
    """Half of them need positions, uses or live ranges; their tables have the same rows."""
    assert answers(databases.stripped, name) == answers(databases.whole, name)


@pytest.mark.parametrize("name", OTHER_ANSWERS)
def test_queries_of_what_is_printed_answer_otherwise(databases: Databases, name: str) -> None:
    """For the reason that is listed."""
    assert answers(databases.stripped, name) != answers(databases.whole, name)


def test_without_a_schedule_uses_are_known_and_no_range_is_guessed(database: Path, tmp_path: Path) -> None:
    """A warning says what is missing and how to get it."""
    [proto] = (DATA / "hlo" / "tf-1.15-cpu").glob("*.hlo.pb")
    shutil.copy(proto, tmp_path)
    assert import_dumps(tmp_path / proto.name, database, jobs=1).loaded == 1
    with open_database(database, read_only=True) as connection:
        assert connection.execute("SELECT uses_from, ranges_from, peak_bytes FROM runs").fetchall() == [
            ("hlo", None, None)
        ]
        [(kind, message)] = connection.execute("SELECT kind, message FROM notices").fetchall()
    assert kind == "no-schedule"
    assert "--xla_dump_to" in message


@pytest.mark.slow
def test_the_whole_corpus_answers_without_texts(shared_corpus: Path, tmp_path: Path) -> None:
    """Every release whose protobuf holds a schedule: CPU since jaxlib 0.4.36, TPU, GPU."""
    sets = scheduled(shared_corpus)
    assert len(sets) >= 120
    for databases in load(tmp_path, sets):
        for table in SAME:
            assert_same_rows(databases, table)
        for name in shipped():
            if name not in OTHER_ANSWERS:
                assert answers(databases.stripped, name) == answers(databases.whole, name), name


@pytest.mark.slow
def test_every_protobuf_of_the_corpus_has_a_resident_peak(shared_corpus: Path, tmp_path: Path) -> None:
    """Also those without a schedule, of TensorFlow 1.14 to 2.12: from the heap simulator's steps."""
    protos = sorted(shared_corpus.rglob("*.hlo.pb"))
    for number, proto in enumerate(protos):
        place = tmp_path / "dumps" / str(number)
        place.mkdir(parents=True)
        shutil.copyfile(proto, place / proto.name)
        os.utime(place / proto.name, (PAST, PAST))
    database = tmp_path / "x.duckdb"
    assert import_dumps(tmp_path / "dumps", database, jobs=1).loaded == len(protos) >= 200
    with open_database(database, read_only=True) as connection:
        [(resident, uses, live, scheduled_runs)] = connection.execute(
            "SELECT count(resident_peak_bytes), count(uses_from), count(peak_bytes), count(ranges_from)"
            " FROM runs"
        ).fetchall()
    assert resident == uses == len(protos)
    assert live == scheduled_runs >= 130
