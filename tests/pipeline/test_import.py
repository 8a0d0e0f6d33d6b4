"""What an import loads, what it leaves alone, and what it says."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner

import ingest.pipeline.reading
import ingest.staging.workers
from ingest import ImportSummary, import_dumps
from ingest.cli.ingest import ingest as command
from ingest.cli.runs import rejects
from ingest.database.connect import create
from ingest.errors import XbufError
from tests.support.content import differences, rows
from tests.support.dump_sets import DATA, PAST, dump_sets, settle
from tests.support.outside_count import outside_count

SEEDS = DATA / "seeds"
SPLIT = DATA / "dumps" / "jaxlib-0.10.2-cpu"


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """A directory with the seeds, long finished."""
    target = tmp_path / "dumps"
    shutil.copytree(SEEDS, target)
    settle(target)
    return target


class Place(NamedTuple):
    """Dumps, and a database that has imported them."""

    dumps: Path
    database: Path


@pytest.fixture(scope="module")
def _imported(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("imported") / "place"
    place = Place(folder / "dumps", folder / "xbuf.duckdb")
    shutil.copytree(SEEDS, place.dumps)
    settle(place.dumps)
    create(place.database, with_queries=True)
    load(place.database, place.dumps)
    shutil.copytree(folder, folder.with_name("kept"))
    return place


@pytest.fixture
def imported(_imported: Place) -> Iterator[Place]:
    """The seeds after their first import: one place for all tests, put back as it was after each."""
    yield _imported
    folder = _imported.database.parent
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("kept"), folder)


def load(database: Path, *paths: Path, **options: object) -> ImportSummary:
    return import_dumps(list(paths), database, **options)  # type: ignore[arg-type]


def damage(path: Path) -> None:
    """Make the printed total wrong."""
    text = path.read_text()
    path.write_text(text.replace("Total bytes used: ", "Total bytes used: 9"))
    os.utime(path, (PAST, PAST))


def keep_alone(kept: Path) -> None:
    """Remove all other dumps of its directory."""
    for path in kept.parent.iterdir():
        if path != kept:
            path.unlink()


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with all committed dumps, loaded by one process. Only to be read."""
    database = tmp_path_factory.mktemp("everything") / "xbuf.duckdb"
    create(database, with_queries=True)
    summary = load(database, DATA, jobs=1)
    assert (summary.loaded, summary.rejected, summary.unfinished) == (len(dump_sets(DATA)), 0, 0)
    return database


def test_every_set_loads_and_every_row_is_counted(everything: Path) -> None:
    """Rows of each table equal an outside count over all committed dumps."""
    found = {
        os.path.join(directory, name): run_id
        for run_id, directory, name in rows(
            everything,
            "SELECT run_id, dump_dir, file_name FROM runs JOIN run_files USING (run_id)"
            " WHERE role = 'primary'",
        )
    }
    tables = [
        "allocations",
        "values",
        "positions",
        "uses",
        "ranges",
        "schedule",
        "peak_breakdown",
        "color_reuse",
    ]
    counted = {
        table: dict(rows(everything, f'SELECT run_id, count(*) FROM "{table}" GROUP BY ALL'))
        for table in tables
    }
    for one in dump_sets(DATA):
        run_id = found[str(one.primary)]
        outside = outside_count(one.texts())
        for table in tables:
            expected = outside.tree_nodes if table == "peak_breakdown" else getattr(outside, table)
            assert counted[table].get(run_id, 0) == expected, (one.name, table)


def test_a_second_import_reads_nothing(imported: Place) -> None:
    """What the database holds with the same sizes and times is unchanged, and not opened."""
    dumps, database = imported
    for path in dumps.iterdir():
        # Other content of the same size and time: whoever opened it would find it damaged.
        path.write_bytes(b"x" * path.stat().st_size)
        os.utime(path, (PAST, PAST))
    summary = load(database, dumps)
    assert (summary.loaded, summary.unchanged, summary.rows) == (0, 5, 0)


def test_touched_files_are_read_once_and_stay_one_run(imported: Place) -> None:
    """New times with old content change nothing but the recorded times."""
    dumps, database = imported
    for path in dumps.iterdir():
        os.utime(path, (PAST + 60, PAST + 60))
    assert load(database, dumps).unchanged == 5
    assert rows(database, "SELECT count(*) FROM runs") == [(5,)]
    assert rows(database, "SELECT DISTINCT mtime_ns FROM run_files") == [((PAST + 60) * 10**9,)]


def test_rehash_reads_and_finds_nothing_new(imported: Place) -> None:
    """--rehash compares contents also where sizes and times agree."""
    dumps, database = imported
    summary = load(database, dumps, rehash=True)
    assert (summary.loaded, summary.unchanged) == (0, 5)


def test_new_content_is_a_new_run_and_the_old_one_stays(imported: Place) -> None:
    """Nightly dumps into one directory are history."""
    dumps, database = imported
    shutil.copy(dumps / "001_aa093b3e4f73e23a.txt", dumps / "000_350494ed927c1c64.txt")
    settle(dumps)
    assert load(database, dumps).loaded == 1
    assert rows(
        database, "SELECT run_id, import_id, total_bytes FROM runs WHERE stem LIKE '000%' ORDER BY run_id"
    ) == [(1, 1, 5308448), (6, 2, 41943040)]


def test_replace_removes_the_old_run_with_all_its_rows(imported: Place) -> None:
    """--replace leaves nothing of the run before."""
    dumps, database = imported
    shutil.copy(dumps / "001_aa093b3e4f73e23a.txt", dumps / "000_350494ed927c1c64.txt")
    settle(dumps)
    load(database, dumps, replace_runs=True)
    assert rows(database, "SELECT run_id FROM runs WHERE stem LIKE '000%'") == [(6,)]
    for table in ("allocations", "values", "positions", "uses", "ranges", "schedule", "run_files"):
        assert rows(
            database, f'SELECT count(*) FROM "{table}" WHERE run_id NOT IN (SELECT run_id FROM runs)'
        ) == [(0,)], table


def test_equal_contents_at_two_places_are_two_runs(dumps: Path, database: Path) -> None:
    """Retraces count: identity is the place and the content."""
    shutil.copytree(dumps, dumps / "again")
    assert load(database, dumps).loaded == 10
    assert rows(database, "SELECT count(*), count(DISTINCT content_sha256) FROM runs") == [(10, 5)]


def test_a_set_that_gains_siblings_is_completed_in_place(tmp_path: Path, database: Path) -> None:
    """The run keeps its number and labels, and gets the facts of the new members."""
    one = dump_sets(SPLIT)[0]
    place = tmp_path / "growing"
    place.mkdir()
    shutil.copy(one.primary, place)
    settle(place)
    load(database, place, labels=[("night", "1")])
    assert rows(database, "SELECT has_values, has_ranges, peak_bytes FROM runs") == [(False, False, None)]
    for member in one.files.values():
        shutil.copy(member, place)
    settle(place)
    summary = load(database, place)
    assert (summary.loaded, summary.unchanged) == (1, 0)
    assert rows(database, "SELECT run_id, has_values, has_ranges FROM runs") == [(1, True, True)]
    assert rows(database, "SELECT key, value FROM run_labels") == [("night", "1")]
    assert rows(database, "SELECT count(*) FROM uses") == [(outside_count(one.texts()).uses,)]
    assert load(database, place).unchanged == 1


def test_missing_siblings_leave_null_not_zero(tmp_path: Path, database: Path) -> None:
    """What a set does not tell is NULL; the sum of its allocations it does."""
    one = dump_sets(SPLIT)[0]
    shutil.copy(one.primary, tmp_path)
    settle(tmp_path)
    load(database, tmp_path)
    assert rows(
        database,
        "SELECT schedule_length, printed_peak_time, printed_peak_bytes, peak_time, peak_bytes FROM runs",
    ) == [(None,) * 5]
    allocated = "SELECT sum(size_bytes)::BIGINT FROM allocations"
    assert rows(database, "SELECT total_bytes FROM runs") == rows(database, allocated)
    assert rows(database, 'SELECT DISTINCT opcode, instruction_text FROM "values"') == [(None, None)]


@pytest.mark.parametrize("compress", ["gzip", "zstd"])
def test_compressed_dumps_load_like_plain_ones(compress: str, dumps: Path, database: Path) -> None:
    """Compression is told by the content, whatever the name."""
    for path in list(dumps.iterdir()):
        data = path.read_bytes()
        if compress == "zstd":
            with pa.CompressedOutputStream(str(path) + ".zst", "zstd") as out:
                out.write(data)
        else:
            (dumps / (path.name + ".gz")).write_bytes(gzip.compress(data))
        path.unlink()
    settle(dumps)
    assert load(database, dumps).loaded == 5
    assert rows(database, "SELECT sum(total_bytes), sum(file_bytes) FROM runs") == [
        (347772104, sum(path.stat().st_size for path in SEEDS.iterdir()))
    ]


def test_labels_are_put_on_the_runs_of_the_import(dumps: Path, database: Path) -> None:
    """--label key=value makes a row for each run and key."""
    load(database, dumps, labels=[("jax", "0.10.2"), ("mesh", "8x4")])
    assert rows(database, "SELECT key, value, count(*) FROM run_labels GROUP BY ALL ORDER BY key") == [
        ("jax", "0.10.2", 5),
        ("mesh", "8x4", 5),
    ]


def test_a_damaged_dump_is_rejected_alone(dumps: Path, database: Path) -> None:
    """One row in rejects names file, line, offset, section and reason; the others load."""
    damage(dumps / "001_aa093b3e4f73e23a.txt")
    summary = load(database, dumps)
    assert (summary.status, summary.loaded, summary.rejected) == ("rejects", 4, 1)
    path = dumps / "001_aa093b3e4f73e23a.txt"
    [(import_id, file, line, offset, section, kind, text)] = rows(
        database, "SELECT import_id, file, line, byte_offset, section, kind, text FROM rejects"
    )
    assert (import_id, file, section, kind) == (1, str(path), "total", "total-mismatch")
    assert isinstance(line, int)
    assert isinstance(offset, int)
    assert path.read_text().split("\n")[line - 1] == text
    assert path.read_bytes()[offset:].startswith(str(text).encode())
    assert rows(database, "SELECT status, found, loaded, rejected FROM imports") == [("rejects", 5, 4, 1)]


def test_a_reject_is_listed_once_until_the_dump_loads(dumps: Path, database: Path) -> None:
    """Imports reject a damaged dump at each try; once it is whole and loaded it is no trouble."""
    path = dumps / "001_aa093b3e4f73e23a.txt"
    keep_alone(path)
    whole = path.read_text()

    def listed() -> list[str]:
        return CliRunner().invoke(rejects, ["--db", str(database)]).stdout.splitlines()

    damage(path)
    load(database, dumps)
    load(database, dumps)
    assert rows(database, "SELECT count(*) FROM rejects") == [(2,)]
    [line] = listed()
    assert re.match(rf"{re.escape(str(path))}:[0-9]+: the allocations sum to .*; are lines missing", line)
    path.write_text(whole)
    os.utime(path, (PAST + 60, PAST + 60))
    load(database, dumps)
    assert listed() == []


def test_a_dump_that_is_still_written_is_left_for_the_next_import(dumps: Path, database: Path) -> None:
    """A set cut off and just modified is unfinished, no reject; finished, it loads."""
    path = dumps / "004_a3085531593bac68.txt"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2])
    summary = load(database, dumps)
    assert (summary.loaded, summary.rejected, summary.unfinished) == (4, 0, 1)
    assert summary.unfinished_sets == (str(dumps / "004_a3085531593bac68"),)
    path.write_text(whole)
    summary = load(database, dumps)
    assert (summary.loaded, summary.unchanged, summary.unfinished) == (1, 4, 0)


def test_finished_dumps_are_not_delayed(dumps: Path, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole files load at once, however young they are: without the pause before a second look."""
    for path in dumps.iterdir():
        os.utime(path)
    monkeypatch.setattr(ingest.pipeline.reading, "RETRY_SECONDS", 300)
    assert load(database, dumps).loaded == 5


def test_a_dry_run_writes_nothing(dumps: Path, tmp_path: Path) -> None:
    """--dry-run tells what would be read, also without a database."""
    database = tmp_path / "new.duckdb"
    summary = load(database, dumps, dry_run=True)
    assert (summary.found, summary.loaded, summary.dry_run) == (5, 5, True)
    assert list(database.parent.glob(database.name + "*")) == []


def test_workers_and_one_process_load_the_same(
    everything: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of jobs changes nothing in the rows, nor in the numbers of runs."""
    monkeypatch.setattr(ingest.staging.workers, "INLINE_BYTES", 0)
    load(database, DATA, jobs=2)
    assert differences(everything, database) == {}
    numbers = "SELECT run_id, dump_dir, stem FROM runs ORDER BY ALL"
    assert rows(everything, numbers) == rows(database, numbers)


class Done(NamedTuple):
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


def run_cli(*arguments: str | Path, database: Path) -> Done:
    """Run the command; an error has the exit code and the words that the program shows."""
    done = CliRunner(env={"XBUF_DB": str(database)}).invoke(
        command, [*map(str, arguments)], prog_name="xbuf-ingest", standalone_mode=False
    )
    match done.exception:
        case None:
            return Done(int(done.return_value), done.stdout, done.stderr)
        case XbufError(exit_code=code) as error:
            return Done(int(code), done.stdout, f"{done.stderr}error: {error}\n")
        case click.ClickException(exit_code=code) as wrong:
            return Done(code, done.stdout, done.stderr + wrong.format_message())
        case error:
            raise error


def test_the_command_tells_its_result_on_stdout_and_rejects_on_stderr(dumps: Path, database: Path) -> None:
    """stdout is data, stderr is talk, the exit code is documented."""
    damage(dumps / "001_aa093b3e4f73e23a.txt")
    done = run_cli(dumps, "--format", "json", database=database)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["found"], told["loaded"], told["rejected"]) == (5, 4, 1)
    [line] = done.stderr.splitlines()
    assert line.startswith(f"rejected: {dumps / '001_aa093b3e4f73e23a.txt'}:")
    assert "Total bytes used" in line
    done = run_cli(dumps / "000_350494ed927c1c64.txt", database=database)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 unchanged" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["/nowhere/at/all"], 2, "no such file"),
        ([], 2, "Missing argument"),
        (["--label", "jax", "."], 2, "KEY=VALUE"),
        (["--jobs", "0", "."], 2, "--jobs"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], code: int, words: str, tmp_path: Path) -> None:
    """A wrong command line says what is wrong and makes no database."""
    database = tmp_path / "new.duckdb"
    done = run_cli(*arguments, database=database)
    assert done.returncode == code
    assert words in done.stderr
    assert not database.exists()


def test_the_example_of_the_help_runs(dumps: Path, database: Path) -> None:
    """The one on a directory works with one of the user's own; the others name URLs that are nobody's."""
    shown = run_cli("--help", database=database).stdout
    examples = [line.split() for line in shown.splitlines() if line.strip().startswith("xbuf-ingest ")]
    [example] = [words for words in examples if "://" not in " ".join(words)]
    assert run_cli(dumps, *example[2:], database=database).returncode == 0
