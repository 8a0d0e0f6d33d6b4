"""Looking after a database: history, doctor, forgetting, compacting, exports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import duckdb
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from ingest import import_dumps, open_database
from ingest.cli.db import db
from ingest.cli.doctor import doctor
from ingest.cli.export import export, import_export
from ingest.cli.forget import forget
from ingest.cli.imports import imports
from ingest.database.import_lock import import_lock
from ingest.database.tables import RUN_TABLES
from ingest.errors import DatabaseError, DatabaseLocked, UsageError
from ingest.maintenance.compact import compact_database
from ingest.maintenance.doctor import examine
from ingest.maintenance.export import export_database
from ingest.maintenance.export import import_export as take_in
from ingest.maintenance.forget import Selection, forget_runs, plan_forget
from ingest.pipeline.history import read_history
from ingest.pipeline.journal import open_journal, staging_folder
from ingest.pipeline.labels import Labelling
from ingest.query.install import install_queries
from tests.reliability.kills import ROOT
from tests.support.content import differences, orphans
from tests.support.dump_sets import DATA, PAST, SEEDS, write_donors
from tests.support.rights import as_ordinary_user
from tests.support.shells import Shell

SPLIT = DATA / "dumps" / "jaxlib-0.10.2-cpu"
COUNT = "SELECT count(*) FROM runs"


def query(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(database), read_only=True) as plain:
        return plain.execute(sql).fetchall()


def change(database: Path, *statements: str) -> None:
    with duckdb.connect(str(database)) as plain:
        for statement in statements:
            plain.execute(statement)


def invoke(command: click.Command, *arguments: object) -> Result:
    """Run a command as `xbuf` would; its errors are raised."""
    return CliRunner().invoke(
        command, [str(argument) for argument in arguments], standalone_mode=False, catch_exceptions=False
    )


@pytest.fixture(scope="session")
def three_imports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of three imports: seeds, a split dump with a label, and one that had a reject."""
    folder = tmp_path_factory.mktemp("three")
    for name in ("seeds", "split", "last"):
        (folder / name).mkdir()
    for seed in SEEDS[:3]:
        shutil.copy(seed, folder / "seeds")
    for file in SPLIT.iterdir():
        shutil.copy(file, folder / "split")
    shutil.copy(SEEDS[3], folder / "last")
    (folder / "last" / "broken-buffer-assignment.txt").write_text("BufferAssignment:\nnonsense\n")
    for path in folder.rglob("*.txt"):
        os.utime(path, (PAST, PAST))
    database = folder / "xbuf.duckdb"
    import_dumps([folder / "seeds"], database)
    import_dumps([folder / "split"], database, labels=[("jax", "0.10.2"), ("rank", "0")])
    import_dumps([folder / "last"], database, labels=[("rank", "1")])
    return database


@pytest.fixture
def database(three_imports: Path, tmp_path: Path) -> Path:
    """A copy of the database of three imports; its dumps are elsewhere."""
    return Path(shutil.copy(three_imports, tmp_path / "xbuf.duckdb"))


def findings(database: Path) -> dict[str, tuple[str, str]]:
    """Return level and text of each check."""
    return {finding.check: (finding.level, finding.text) for finding in examine(str(database))}


def troubles(database: Path) -> dict[str, str]:
    return {check: text for check, (level, text) in findings(database).items() if level == "trouble"}


# --- history -------------------------------------------------------------------------------------------


def test_the_history_tells_when_an_import_last_went_well(database: Path) -> None:
    """The first line answers the question; the table has one line an import, the newest first."""
    lines = invoke(imports, "--db", database).stdout.splitlines()
    assert lines[0].startswith("last good import: ")
    assert lines[0].endswith("ago), 1 dump rejected; xbuf rejects lists why")
    assert [line.split()[0] for line in lines[-3:]] == ["3", "2", "1"]
    assert "rejects" in lines[-3]


def test_the_history_tells_what_failed_and_what_waits(database: Path, tmp_path: Path) -> None:
    """A locked-out import is there before the database knows of it, with what it has read."""
    (tmp_path / "more").mkdir()
    shutil.copy(SEEDS[4], tmp_path / "more")
    os.utime(tmp_path / "more" / SEEDS[4].name, (PAST, PAST))
    with Shell(database, read_only=False), pytest.raises(DatabaseLocked):
        import_dumps([tmp_path / "more"], database, wait_seconds=0)
    assert "deferred, 1 dumps wait for the next load" in invoke(imports, "--db", database).stdout
    shown = json.loads(invoke(imports, "--db", database, "--format", "json", "--top", 2).stdout)
    assert [(one["import_id"], one["status"], one["waiting"]) for one in shown] == [
        (None, "deferred", 1),
        (3, "rejects", 0),
    ]
    assert shown[0]["sources"] == [str(tmp_path / "more")]
    assert shown[0]["started_at"].endswith("Z")
    import_dumps([tmp_path / "more"], database)
    assert [one.import_id for one in read_history(str(database))] == [5, 4, 3, 2, 1]


def test_an_import_that_runs_is_shown_as_running(database: Path) -> None:
    """While it reads, its line is there; somebody else who holds the lock does not make it run."""
    with import_lock(str(database)):
        journal = open_journal(str(database), ["here"], Labelling(), replace_runs=False, version="0")
        assert read_history(str(database))[0].status == "running"
        journal.write(replace(journal.record, pid=1))
        assert read_history(str(database))[0].status == "interrupted"


def test_the_history_names_rejects_and_what_has_no_room(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 80 columns the sources find no room, and it says so."""
    monkeypatch.setenv("COLUMNS", "80")
    result = invoke(imports, "--db", database)
    assert result.stdout.splitlines()[0].endswith(", 1 dump rejected; xbuf rejects lists why")
    assert max(map(len, result.stdout.splitlines()[1:])) <= 80
    assert result.stderr == "no room for: sources (--width 0 or --format record shows them)\n"
    monkeypatch.setenv("COLUMNS", "400")
    assert invoke(imports, "--db", database).stderr == ""


def test_an_empty_history_says_so(tmp_path: Path) -> None:
    """A database without imports is no error."""
    open_database(tmp_path / "new.duckdb").close()
    assert invoke(imports, "--db", tmp_path / "new.duckdb").stdout == "no import yet\n"


# --- doctor --------------------------------------------------------------------------------------------


def test_a_sound_database_has_no_trouble(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every check is ok, and nothing was changed by looking."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # elsewhere killed processes may have left files
    before = database.read_bytes()
    result = invoke(doctor, "--db", database)
    assert result.return_value == 0
    assert {line.split()[0] for line in result.stdout.splitlines()} == {"ok"}
    assert invoke(doctor, "--db", database, "--quiet").stdout == ""
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    ("check", "statement", "words"),
    [
        pytest.param(
            "sums",
            "UPDATE runs SET total_bytes = total_bytes + 1 WHERE run_id = 2",
            "1 runs whose allocations",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "peaks",
            "UPDATE runs SET peak_bytes = peak_bytes + 1 WHERE run_id = 2",
            "1 runs whose peak_bytes",
            marks=pytest.mark.slow,
        ),
        ("peaks", "UPDATE ranges SET end_time = end_time + 3 WHERE run_id = 4", "1 runs whose peak_bytes"),
        pytest.param(
            "values",
            "INSERT INTO values FROM values WHERE run_id = 1 LIMIT 1",
            "two values of one value_id: 1;",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "allocations",
            "INSERT INTO allocations FROM allocations WHERE run_id = 1",
            "of one number: 1;",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "owners",
            "DELETE FROM allocations WHERE run_id = 3 AND allocation_index = 0",
            "do not have: 3;",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "files",
            "DELETE FROM run_files WHERE run_id = 3",
            "without a primary file or protobuf: 3;",
            marks=pytest.mark.slow,
        ),
        ("identity", "UPDATE runs SET (dump_dir, stem, content_sha256) = ('d', 's', 'c')", "of another run"),
        (
            "orphans",
            "DELETE FROM runs WHERE run_id = 3",
            "belong to no row of runs; delete them: DELETE FROM",
        ),
        ("orphans", "DELETE FROM imports WHERE import_id = 3", "rows of rejects belong to no row of imports"),
        ("schema", "ALTER TABLE uses DROP COLUMN operand_index", "uses.operand_index"),
        pytest.param("schema", "DROP TABLE color_reuse", "color_reuse.color", marks=pytest.mark.slow),
        ("history", "UPDATE imports SET status = 'failed' WHERE import_id = 3", "was failed; the last good"),
    ],
)
def test_trouble_is_found_and_named(database: Path, check: str, statement: str, words: str) -> None:
    """Each kind of damage is trouble, with the runs or columns concerned, and exit code 1."""
    change(database, statement)
    result = invoke(doctor, "--db", database, "--format", "json")
    assert result.return_value == 1
    found = {one["check"]: one for one in map(json.loads, result.stdout.splitlines())}
    assert (found[check]["level"], words in found[check]["text"]) == ("trouble", True)


def test_a_missing_or_locked_database_is_trouble(database: Path, tmp_path: Path) -> None:
    """Exit code 3, and what can be told without the database is told."""
    assert invoke(doctor, "--db", tmp_path / "none.duckdb").return_value == 3
    with Shell(database, read_only=False) as writer:
        result = invoke(doctor, "--db", database, "--format", "json")
        assert result.return_value == 3
        found = {one["check"]: one for one in map(json.loads, result.stdout.splitlines())}
        assert str(writer.pid) in found["database"]["text"]
        assert found["space"]["level"] == "ok"


@pytest.mark.slow
def test_leftovers_are_told(database: Path, tmp_path: Path) -> None:
    """A log that a killed shell left is a note; dumps that wait to be loaded are trouble."""
    shell = Shell(database, read_only=False)
    shell.run("CREATE TABLE mine AS SELECT 42 AS i")
    shell.kill()
    assert findings(database)["log"][0] == "note"
    with Shell(database, read_only=False), pytest.raises(DatabaseLocked):
        import_dumps([SEEDS[4]], database, wait_seconds=0)
    assert "1 dumps are read and not loaded" in troubles(database)["staging"]
    assert troubles(database)["history"].startswith("the last import")
    import_dumps([SEEDS[4]], database)
    assert troubles(database) == {}
    copy = Path(staging_folder(str(database))) / "copy-killed"
    copy.mkdir()
    assert findings(database)["staging"] == (
        "note",
        "a killed import left copy-killed; an import tidies up within an hour",
    )
    import_dumps([SEEDS[4]], database)
    assert not copy.exists()


@pytest.mark.slow
def test_what_is_left_of_an_unborn_database_is_removed(database: Path) -> None:
    """A kill while a database was made leaves a folder; an import removes it when it is old."""
    unborn = database.with_name(".xbuf-new-killed")
    unborn.mkdir(mode=0o700)
    (unborn / "xbuf.duckdb").write_bytes(b"begun")
    import_dumps([SEEDS[4]], database)
    assert unborn.exists()
    assert ".xbuf-new-killed" in findings(database)["staging"][1]
    os.utime(unborn, (PAST, PAST))
    import_dumps([SEEDS[4]], database)
    assert not unborn.exists()


@pytest.mark.slow
def test_analysts_may_look_without_the_right_to_write(database: Path) -> None:
    """The history and the doctor work for a user who cannot look into the staging folder."""
    import_dumps([SEEDS[4]], database)
    staging = staging_folder(str(database))
    staging.chmod(0)
    database.parent.chmod(0o555)
    code = "import sys; from ingest.cli.entry import xbuf as main; sys.argv[0] = 'xbuf'; main()"
    try:
        for words in (["imports"], ["doctor", "--quiet"]):
            done = subprocess.run(
                [sys.executable, "-c", code, *words, "--db", str(database)],
                capture_output=True,
                text=True,
                check=False,
                preexec_fn=as_ordinary_user,
                cwd=ROOT,
                env={**os.environ, "COLUMNS": "400"},
            )
            assert (done.returncode, done.stderr) == (0, ""), done.stdout
    finally:
        database.parent.chmod(0o755)
        staging.chmod(0o700)


def test_a_damaged_log_is_trouble(database: Path) -> None:
    """A log that DuckDB refuses makes the database unusable, and the finding says what to do."""
    shell = Shell(database, read_only=False)
    shell.run("CREATE TABLE mine AS SELECT 42 AS i")
    shell.kill()
    wal = Path(f"{database}.wal")
    data = bytearray(wal.read_bytes())
    data[len(data) // 2] ^= 0xFF
    wal.write_bytes(data)
    assert ".wal" in troubles(database)["database"]


@pytest.mark.slow
def test_a_damaged_block_is_found(database: Path) -> None:
    """A byte that flipped on disk is found when every block is read."""
    assert invoke(doctor, "--db", database, "--full").return_value == 0
    change(database, "CREATE TABLE big AS SELECT md5(range::VARCHAR) AS t FROM range(20_000)")
    ((block,),) = query(
        database, "SELECT min(block_id) FROM pragma_storage_info('big') WHERE segment_type = 'VARCHAR'"
    )
    ((size,),) = query(database, "SELECT block_size FROM pragma_database_size()")
    with database.open("r+b") as file:
        file.seek(3 * 4096 + block * size + 1000)  # three headers, then blocks
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0xFF]))
    found = {one.check: one for one in examine(str(database), full=True)}
    assert found["blocks"].level == "trouble"
    assert "checksum" in found["blocks"].text
    assert invoke(doctor, "--db", database).return_value == 0


# --- forgetting ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selection", "runs"),
    [
        pytest.param(Selection(runs=(2, 3)), [2, 3], marks=pytest.mark.slow),
        pytest.param(Selection(import_id=2), [4, 5, 6], marks=pytest.mark.slow),
        pytest.param(Selection(labels=(("rank", "1"),)), [7], marks=pytest.mark.slow),
        (Selection(labels=(("rank", "0"), ("jax", "0.10.2"))), [4, 5, 6]),
        pytest.param(Selection(labels=(("rank", "2"),)), [], marks=pytest.mark.slow),
        pytest.param(Selection(labels=(("rank", "0"),), runs=(4, 7)), [4], marks=pytest.mark.slow),
        pytest.param(Selection(older_than=timedelta(hours=1)), [], marks=pytest.mark.slow),
        pytest.param(Selection(older_than=timedelta(0)), [1, 2, 3, 4, 5, 6, 7], marks=pytest.mark.slow),
    ],
)
def test_forgetting_deletes_the_chosen_runs_alone(
    database: Path, tmp_path: Path, selection: Selection, runs: list[int]
) -> None:
    """Every row of the chosen runs goes, every row of the others stays; the plan said as much."""
    untouched = Path(shutil.copy(database, tmp_path / "before.duckdb"))
    plan = plan_forget(str(database), selection)
    assert plan.runs == len(runs)
    assert query(database, COUNT) == [(7,)]
    assert forget_runs(str(database), selection).runs == len(runs)
    left = [run for run in range(1, 8) if run not in runs]
    assert query(database, "SELECT run_id FROM runs ORDER BY 1") == [(run,) for run in left]
    assert orphans(database) == {}
    assert differences(database, untouched, runs_of_first=True) == {}
    assert query(database, "SELECT count(*) FROM imports") == [(3,)]


def test_forgetting_a_directory_takes_what_is_below_it(three_imports: Path, database: Path) -> None:
    """A directory means itself and all below, and no neighbour whose name begins alike."""
    folder = three_imports.parent
    change(database, f"UPDATE runs SET dump_dir = '{folder}/seeds2' WHERE run_id = 1")
    plan = plan_forget(str(database), Selection(directory=str(folder / "seeds")))
    assert plan.runs == 2
    assert plan_forget(str(database), Selection(directory=str(folder))).runs == 7
    # Their dumps are still there, so an import would bring them back; that is said.
    assert plan.on_disk == 2


def test_dumps_of_archives_may_come_back_and_those_of_urls_are_not_asked_for(
    database: Path, tmp_path: Path
) -> None:
    """A store that is away is no dump that is gone: nothing is said of it but that nobody asked."""
    archive = tmp_path / "run.zip"
    archive.write_bytes(b"")
    places = {1: f"{archive}/deep/below", 2: f"{tmp_path}/gone.zip/a", 3: "s3://bucket/run", 4: "/gone"}
    for run, place in places.items():
        change(database, f"UPDATE runs SET dump_dir = '{place}' WHERE run_id = {run}")
    plan = plan_forget(str(database), Selection(runs=tuple(places)))
    assert (plan.runs, plan.on_disk, plan.at_urls) == (4, 1, 1)
    result = invoke(forget, "--db", database, "--run", "3")
    assert "1 of these dumps were read from URLs, which are not asked" in result.stderr


def test_rejects_go_with_whole_imports(database: Path) -> None:
    """By import or age alone, the rejects go too; by anything else they stay."""
    assert forget_runs(str(database), Selection(labels=(("rank", "1"),))).rejects == 0
    assert query(database, "SELECT count(*) FROM rejects") == [(1,)]
    assert forget_runs(str(database), Selection(import_id=3)).rejects == 1
    assert query(database, "SELECT count(*) FROM rejects") == [(0,)]


def test_forget_shows_first_and_deletes_with_yes(database: Path) -> None:
    """Without --yes nothing is deleted; nothing chosen is wrong usage, not everything."""
    result = invoke(forget, "--db", database, "--label", "rank=0")
    assert result.stdout.startswith("would forget 3 runs (")
    assert "nothing was deleted; add --yes to delete" in result.stderr
    assert "still on disk" in result.stderr
    assert query(database, COUNT) == [(7,)]
    assert invoke(forget, "--db", database, "--label", "rank=0", "--yes").stdout.startswith("forgot 3 runs")
    assert query(database, COUNT) == [(4,)]
    with pytest.raises(UsageError, match="say which runs to forget"):
        invoke(forget, "--db", database, "--yes")
    with pytest.raises(click.BadParameter, match="is no age"):
        invoke(forget, "--db", database, "--older-than", "30")


def test_what_is_forgotten_is_read_again_while_it_lies_there(three_imports: Path, database: Path) -> None:
    """Forgetting is not excluding: the next import of the directory loads the dumps again."""
    forget_runs(str(database), Selection(import_id=1))
    assert import_dumps([three_imports.parent / "seeds"], database).loaded == 3
    assert differences(database, three_imports) == {}


def test_forgetting_beside_a_reader(database: Path) -> None:
    """A read-only shell keeps what it sees."""
    with Shell(database, read_only=True) as reader:
        forget_runs(str(database), Selection(import_id=1))
        assert reader.run(COUNT) == [(7,)]
    assert query(database, COUNT) == [(4,)]


# --- compacting ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compacting_keeps_everything_and_gives_back_space(database: Path, tmp_path: Path) -> None:
    """Rows, comments, keys, macros and the user's own objects stay; the file shrinks."""
    change(database, "DELETE FROM saved_queries")
    with open_database(database) as connection:
        install_queries(connection)
    change(
        database,
        "CREATE TABLE mine (i INTEGER PRIMARY KEY, t VARCHAR)",
        "COMMENT ON TABLE mine IS 'notes'",
        "INSERT INTO mine SELECT range, repeat(md5(range::VARCHAR), 40) FROM range(20_000)",
        "CREATE VIEW my_view AS SELECT count(*) AS runs FROM runs",
        "CREATE MACRO my_macro(a) AS a + 1",
        "DELETE FROM mine WHERE i > 5",
        "CHECKPOINT",
    )
    before = Path(shutil.copy(database, tmp_path / "before.duckdb"))
    catalog = (
        "SELECT table_name, comment, column_count, has_primary_key FROM duckdb_tables() ORDER BY 1",
        "SELECT table_name, column_name, data_type, is_nullable, comment FROM duckdb_columns()"
        " WHERE NOT internal ORDER BY ALL",
        "SELECT schema_name, function_name, comment FROM duckdb_functions() WHERE NOT internal ORDER BY ALL",
        "SELECT view_name, sql, comment FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
    )
    wanted = [query(before, sql) for sql in catalog]
    done = compact_database(str(database))
    assert (done.before, done.after) == (before.stat().st_size, database.stat().st_size)
    assert done.after < done.before
    assert [query(database, sql) for sql in catalog] == wanted
    assert differences(before, database, with_imports=True) == {}
    assert query(database, "SELECT my_macro(runs) FROM my_view") == [(8,)]
    assert query(database, "SELECT count(*) FROM largest_live_out()") == query(
        before, "SELECT count(*) FROM largest_live_out()"
    )
    assert findings(database)["storage"][1].endswith("DuckDB v1.4.0+")
    with pytest.raises(duckdb.ConstraintException):
        change(database, "INSERT INTO mine VALUES (1, 'again')")


def test_compacting_beside_readers_and_writers(database: Path) -> None:
    """Readers keep the old file; a writer is waited for and named."""
    with Shell(database, read_only=True) as reader:
        assert invoke(db, "compact", "--db", database).stdout.startswith(f"{database}: ")
        assert reader.run(COUNT) == [(7,)]
    with Shell(database, read_only=False), pytest.raises(DatabaseLocked):
        compact_database(str(database), wait_seconds=0.1)


def test_compacting_keeps_long_texts_small(database: Path) -> None:
    """The texts of instructions are still stored with ZSTD: they are most of a database."""
    change(database, "UPDATE values SET instruction_text = repeat(instruction_text, 50)")
    compact_database(str(database))
    kinds = query(
        database,
        "SELECT DISTINCT compression FROM pragma_storage_info('values')"
        " WHERE column_name = 'instruction_text' AND segment_type = 'VARCHAR'",
    )
    assert kinds == [("ZSTD",)]


# --- exports -------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def _export(three_imports: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "export"
    said = invoke(export, folder, "--db", three_imports).stdout
    assert said.startswith("7 runs, ")
    assert said.endswith(f" rows -> {folder}\n")
    return folder


@pytest.fixture
def exported(_export: Path, tmp_path: Path) -> Path:
    """A copy of an export of the database of three imports."""
    return Path(shutil.copytree(_export, tmp_path / "export"))


def test_an_export_restores_to_an_equal_database(database: Path, exported: Path, tmp_path: Path) -> None:
    """Into a new database, every table comes back with the numbers it had, and the queries work.

    The commands say in one line each, with counts, what they did.
    """
    restored = tmp_path / "restored.duckdb"
    said = invoke(import_export, exported, "--db", restored).stdout
    assert said.startswith("7 runs of 3 imports taken in (")
    assert said.endswith(f" rows), 0 were there already -> {restored}\n")
    assert differences(database, restored, with_imports=True) == {}
    numbers = "SELECT run_id, import_id, dump_dir, stem, ingested_at FROM runs ORDER BY 1"
    assert query(restored, numbers) == query(database, numbers)
    moments = "SELECT import_id, started_at, finished_at FROM imports ORDER BY 1"
    assert query(restored, moments) == query(database, moments)
    assert query(restored, "SELECT count(*) FROM largest_live_out()") != [(0,)]
    assert troubles(restored) == {}


@pytest.mark.slow
def test_every_table_survives_an_export(tmp_path: Path) -> None:
    """All dumps of the tests with what lies beside them, into a new database and one that has a part."""
    whole, part, restored = (tmp_path / f"{name}.duckdb" for name in ("whole", "part", "restored"))
    write_donors(tmp_path / "donors")
    import_dumps([DATA, tmp_path / "donors"], whole, labels=[("from", "tests")])
    import_dumps([DATA / "hlo", DATA / "seeds"], part, labels=[("from", "tests")])
    export_database(str(whole), str(tmp_path / "export"))
    for table in RUN_TABLES:
        rows = query(whole, f'SELECT count(*) FROM "{table}"')
        assert rows != [(0,)], table
        assert rows == [(pq.read_metadata(tmp_path / "export" / table / "data.parquet").num_rows,)]
    ((had,),), ((runs,),) = query(part, COUNT), query(whole, COUNT)
    done = take_in(str(tmp_path / "export"), str(part))
    assert (done.runs, done.known) == (runs - had, had)
    assert take_in(str(tmp_path / "export"), str(restored)).runs == runs
    for database in (part, restored):
        assert differences(whole, database) == {}
        assert troubles(database) == {}
        assert import_dumps([DATA, tmp_path / "donors"], database).unchanged == runs


@pytest.mark.slow
def test_an_export_is_taken_in_once(database: Path, exported: Path) -> None:
    """A second time, or into the database it came from, nothing is added."""
    before = Path(shutil.copy(database, exported.parent / "before.duckdb"))
    done = take_in(str(exported), str(database))
    assert (done.runs, done.known, done.imports, done.rows) == (0, 7, 0, 0)
    assert differences(before, database, with_imports=True) == {}


@pytest.mark.slow
def test_an_export_joins_a_database_that_has_a_part(
    three_imports: Path, database: Path, exported: Path, tmp_path: Path
) -> None:
    """Runs that are there keep their numbers, the others get new ones; nothing is there twice."""
    folder = three_imports.parent
    other = tmp_path / "other.duckdb"
    import_dumps([SEEDS[4]], other)
    import_dumps([folder / "split"], other)
    done = take_in(str(exported), str(other))
    assert (done.runs, done.known, done.imports) == (4, 3, 3)
    assert query(other, COUNT) == [(8,)]
    assert orphans(other) == {}
    forget_runs(str(other), Selection(directory=str(SEEDS[4].parent)))
    # The three runs were there without labels, and stay as they were.
    change(database, "DELETE FROM run_labels WHERE run_id IN (4, 5, 6)")
    assert differences(database, other) == {}
    assert troubles(other) == {}


@pytest.mark.slow
def test_an_export_completes_a_run_that_lacks_files(
    exported: Path, three_imports: Path, tmp_path: Path
) -> None:
    """A database that was filled from primary files alone gets the values and ranges."""
    folder, away = three_imports.parent / "split", tmp_path / "away"
    away.mkdir()
    members = [path for path in folder.iterdir() if not path.name.endswith("-buffer-assignment.txt")]
    other = tmp_path / "other.duckdb"
    for path in members:
        path.rename(away / path.name)
    try:
        import_dumps([folder], other)
    finally:
        for path in members:
            (away / path.name).rename(path)
    assert query(other, "SELECT bool_or(has_ranges) FROM runs") == [(False,)]
    done = take_in(str(exported), str(other))
    assert (done.runs, done.known) == (7, 0)
    assert query(other, "SELECT count(*), count(DISTINCT run_id) FROM runs") == [(7, 7)]
    assert query(other, "SELECT bool_and(has_ranges) FROM runs WHERE run_id <= 3") == [(True,)]
    assert troubles(other) == {}


def test_an_export_is_plain_parquet(exported: Path, database: Path) -> None:
    """One folder a table, with the columns of the table, and a manifest of what is there."""
    manifest = json.loads((exported / "xbuf-export.json").read_text())
    tables = {path.name for path in exported.iterdir() if path.is_dir()}
    assert tables == set(manifest["rows"])
    for table in tables:
        file = pq.ParquetFile(exported / table / "data.parquet")
        described = query(database, f'DESCRIBE "{table}"')
        assert file.schema_arrow.names == [row[0] for row in described]
        assert file.metadata.num_rows == manifest["rows"][table]


def _no_manifest(folder: Path) -> None:
    (folder / "xbuf-export.json").unlink()


def _newer(folder: Path) -> None:
    manifest = json.loads((folder / "xbuf-export.json").read_text())
    (folder / "xbuf-export.json").write_text(json.dumps({**manifest, "revision": "9999_later"}))


def _lacks_rows(folder: Path) -> None:
    table = pq.read_table(folder / "uses" / "data.parquet")
    pq.write_table(table.slice(1), folder / "uses" / "data.parquet")


def _cut_off(folder: Path) -> None:
    os.truncate(folder / "values" / "data.parquet", 1000)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_no_manifest, "is no export of xbuf"),
        (_newer, "newer than this xbuf"),
        (_lacks_rows, "rows where the export had"),
        (_cut_off, "cannot be read"),
    ],
)
def test_a_damaged_export_is_refused(
    exported: Path, tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    """Nothing is made from an export that is not whole."""
    damage(exported)
    with pytest.raises(UsageError, match=words):
        take_in(str(exported), str(tmp_path / "restored.duckdb"))
    assert not (tmp_path / "restored.duckdb").exists()


def _rewrite(folder: Path, table: str, query: str) -> None:
    """Replace a table of an export by what a query makes of it, and say so in the manifest."""
    file = folder / table / "data.parquet"
    with duckdb.connect() as plain:
        plain.execute(f"CREATE TABLE t AS FROM '{file}'")
        plain.execute(query)
        plain.execute(f"COPY t TO '{file}' (FORMAT parquet)")
        (rows,) = plain.execute("SELECT count(*) FROM t").fetchall()[0]
    manifest = json.loads((folder / "xbuf-export.json").read_text())
    manifest["rows"][table] = rows
    (folder / "xbuf-export.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("table", "query", "words"),
    [
        pytest.param("runs", "UPDATE t SET run_id = -run_id", "out of range", marks=pytest.mark.slow),
        ("runs", "UPDATE t SET run_id = 9223372036854775807 WHERE run_id = 1", "out of range"),
        pytest.param(
            "runs", "INSERT INTO t FROM t WHERE run_id = 1", "two runs of one number", marks=pytest.mark.slow
        ),
        ("runs", "UPDATE t SET total_bytes = total_bytes + 1", "do not add up to total_bytes"),
        pytest.param(
            "runs",
            "UPDATE t SET peak_bytes = 1 WHERE peak_bytes > 1",
            "peak_bytes is not what",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "runs", "UPDATE t SET dump_dir = NULL", "without a value that all have", marks=pytest.mark.slow
        ),
        ("runs", "ALTER TABLE t ALTER total_bytes TYPE VARCHAR", "column total_bytes is VARCHAR"),
        pytest.param(
            "runs", "ALTER TABLE t DROP COLUMN stem", "lacks the column stem", marks=pytest.mark.slow
        ),
        pytest.param(
            "imports",
            "DELETE FROM t WHERE import_id = 1",
            "runs that belong to no row of imports",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "values",
            "UPDATE t SET run_id = 999",
            "values that belong to no row of runs",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "values",
            "UPDATE t SET allocation_index = 12345",
            "allocations that they do not have",
            marks=pytest.mark.slow,
        ),
        (
            "values",
            "UPDATE t SET offset_bytes = offset_bytes + 1000000000000",
            "outside of their allocations",
        ),
        pytest.param(
            "values", "UPDATE t SET size_bytes = -1", "outside of their allocations", marks=pytest.mark.slow
        ),
        pytest.param(
            "values", "INSERT INTO t FROM t LIMIT 1", "two values of one value_id", marks=pytest.mark.slow
        ),
        pytest.param("ranges", "UPDATE t SET end_time = -1", "end before they start", marks=pytest.mark.slow),
        ("uses", "UPDATE t SET value_id = 123456", "uses of values that are not there"),
    ],
)
def test_an_export_whose_rows_do_not_hold_together_is_refused(
    exported: Path, tmp_path: Path, table: str, query: str, words: str
) -> None:
    """As a dump would be; no database is made and nothing is taken in."""
    _rewrite(exported, table, query)
    with pytest.raises(UsageError, match=words):
        take_in(str(exported), str(tmp_path / "restored.duckdb"))
    assert not (tmp_path / "restored.duckdb").exists()


@pytest.mark.parametrize("place", ["xbuf-export.json", "values/data.parquet"])
def test_an_export_is_made_of_regular_files(exported: Path, tmp_path: Path, place: str) -> None:
    """A link could lead anywhere, and a FIFO never ends."""
    file = exported / place
    file.rename(tmp_path / "moved")
    file.symlink_to(tmp_path / "moved")
    with pytest.raises(UsageError, match="is no regular file"):
        take_in(str(exported), str(tmp_path / "restored.duckdb"))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UsageError, match="is no regular file"):
        take_in(str(exported), str(tmp_path / "restored.duckdb"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["[jax] *{a}", "a b'\"\n", "run*", "100%?x#y"])
def test_an_export_may_lie_at_any_path(database: Path, tmp_path: Path, name: str) -> None:
    """Its name is no pattern: with others beside it that it would match, it is read alone."""
    (tmp_path / "exports").mkdir()
    for other in ("runs", "j", name):
        export_database(str(database), str(tmp_path / "exports" / other))
    done = take_in(str(tmp_path / "exports" / name), str(tmp_path / "restored.duckdb"))
    assert (done.runs, done.known) == (7, 0)
    assert differences(database, tmp_path / "restored.duckdb", with_imports=True) == {}


@pytest.mark.slow
def test_a_folder_named_like_a_partition_is_no_column(exported: Path, tmp_path: Path) -> None:
    """DuckDB takes `backend=zzz` in a path for the value of the column, in Parquet files of any kind."""
    folder = tmp_path / "backend=zzz" / "run_id=7"
    folder.parent.mkdir()
    exported.rename(folder)
    restored = folder.parent / "restored.duckdb"
    take_in(str(folder), str(restored))
    counts = "SELECT count(*), count(DISTINCT run_id), count(*) FILTER (backend = 'zzz') FROM runs"
    assert query(restored, counts) == [(7, 7, 0)]
    new = Path(shutil.copy(SEEDS[0], folder))
    assert import_dumps([new], restored).loaded == 1  # staged below the same folder
    assert query(restored, counts) == [(8, 8, 0)]


def test_a_path_that_is_not_utf_8_is_refused(database: Path, tmp_path: Path) -> None:
    """DuckDB takes no such path; both commands say so."""
    place = str(tmp_path / os.fsdecode(b"\xff"))
    with pytest.raises(UsageError, match="only paths that are UTF-8"):
        export_database(str(database), place)
    with pytest.raises(UsageError, match="only paths that are UTF-8"):
        take_in(place, str(database))


def test_exporting_where_something_is_is_refused(database: Path, exported: Path, tmp_path: Path) -> None:
    """An export never mixes with other files; a failed one leaves nothing."""
    with pytest.raises(UsageError, match="is there already"):
        export_database(str(database), str(exported))
    with pytest.raises(DatabaseError, match="cannot be written"):
        export_database(str(database), str(tmp_path / "nowhere" / "export"))
    (tmp_path / "empty").mkdir()
    export_database(str(database), str(tmp_path / "empty"))
    assert (tmp_path / "empty" / "runs" / "data.parquet").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


# --- help ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [imports, doctor, forget, export, import_export, db.commands["compact"]])
def test_help_ends_with_an_example(command: click.Command) -> None:
    """The reference of a command is its help, and it can be pasted."""
    text = CliRunner().invoke(command, ["--help"]).output
    assert "Example:\n    xbuf " in text
