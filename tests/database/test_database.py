"""Opening, creating and upgrading databases, and what is said when that is impossible."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import duckdb
import pytest

import ingest.database.revision as revision_module
import ingest.resources
from ingest.database.connect import open_database, status, upgrade
from ingest.database.refusals import explain
from ingest.database.revision import HEAD, revisions
from ingest.errors import DatabaseError, DatabaseLocked, DatabaseTooNew, NotADatabase
from ingest.resources import migrations_dir
from tests.support.shells import Shell, ShellError
from tests.support.waiting import HANGING_SECONDS

NEXT = "9999_next"
NEXT_REVISION = f"""
from alembic import op
revision = {NEXT!r}
down_revision = {HEAD!r}
def upgrade():
    op.execute("CREATE TABLE later (i BIGINT)")
    op.execute("ALTER TABLE runs ADD COLUMN later BIGINT")
"""


def run_python(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run code in a second process, without raising."""
    return subprocess.run(
        [sys.executable, "-c", dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


@contextmanager
def held(path: Path, *, read_only: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Hold a database open in a second process, as an idle DuckDB shell does."""
    code = (
        "import duckdb, sys; held = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == 'True');"
        " print('open', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(read_only)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def tables(path: Path) -> set[str]:
    """Return the tables of a file, read by DuckDB alone."""
    with duckdb.connect(str(path), read_only=True) as plain:
        return {name for (name,) in plain.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that turns this xbuf into its next release, which brings a revision of its own."""

    def become(code: str) -> None:
        package = tmp_path / "next_release"
        shutil.copytree(
            migrations_dir(), package / "migrations", ignore=shutil.ignore_patterns("__pycache__")
        )
        (package / "migrations" / "versions" / f"{NEXT}.py").write_text(code)
        monkeypatch.setattr(ingest.resources, "_PACKAGE", package)
        monkeypatch.setattr(revision_module, "HEAD", NEXT)

    return become


# --- opening ------------------------------------------------------------------------------------------


def test_opening_a_missing_file_creates_a_database(tmp_path: Path) -> None:
    """A new file is at head, and nothing else is left in its folder."""
    path = tmp_path / "new.duckdb"
    with open_database(path) as connection:
        assert connection.execute("FROM runs").fetchall() == []
    assert status(path).revision == HEAD
    assert [entry.name for entry in tmp_path.iterdir()] == ["new.duckdb"]


def test_paths_are_never_urls_or_other_databases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that DuckDB would take for another kind of database is a file name like any other."""
    monkeypatch.chdir(tmp_path)
    for name in ("sqlite:x", ":memory:", 'it\'s % a "name".duckdb'):
        open_database(name).close()
        assert (tmp_path / name).is_file()


def test_an_interactive_session_sees_no_progress_bar(database: Path) -> None:
    """DuckDB takes `python -c` and a notebook for a person at a prompt, and prints a bar to stdout."""
    asked = "SELECT current_setting('enable_progress_bar')"
    code = f"import sys, ingest; print(ingest.open_database(sys.argv[1]).execute({asked!r}).fetchall())"
    assert run_python(code, database).stdout == "[(False,)]\n"


def test_opening_at_head_does_not_import_sqlalchemy(database: Path) -> None:
    """The start-up of every command is spared the migration machinery."""
    done = run_python(
        """
        import sys
        from ingest.database.connect import open_database
        open_database(sys.argv[1]).close()
        print(sorted({"alembic", "sqlalchemy", "pyarrow", "numpy"} & set(sys.modules)))
        """,
        database,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_limits_are_set_for_the_process(database: Path) -> None:
    """memory_limit and threads reach DuckDB."""
    with open_database(database, memory_limit="300MiB", threads=1) as connection:
        assert connection.execute(
            "SELECT current_setting('memory_limit'), current_setting('threads')"
        ).fetchall() == [("300.0 MiB", 1)]


def test_extensions_are_never_fetched(database: Path) -> None:
    """A query that needs a missing extension fails instead of downloading it."""
    with open_database(database, read_only=True) as connection:
        assert connection.execute(
            "SELECT current_setting('autoinstall_known_extensions'),"
            " current_setting('autoload_known_extensions')"
        ).fetchall() == [(False, False)]


def test_a_second_connection_of_the_process_keeps_the_lock(database: Path) -> None:
    """Opening twice and closing once must not drop the POSIX lock that keeps other processes out."""
    with open_database(database):
        open_database(database).close()
        with pytest.raises(ShellError, match="Could not set lock"):
            Shell(database, read_only=False)


def test_a_database_open_in_another_mode_in_this_process_is_locked(database: Path) -> None:
    """DuckDB's complaint about configurations becomes the error that says who holds the file."""
    with open_database(database), pytest.raises(DatabaseLocked, match=f"process {os.getpid()} "):
        open_database(database, read_only=True)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_new_file_obeys_umask(tmp_path: Path, umask: int, mode: int) -> None:
    """Who may read a new database is for the user's umask to say."""
    path = tmp_path / "new.duckdb"
    before = os.umask(umask)
    try:
        open_database(path).close()
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


def test_two_processes_may_create_the_same_database(tmp_path: Path) -> None:
    """Both find a database at head; neither sees the other's half-made file."""
    path = tmp_path / "new.duckdb"
    code = (
        "import sys; from ingest.database.connect import open_database;"
        f" open_database(sys.argv[1], wait_seconds={HANGING_SECONDS}).close()"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [
        (process.communicate(timeout=HANGING_SECONDS)[1], process.returncode) for process in processes
    ] == [("", 0)] * 2
    assert status(path).readable
    assert [entry.name for entry in tmp_path.iterdir()] == ["new.duckdb"]


# --- what cannot be opened ----------------------------------------------------------------------------


def test_read_only_needs_a_file(tmp_path: Path) -> None:
    """Reading a missing database says how to make one and makes none."""
    path = tmp_path / "missing.duckdb"
    with pytest.raises(DatabaseError, match=r"missing\.duckdb: no such database; .*xbuf-ingest DIR --db"):
        open_database(path, read_only=True)
    assert not path.exists()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is no DuckDB database"),
        (b"BufferAssignment:\nallocation 0: size 4\n", "is no DuckDB database"),
        (b"x" * 100_000, "is no DuckDB database"),
        (b"SQLite format 3\0" + bytes(8176), "is no DuckDB database"),
    ],
    ids=["empty", "dump", "long", "sqlite"],
)
def test_foreign_files_are_refused_untouched(
    tmp_path: Path, content: bytes, reason: str, read_only: bool
) -> None:
    """A file of another kind is named and left byte for byte as it is."""
    path = tmp_path / "foreign.duckdb"
    path.write_bytes(content)
    with pytest.raises(NotADatabase, match=rf"foreign\.duckdb: {reason}; it is left untouched"):
        open_database(path, read_only=read_only)
    assert path.read_bytes() == content


def test_a_real_sqlite_database_is_refused(tmp_path: Path) -> None:
    """DuckDB would fetch an extension to read it; we say that it is no DuckDB database."""
    path = tmp_path / "xbuf.duckdb"
    with sqlite3.connect(path) as sqlite:
        sqlite.execute("CREATE TABLE t (i)")
    sqlite.close()
    with pytest.raises(NotADatabase, match="is no DuckDB database"):
        open_database(path)


@pytest.mark.parametrize("size", [100, 4096, 8192, 12288, 50_000])
def test_a_cut_database_is_refused_untouched(database: Path, size: int) -> None:
    """A file cut short, by a full disk or a broken copy, is called damaged."""
    content = database.read_bytes()[:size]
    database.write_bytes(content)
    with pytest.raises(NotADatabase, match="is damaged"):
        open_database(database)
    assert database.read_bytes() == content


def test_a_damaged_header_is_refused(database: Path) -> None:
    """DuckDB's checksums notice a flipped byte in the headers."""
    content = bytearray(database.read_bytes())
    content[4096 + 20] ^= 0xFF
    content[8192 + 20] ^= 0xFF
    database.write_bytes(content)
    with pytest.raises(NotADatabase, match="is damaged"):
        open_database(database)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_storage_version_of_a_newer_duckdb_is_too_new(database: Path, read_only: bool) -> None:
    """A file that DuckDB 2 wrote with its defaults asks for a newer xbuf."""
    content = bytearray(database.read_bytes())
    assert content[8:12] == b"DUCK"
    content[12:20] = struct.pack("<Q", 69)
    checksum = 5381
    for (word,) in struct.iter_unpack("<Q", content[8:4096]):
        checksum ^= word * 0xBF58476D1CE4E5B9 & 0xFFFF_FFFF_FFFF_FFFF
    content[:8] = struct.pack("<Q", checksum)
    database.write_bytes(content)
    with pytest.raises(DatabaseTooNew, match=r"a newer DuckDB wrote this file .*69.*; upgrade xbuf"):
        open_database(database, read_only=read_only)


def test_a_folder_or_fifo_is_no_database(tmp_path: Path) -> None:
    """What is no regular file is refused at once; a FIFO must not hang the program."""
    os.mkfifo(tmp_path / "fifo.duckdb")
    with pytest.raises(NotADatabase, match="is a directory"):
        open_database(tmp_path)
    with pytest.raises(NotADatabase, match="is no regular file"):
        open_database(tmp_path / "fifo.duckdb")


def test_tables_of_something_else_are_refused(tmp_path: Path) -> None:
    """A DuckDB file with other tables stays free of ours, also when another project's Alembic made it."""
    path = tmp_path / "sales.duckdb"
    with duckdb.connect(str(path)) as plain:
        plain.execute("CREATE TABLE sales (i INTEGER)")
    with pytest.raises(NotADatabase, match=r"sales\.duckdb: holds tables of something else; it is left"):
        open_database(path)
    with duckdb.connect(str(path)) as plain:
        plain.execute("CREATE TABLE alembic_version AS SELECT 'ae10' AS version_num")
    with pytest.raises(NotADatabase, match="holds tables of something else"):
        open_database(path)
    assert tables(path) == {"sales", "alembic_version"}


def test_an_empty_duckdb_file_becomes_a_database(tmp_path: Path) -> None:
    """A file that a shell created in passing is used, and lifted to our storage version."""
    path = tmp_path / "empty.duckdb"
    duckdb.connect(str(path)).close()
    assert status(path).state == "empty"
    with pytest.raises(DatabaseError, match="holds no xbuf tables yet; load dumps: xbuf-ingest"):
        open_database(path, read_only=True)
    open_database(path).close()
    assert (status(path).state, status(path).storage_version) == ("current", "v1.4.0+")


def test_a_log_without_its_database_is_not_adopted(tmp_path: Path) -> None:
    """No new database is made beside the write-ahead log of a lost one."""
    (tmp_path / "lost.duckdb.wal").write_bytes(b"log")
    with pytest.raises(DatabaseError, match=r"its write-ahead log .*lost\.duckdb\.wal is there"):
        open_database(tmp_path / "lost.duckdb")
    assert [entry.name for entry in tmp_path.iterdir()] == ["lost.duckdb.wal"]


def test_the_log_of_another_database_is_refused(database: Path, tmp_path: Path) -> None:
    """A stale WAL, as a careless copy leaves it, is reported and not replayed."""
    other = tmp_path / "other.duckdb"
    open_database(other).close()
    shell = Shell(other, read_only=False)
    shell.run("INSERT INTO run_labels VALUES (1, 'a', 'b')")
    shell.kill()
    shutil.copy(f"{other}.wal", f"{database}.wal")
    with pytest.raises(DatabaseError, match=r"its write-ahead log .*xbuf\.duckdb\.wal .*belongs to another"):
        open_database(database)
    with open_database(other) as connection:
        assert connection.execute("FROM run_labels").fetchall() == [(1, "a", "b")]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A database in a folder that does not exist asks to create the folder."""
    with pytest.raises(DatabaseError, match=r"nowhere/x\.duckdb: its folder does not exist"):
        open_database(tmp_path / "nowhere" / "x.duckdb")


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, and NUL, cannot be a path for DuckDB."""
    with pytest.raises(DatabaseError, match="only paths that are UTF-8"):
        open_database(tmp_path / os.fsdecode(b"\xff.duckdb"))
    with pytest.raises(DatabaseError, match=r"null (byte|character)"):
        open_database(f"{tmp_path}/a\0b.duckdb")


@pytest.mark.slow
def test_a_folder_without_write_permission_is_named(database: Path) -> None:
    """Neither a new nor an old database can be written there; reading goes on."""
    database.chmod(0o444)
    done = run_python(
        """
        import ctypes, os, sys
        from ingest.errors import DatabaseError
        from ingest.database.connect import open_database, status
        import ingest.database.migrate
        os.chdir(sys.argv[1])
        os.chmod(".", 0o555)
        if os.getuid() == 0:
            # Root writes everywhere by its capability; without it the mode counts.
            libc = ctypes.CDLL(None, use_errno=True)
            header = (ctypes.c_uint32 * 2)(0x20080522, 0)
            assert libc.capset(header, (ctypes.c_uint32 * 6)()) == 0, os.strerror(ctypes.get_errno())
        for name in ("new.duckdb", "xbuf.duckdb"):
            try:
                open_database(name)
            except DatabaseError as error:
                print(error)
        print(status("xbuf.duckdb").readable)
        os.chmod(".", 0o755)
        """,
        database.parent,
    )
    assert done.stderr == ""
    new, old, readable = done.stdout.splitlines()
    assert new.startswith("new.duckdb: no permission to write")
    assert old.startswith("xbuf.duckdb: no permission to write")
    assert readable == "True"


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    """Creating a database where it does not fit says so, and the place stays clean."""
    done = run_python(
        """
        import resource, signal, sys
        from ingest.errors import DatabaseError
        from ingest.database.connect import open_database
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            open_database(sys.argv[1])
        except DatabaseError as error:
            print(error)
        """,
        tmp_path / "new.duckdb",
    )
    assert "new.duckdb: no space left to write it" in done.stdout
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_unknown_errors_keep_their_words() -> None:
    """An error that nobody foresaw is told with the path and DuckDB's first line."""
    error = explain("x.duckdb", duckdb.IOException("IO Error: The moon is full.\nMore"))
    assert (type(error), str(error)) == (DatabaseError, "x.duckdb: The moon is full")


# --- locks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held_read_only", "read_only"),
    [
        (False, True),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((False, False), (True, False))),
    ],
)
def test_a_held_database_names_its_holder(database: Path, held_read_only: bool, read_only: bool) -> None:
    """The error carries the holder's process id and command line."""
    with held(database, read_only=held_read_only) as holder:
        with pytest.raises(DatabaseLocked) as refused:
            open_database(database, read_only=read_only)
        assert refused.value.pid == holder.pid
        assert (refused.value.command or "").startswith(f"{sys.executable} -c import duckdb, sys; held")
        assert str(holder.pid) in str(refused.value)


def test_readers_do_not_lock_readers_out(database: Path) -> None:
    """A database that is only read can be read by everybody."""
    with Shell(database, read_only=True), open_database(database, read_only=True) as connection:
        assert connection.execute("FROM runs").fetchall() == []


def test_waiting_outlasts_a_short_lock(database: Path) -> None:
    """Within wait_seconds the database opens as soon as it is let go."""
    with Shell(database, read_only=False) as holder:
        leaves = threading.Timer(0.7, holder.kill)
        leaves.start()
        open_database(database, wait_seconds=HANGING_SECONDS).close()
        leaves.join()


def test_waiting_ends(database: Path) -> None:
    """After wait_seconds the lock is an error, and not much later."""
    with Shell(database, read_only=False):
        started = time.monotonic()
        with pytest.raises(DatabaseLocked):
            open_database(database, wait_seconds=0.5)
        assert 0.5 <= time.monotonic() - started < HANGING_SECONDS


# --- upgrading ----------------------------------------------------------------------------------------


def test_an_older_database_is_upgraded_on_writing(
    database: Path, next_release: Callable[[str], None]
) -> None:
    """Opening to write brings the schema to head and keeps the rows."""
    with open_database(database) as connection:
        connection.execute("INSERT INTO run_labels VALUES (1, 'jax', '0.10.2')")
    next_release(NEXT_REVISION)
    assert (status(database).state, status(database).revision) == ("older", HEAD)
    with pytest.raises(
        DatabaseError, match=f"its schema is {HEAD}, this xbuf needs {NEXT}; .*xbuf db upgrade"
    ):
        open_database(database, read_only=True)
    with open_database(database) as connection:
        assert connection.execute("SELECT later FROM runs").fetchall() == []
        assert connection.execute("FROM run_labels").fetchall() == [(1, "jax", "0.10.2")]
    assert (status(database).state, status(database).revision) == ("current", NEXT)


def test_upgrade_tells_what_it_did(database: Path, next_release: Callable[[str], None]) -> None:
    """The revision before and after; the second time they are the same."""
    next_release(NEXT_REVISION)
    first, second = upgrade(database), upgrade(database)
    assert (first.before, first.after) == (HEAD, NEXT)
    assert (second.before, second.after) == (NEXT, NEXT)


def test_upgrade_needs_a_database(tmp_path: Path) -> None:
    """A mistyped path is an error, not a new database."""
    with pytest.raises(DatabaseError, match="no such database"):
        upgrade(tmp_path / "typo.duckdb")
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_a_newer_xbuf_is_refused(database: Path) -> None:
    """An unknown revision over our tables means that the tool is too old; nothing is changed."""
    with open_database(database) as connection:
        connection.execute(f"UPDATE alembic_version SET version_num = '{NEXT}'")
    for read_only in (False, True):
        with pytest.raises(
            DatabaseTooNew, match=f"its schema {NEXT} is newer than this xbuf.*; upgrade xbuf"
        ):
            open_database(database, read_only=read_only)
    with pytest.raises(DatabaseTooNew):
        upgrade(database)
    found = status(database)
    assert (found.state, found.revision, found.readable) == ("newer", NEXT, False)


def test_a_migration_that_breaks_leaves_the_old_schema(
    database: Path, next_release: Callable[[str], None]
) -> None:
    """What a revision did before its error is rolled back with it."""
    next_release(NEXT_REVISION + '    op.execute("SELECT no_such_column FROM runs")\n')
    before = database_columns(database)
    with pytest.raises(DatabaseError, match="no_such_column"):
        open_database(database)
    assert status(database).revision == HEAD
    assert database_columns(database) == before


@pytest.mark.slow
def test_a_migration_that_is_killed_leaves_the_old_schema(database: Path, tmp_path: Path) -> None:
    """After kill -9 between two statements of a revision the database opens with the old schema."""
    migrations = tmp_path / "migrations"
    shutil.copytree(migrations_dir(), migrations, ignore=shutil.ignore_patterns("__pycache__"))
    (migrations / "versions" / f"{NEXT}.py").write_text(
        f"import os, signal\n{NEXT_REVISION}    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    before = database_columns(database)
    done = run_python(
        """
        import sys
        import ingest.database.migrate as migrate
        migrate.migrations_dir = lambda: sys.argv[2]
        migrate.apply_migrations(sys.argv[1])
        """,
        database,
        migrations,
    )
    assert done.returncode == -signal.SIGKILL
    assert status(database).revision == HEAD
    assert database_columns(database) == before


@pytest.mark.slow
def test_creating_that_is_killed_leaves_no_database(tmp_path: Path) -> None:
    """After kill -9 while a database is made there is none, and the next one is whole."""
    path = tmp_path / "new.duckdb"
    done = run_python(
        """
        import os, signal, sys
        import ingest.database.connect as database, ingest.database.creation as creation
        creation.sync = lambda path: os.kill(os.getpid(), signal.SIGKILL)
        database.open_database(sys.argv[1])
        """,
        path,
    )
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()
    open_database(path).close()
    assert status(path).readable


def test_a_locked_database_is_not_upgraded(database: Path, next_release: Callable[[str], None]) -> None:
    """A shell that reads the database keeps its schema as it is."""
    next_release(NEXT_REVISION)
    with Shell(database, read_only=True), pytest.raises(DatabaseLocked):
        upgrade(database)
    assert status(database).revision == HEAD


# --- status -------------------------------------------------------------------------------------------


def test_status_counts_rows(database: Path) -> None:
    """Every table is counted, a user's own too; Alembic's is left out."""
    with open_database(database) as connection:
        connection.execute("INSERT INTO run_labels VALUES (1, 'a', 'b'), (1, 'c', 'd')")
        connection.execute('CREATE TABLE "my ""notes" AS FROM range(3)')
    found = status(database)
    rows = {table.name: table.rows for table in found.tables}
    assert rows["run_labels"] == 2
    assert rows["runs"] == 0
    assert rows['my "notes'] == 3
    assert "alembic_version" not in rows
    assert (found.path, found.head, found.file_bytes) == (str(database), HEAD, database.stat().st_size)


def test_revisions_are_listed_in_order(next_release: Callable[[str], None]) -> None:
    """The list comes from the files of the migrations."""
    assert revisions() == (HEAD,)
    next_release(NEXT_REVISION)
    assert revisions() == (HEAD, NEXT)


def database_columns(path: Path) -> list[tuple[object, ...]]:
    """Return every column of a file, read by DuckDB alone."""
    with duckdb.connect(str(path), read_only=True) as plain:
        return plain.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
