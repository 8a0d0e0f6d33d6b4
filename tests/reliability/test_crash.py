"""What is left after a kill, a full disk, a folder that refuses, a file that is something else.

The long series are in `tests/reliability`; these are short ones of the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import duckdb
import pytest

import ingest.database.revision as revision_module
import ingest.resources
from ingest import import_dumps
from ingest.database.connect import status
from ingest.database.revision import HEAD
from ingest.maintenance.export import export_database
from ingest.pipeline.history import read_history
from ingest.resources import migrations_dir
from tests.reliability.disk import finish, run_short_of_space
from tests.reliability.kills import (
    ROOT,
    STAGES,
    Site,
    Tally,
    Way,
    at_random,
    attack,
    attack_each_kind,
    command,
    compare_whole,
    run_victim,
)
from tests.support.content import content, differences, orphans
from tests.support.rights import as_ordinary_user
from tests.support.shells import Shell
from tests.support.waiting import HANGING_SECONDS, wait_until

IN_PLACE = Way(reader=False, jobs=1, publish=True)
BY_COPY = Way(reader=True, jobs=1, publish=True)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Dumps, a database with some of them, and what an undisturbed import makes of all."""
    return Site(tmp_path_factory.mktemp("crash"), dumps=16)


@pytest.fixture
def folder(site: Site, tmp_path: Path) -> Path:
    """A folder with a copy of the first database."""
    shutil.copy(site.start, tmp_path / "xbuf.duckdb")
    return tmp_path


def run_as(site: Site, database: Path, before: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    """Import as a process of its own that runs `before` first."""
    return subprocess.run(
        command(site.dumps, database),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        preexec_fn=before,
    )


def kinds_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the kinds of steps that a victim took which came to its end."""
    kinds: list[str] = json.loads(done.stdout.splitlines()[1])
    return kinds


def statuses(database: Path) -> list[tuple[str, int]]:
    with duckdb.connect(str(database), read_only=True) as plain:
        return plain.execute("SELECT status, loaded FROM imports ORDER BY import_id").fetchall()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- kills ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("way", [IN_PLACE, BY_COPY], ids=str)
def test_a_kill_at_each_kind_of_step_loses_nothing(site: Site, way: Way) -> None:
    """At every second thing that is made, written, renamed or removed, and at each part that is loaded.

    By copy only at those that loading in place has not, and while it loads; each with a database of its own,
    as what a killed copy leaves is removed by the next at steps of the same kinds. `kills --every-step` has
    all others.
    """
    tally, kinds, in_place = Tally(), site.kinds(way), site.kinds(IN_PLACE)
    if way is BY_COPY:
        kinds = [kind for kind in kinds if kind not in in_place or kind.startswith("loading")]
    assert len(kinds) > (10 if way is BY_COPY else 30)
    loading = [kind for kind in kinds if kind.startswith("loading") and way is IN_PLACE]
    kinds = [kind for number, kind in enumerate(kinds) if number % 2 == 0 or kind in loading]
    attack_each_kind(site, way, tally, kinds, in_a_row=1 if way is BY_COPY else 4)
    assert tally.kills == len(kinds)
    expected = {"loaded"} if way is BY_COPY else {*STAGES}
    assert {stage for _, stage in tally.met} >= expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_a_random_moment_loses_nothing(site: Site, seed: int) -> None:
    """Also within a call of DuckDB; of an import with workers, with them or alone; some twice in a row."""
    way = Way(reader=seed % 2 == 1, jobs=2, publish=seed < 2)
    tally, chooser = Tally(), random.Random(seed)
    while not tally.kills:  # a moment may come when the import has ended
        attack(site, way, tally, at_random(site, way, chooser))


@pytest.mark.parametrize(
    "step", [pytest.param(3, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("reader", [False, True], ids=["in place", "by copy"])
@pytest.mark.parametrize("change", ["forget", "compact", "restore"])
def test_a_killed_change_is_done_or_not_begun(
    site: Site, tmp_path: Path, change: str, reader: bool, step: int
) -> None:
    """Forgetting, compacting and restoring are killed at steps of all kinds; the next try completes them.

    In the slow run at one kind in three, and at the last.
    """
    export = tmp_path / "export"
    if change == "restore":
        export_database(str(site.whole), str(export))
    start = site.start if change == "restore" else site.whole

    def run(database: Path, *more: str, reader: bool = reader) -> subprocess.CompletedProcess[str]:
        shell = Shell(database, read_only=True) if reader else None
        done = run_victim(export, database, "--change", change, *more)
        if shell is not None:
            shell.kill()
        return done

    (tmp_path / "in-place").mkdir()
    after = Path(shutil.copy(start, tmp_path / "after.duckdb"))
    done = run(after)
    assert done.returncode == 0, done.stderr
    kinds = kinds_of(done)
    if reader:  # those that are the same in place have been tried there: here one in four
        in_place = kinds_of(run(Path(shutil.copy(start, tmp_path / "in-place" / after.name)), reader=False))
        kinds = [kind for number, kind in enumerate(kinds) if kind not in in_place or number % 4 == 0]
    assert len(kinds) >= 3
    kinds = kinds[-1::-step]
    was, wanted = content(start), content(after)
    outcomes = set()
    for number, kind in enumerate(kinds):
        (tmp_path / str(number)).mkdir()
        database = Path(shutil.copy(start, tmp_path / str(number) / after.name))
        assert run(database, "--kill-kind", kind).returncode == -signal.SIGKILL
        found = content(database)
        assert found.orphans == {}
        is_as_it_was, is_done = (differences(one, found, with_imports=True) == {} for one in (was, wanted))
        assert is_as_it_was or is_done
        outcomes |= {"as it was"} if is_as_it_was else {"done"}
        done = run(database)
        assert done.returncode == 0, done.stderr
        assert differences(wanted, database, with_imports=True) == {}
        assert [path.name for path in Path(f"{database}.staging").glob("*")] == ["manifest.duckdb"][
            : change != "compact"
        ]
    assert outcomes == ({"as it was"} if change == "compact" else {"as it was", "done"})


@pytest.mark.slow
def test_a_killed_import_is_shown_as_interrupted(site: Site, folder: Path) -> None:
    """In `imports` and in `xbuf imports`, before and after the next load takes its work along."""
    database = folder / "xbuf.duckdb"
    # When all is read, before the first transaction.
    staged = ("--kill-when", "import.json.tmp", "--kill-at", "3")
    assert run_victim(site.dumps, database, *staged).returncode == -9
    (killed, _) = read_history(str(database))
    assert (killed.status, killed.import_id, killed.waiting > 0) == ("interrupted", None, True)
    import_dumps([site.dumps], database)
    (_, killed, _) = read_history(str(database))
    assert (killed.status, killed.import_id, killed.finished_at) == ("interrupted", 2, None)
    assert killed.loaded
    compare_whole(site, database)


@pytest.mark.slow
def test_an_interrupted_import_loads_what_it_has_read(site: Site, folder: Path) -> None:
    """Ctrl-C ends with 130, a whole database, and a row that says interrupted."""
    database = folder / "xbuf.duckdb"
    code = """
        import sys
        from ingest.cli import ingest, terminal
        terminal.run(ingest.ingest)
        """
    arguments = [str(site.dumps), "--db", str(database), "--jobs", "1"]
    import_ = subprocess.Popen(
        [sys.executable, "-c", dedent(code), *arguments], stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    staging = Path(f"{database}.staging")
    wait_until(lambda: list(staging.glob("2*/import.json")), "a part", pause=0.002)
    import_.send_signal(signal.SIGINT)
    _, error = import_.communicate(timeout=HANGING_SECONDS)
    assert "Traceback" not in error
    assert orphans(database) == {}
    assert differences(database, site.whole, runs_of_first=True) == {}
    if import_.returncode == 130:  # otherwise it was done before the signal came
        assert error.splitlines()[-1].startswith("interrupted; ")
        assert read_history(str(database))[0].status == "interrupted"
    import_dumps([site.dumps], database)
    compare_whole(site, database)


@pytest.mark.slow
def test_a_killed_worker_costs_its_chunk_again(site: Site, folder: Path) -> None:
    """When the system kills a worker for its memory, its sets are read again by another."""
    database = folder / "xbuf.duckdb"
    import_ = subprocess.Popen(
        command(site.dumps, database, "--jobs", "2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    children = Path(f"/proc/{import_.pid}/task/{import_.pid}/children")
    killed = False
    while import_.poll() is None and not killed:
        with suppress(OSError):  # it has just ended
            if workers := children.read_text().split():
                os.kill(int(workers[0]), signal.SIGKILL)
                killed = True
    _, error = import_.communicate(timeout=HANGING_SECONDS)
    assert import_.returncode == 0, error
    assert killed
    compare_whole(site, database)


# --- migrations ----------------------------------------------------------------------------------------

_NEXT = ("9001_next", "9002_next", "9003_next")


def write_revisions(package: Path, *, kill_in: str | None) -> None:
    """Write three revisions after the real ones; one of them kills its process between two statements."""
    shutil.copytree(migrations_dir(), package / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    for before, name in zip((HEAD, *_NEXT), _NEXT, strict=False):
        kill = "os.kill(os.getpid(), 9)" if name == kill_in else "pass"
        (package / "migrations" / "versions" / f"{name}.py").write_text(
            dedent(
                f"""
                import os
                from alembic import op
                revision = {name!r}
                down_revision = {before!r}
                def upgrade():
                    op.execute("ALTER TABLE runs ADD COLUMN of_{name} BIGINT")
                    {kill}
                    op.execute("CREATE TABLE table_{name} (i BIGINT)")
                """
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kill_in", "reader"),
    [(_NEXT[0], False), (_NEXT[2], False), (_NEXT[1], True)],
    ids=["first", "last", "by copy"],
)
def test_a_kill_between_migrations_leaves_a_whole_schema(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch, kill_in: str, reader: bool
) -> None:
    """Killed in a revision, the database is at the one before, or where it was; the next import goes on."""
    database = folder / "xbuf.duckdb"
    write_revisions(folder / "killing", kill_in=kill_in)
    code = """
        import sys
        from pathlib import Path
        import ingest.resources, ingest.database.revision
        ingest.resources._PACKAGE = Path(sys.argv[1])
        ingest.database.revision.HEAD = "9003_next"
        from ingest import import_dumps
        import_dumps([sys.argv[2]], sys.argv[3], jobs=1)
        """
    shell = Shell(database, read_only=True) if reader else None
    done = subprocess.run(
        [sys.executable, "-c", dedent(code), str(folder / "killing"), str(site.dumps), str(database)],
        cwd=ROOT,
        check=False,
    )
    if shell is not None:
        shell.kill()
    assert done.returncode == -signal.SIGKILL
    with duckdb.connect(str(database), read_only=True) as plain:
        (revision,) = plain.execute("SELECT version_num FROM alembic_version").fetchall()[0]
        columns = plain.execute(
            "SELECT count(*) FROM duckdb_columns() WHERE column_name LIKE 'of_9%'"
        ).fetchall()
        tables = plain.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'table_9%'")
        done_before = 0 if reader else _NEXT.index(kill_in)
        assert revision == (HEAD, *_NEXT)[done_before]
        assert columns == tables.fetchall() == [(done_before,)]
    assert orphans(database) == {}

    # The next release without the murder in it.
    write_revisions(folder / "next", kill_in=None)
    monkeypatch.setattr(ingest.resources, "_PACKAGE", folder / "next")
    monkeypatch.setattr(revision_module, "HEAD", _NEXT[-1])
    (folder / "next" / "queries").symlink_to(ROOT / "queries")
    import_dumps([site.dumps], database)
    assert status(database).revision == _NEXT[-1]
    with duckdb.connect(str(database), read_only=True) as plain:
        assert plain.execute("SELECT count(*) FROM runs").fetchall() == [
            duckdb.connect(str(site.whole), read_only=True).execute("SELECT count(*) FROM runs").fetchone()
        ]


# --- space and permissions -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "part"),
    [
        pytest.param(False, 0.01, id="for what is read"),
        pytest.param(False, 0.95, id="for the load in place"),
        pytest.param(True, 0.3, id="for the copy"),
        pytest.param(True, 0.95, id="for the load of the copy"),
    ],
)
def test_a_full_disk_is_told_and_loses_nothing(site: Site, tmp_path: Path, reader: bool, part: float) -> None:
    """Files that cannot grow: exit code 3, one line, a whole database, and with space all is well."""
    whole = site.whole.stat().st_size
    assert 0.3 * whole < site.start.stat().st_size < 0.95 * whole
    ending = run_short_of_space(site, tmp_path, file_bytes=round(whole * part), reader=reader)
    assert ending.code == 3
    assert "no space left to write it" in ending.said
    finish(site, tmp_path)


def test_a_folder_that_refuses_is_told(site: Site, folder: Path) -> None:
    """Without the right to write beside the database nothing is read, and the file is as it was."""
    database = folder / "xbuf.duckdb"
    before = sha256(database)
    folder.chmod(0o555)
    try:
        done = run_as(site, database, as_ordinary_user)
    finally:
        folder.chmod(0o755)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"{database}: no permission to write the file or its folder")
    assert [path.name for path in folder.iterdir()] == ["xbuf.duckdb"]
    assert sha256(database) == before


@pytest.mark.slow
def test_a_file_that_refuses_is_told_and_the_work_is_kept(site: Site, folder: Path) -> None:
    """A read-only database is not replaced behind its owner's back; what was read waits."""
    database = folder / "xbuf.duckdb"
    before = sha256(database)
    database.chmod(0o444)
    done = run_as(site, database, as_ordinary_user)
    assert done.returncode == 3
    assert "no permission" in done.stderr
    assert sha256(database) == before
    database.chmod(0o644)
    summary = import_dumps([site.dumps], database)
    assert (summary.loaded, summary.resumed > 0) == (0, True)
    compare_whole(site, database)


# --- other files in its place --------------------------------------------------------------------------


def _text(path: Path) -> None:
    path.write_text("notes " * 5000)


def _sqlite(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (i)")
    connection.close()


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 3)


def _header_flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(4096, 4096 + 64):
        data[at] ^= 0xFF
        data[at + 4096] ^= 0xFF
    path.write_bytes(data)


def _foreign(path: Path) -> None:
    path.unlink()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 42 AS i")


@pytest.mark.parametrize("damage", [_text, _sqlite, _cut, _header_flipped, _foreign])
def test_a_file_that_is_something_else_is_left_untouched(
    site: Site, folder: Path, damage: Callable[[Path], None]
) -> None:
    """Exit code 3, one line with the file's name, and not a byte changed."""
    database = folder / "xbuf.duckdb"
    damage(database)
    before = sha256(database)
    done = run_victim(site.dumps, database)
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    assert str(database) in done.stderr
    assert sha256(database) == before


def test_a_log_of_another_database_is_told(site: Site, folder: Path) -> None:
    """A write-ahead log that does not belong to the file stops the import; both are left as they are."""
    database, wal = folder / "xbuf.duckdb", folder / "xbuf.duckdb.wal"
    other = folder / "other.duckdb"
    import_dumps([site.dumps], other)
    shell = Shell(other, read_only=False)
    shell.run("CREATE TABLE mine AS SELECT 42 AS i")
    shell.kill()
    shutil.move(f"{other}.wal", wal)
    before = (sha256(database), sha256(wal))
    done = run_victim(site.dumps, database)
    assert done.returncode == 3
    assert ".wal" in done.stderr
    assert "Traceback" not in done.stderr
    assert (sha256(database), sha256(wal)) == before


@pytest.mark.slow
def test_a_left_over_log_is_taken_in(site: Site, folder: Path) -> None:
    """What a killed shell had committed is in the database after the next import."""
    database = folder / "xbuf.duckdb"
    shell = Shell(database, read_only=False)
    shell.run("CREATE TABLE mine AS SELECT 42 AS i")
    shell.kill()
    assert Path(f"{database}.wal").exists()
    import_dumps([site.dumps], database)
    assert not Path(f"{database}.wal").exists()
    with duckdb.connect(str(database)) as connection:
        assert connection.execute("SELECT i FROM mine").fetchall() == [(42,)]
        connection.execute("DROP TABLE mine")
    compare_whole(site, database)


@pytest.mark.slow
def test_a_staging_folder_may_be_deleted(site: Site, folder: Path) -> None:
    """Between imports the folder beside the database holds nothing that cannot be made again."""
    database = folder / "xbuf.duckdb"
    # In the second of several transactions.
    loading = ("--kill-when", "os.listdir", "--kill-at", "40")
    assert run_victim(site.dumps, database, *loading).returncode == -9
    assert [status for status, _ in statuses(database)] == ["ok", "interrupted"]
    shutil.rmtree(f"{database}.staging")
    import_dumps([site.dumps], database)
    compare_whole(site, database)
