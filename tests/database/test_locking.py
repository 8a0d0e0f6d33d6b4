"""Analysts and imports at one database: who sees what, who waits, who is told what."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import TypeVar

import duckdb
import pytest

import ingest.database.file as file_module
import ingest.database.publish as publish_module
import ingest.database.writer as writer_module
from ingest import ImportSummary, import_dumps, open_database
from ingest.cli.ingest import ingest
from ingest.database.file import UNBORN
from ingest.database.import_lock import import_lock, lock_holder
from ingest.database.publish import publish_snapshot
from ingest.database.read_lock import ReadLock
from ingest.database.writer import open_writer, read_locked, replace_database
from ingest.errors import DatabaseError, DatabaseLocked, NotADatabase, UsageError
from ingest.events import Event, ImportFailed, Loaded, Planned, WaitingForLock
from ingest.maintenance.compact import compact_database
from ingest.pipeline.history import read_history
from ingest.pipeline.journal import read_journals, staging_folder
from tests.reliability.day import live_through
from tests.reliability.locks import as_markdown, matrix
from tests.support.content import differences
from tests.support.dump_sets import DATA, PAST, SEEDS
from tests.support.shells import Shell, ShellError
from tests.support.waiting import HANGING_SECONDS

COUNT = "SELECT count(*) FROM runs"
_E = TypeVar("_E")


class Site:
    """A database and a folder of dumps that grows, as a timer meets them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "xbuf.duckdb"
        self.dumps = folder / "dumps"
        self.dumps.mkdir(exist_ok=True)
        self.events: list[Event] = []

    def grow(self, *numbers: int) -> None:
        """Let seeds arrive, long finished."""
        for number in numbers:
            target = self.dumps / SEEDS[number].name
            shutil.copy(SEEDS[number], target)
            os.utime(target, (PAST, PAST))

    def load(self, wait_seconds: float = 0.3, **options: object) -> ImportSummary:
        """Import what is there."""
        self.events.clear()
        return import_dumps(
            [self.dumps],
            self.database,
            wait_seconds=wait_seconds,
            on_event=self.events.append,
            **options,  # type: ignore[arg-type]
        )

    def told(self, kind: type[_E]) -> list[_E]:
        return [event for event in self.events if isinstance(event, kind)]

    def runs(self) -> int:
        with duckdb.connect(str(self.database), read_only=True) as connection:
            row = connection.execute(COUNT).fetchone()
        assert row is not None
        return int(row[0])

    def statuses(self) -> list[tuple[str, int]]:
        with duckdb.connect(str(self.database), read_only=True) as connection:
            return connection.execute("SELECT status, loaded FROM imports ORDER BY import_id").fetchall()

    @property
    def inode(self) -> int:
        return self.database.stat().st_ino

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.database.read_bytes()).hexdigest()


class WhenOneWaits(list[Event]):
    """Events of an import; something is done as it says that it waits for a lock."""

    def __init__(self, action: Callable[[], None]) -> None:
        super().__init__()
        self._action = action

    def append(self, event: Event) -> None:
        super().append(event)
        if isinstance(event, WaitingForLock):
            self._action()


@pytest.fixture(scope="session")
def _first_import(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("first") / "site"
    folder.mkdir()
    site = Site(folder)
    site.grow(0, 1)
    assert site.load().loaded == 2
    return site


@pytest.fixture
def site(_first_import: Site) -> Iterator[Site]:
    """A database with two runs, and their dumps: one place for all tests, put back as it was after each."""
    kept = _first_import.folder.with_name("kept")
    if not kept.exists():
        shutil.copytree(_first_import.folder, kept)
    yield Site(_first_import.folder)
    shutil.rmtree(_first_import.folder)
    shutil.copytree(kept, _first_import.folder)


@pytest.fixture
def open_shell() -> Iterator[Callable[..., Shell]]:
    """Open shells that are closed at the end of the test."""
    shells: list[Shell] = []

    def open_(database: Path, *, read_only: bool) -> Shell:
        shells.append(Shell(database, read_only=read_only))
        return shells[-1]

    yield open_
    for shell in shells:
        shell.kill()


# --- nobody else ---------------------------------------------------------------------------------------


def test_alone_the_file_is_changed_in_place(site: Site) -> None:
    """Without anybody at the database it keeps its inode, and no write-ahead log is left."""
    before = site.inode
    site.grow(2)
    assert site.load().by_copy is False
    assert (site.inode, site.runs()) == (before, 3)
    assert not Path(f"{site.database}.wal").exists()


# --- readers -------------------------------------------------------------------------------------------


def test_a_reader_keeps_its_snapshot_and_the_next_sees_the_import(
    site: Site, open_shell: Callable[..., Shell]
) -> None:
    """An open read-only shell neither blocks the import nor sees it; DETACH and ATTACH show it."""
    reader = open_shell(site.database, read_only=True)
    before = site.inode
    site.grow(2, 3)
    summary = site.load()
    assert (summary.loaded, summary.by_copy) == (2, True)
    assert site.inode != before
    assert reader.run(COUNT) == [(2,)]
    # What the reader had not read yet is there for it too, from the old file.
    assert reader.run("SELECT count(*) > 0 FROM values") == [(True,)]
    assert reader.run(f"ATTACH OR REPLACE '{site.database}' AS fresh (READ_ONLY)") == []
    assert reader.run("SELECT count(*) FROM fresh.runs") == [(4,)]
    site.grow(4)
    site.load()
    # DuckDB 1.5 leaves a database alone that is attached by this name from this path already.
    reader.run(f"ATTACH OR REPLACE '{site.database}' AS fresh (READ_ONLY)")
    assert reader.run("SELECT count(*) FROM fresh.runs") == [(4,)]
    reader.run("DETACH fresh")
    reader.run(f"ATTACH '{site.database}' AS fresh (READ_ONLY)")
    assert reader.run("SELECT count(*) FROM fresh.runs") == [(5,)]
    with Shell(site.database, read_only=True) as second:
        assert second.run(COUNT) == [(5,)]


@pytest.mark.slow
def test_a_load_by_copy_equals_one_in_place(
    site: Site, open_shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """Both ways put the same rows into every table."""
    open_shell(site.database, read_only=True)
    site.grow(2, 3, 4)
    assert site.load().by_copy
    other = tmp_path / "other.duckdb"
    import_dumps([site.dumps], other)
    assert differences(site.database, other) == {}


@pytest.mark.slow
def test_a_reader_that_stays_for_a_day_never_makes_an_import_fail(
    site: Site, open_shell: Callable[..., Shell]
) -> None:
    """Twelve imports, some with news and some without, all end well beside one read-only shell."""
    reader = open_shell(site.database, read_only=True)
    for hour in range(12):
        if hour % 4 == 1:
            site.grow(2 + hour // 4)
        assert site.load().status == "ok"
    assert reader.run(COUNT) == [(2,)]
    assert site.runs() == 5
    reader.close()
    site.load()
    assert site.statuses() == [("ok", 2), *[("ok", int(hour % 4 == 1)) for hour in range(12)], ("ok", 0)]


@pytest.mark.slow
def test_a_scheduled_day_beside_real_shells(tmp_path: Path) -> None:
    """Five runs of the command with `duckdb -readonly` opened in the morning, hourly, and all the time.

    Each follows one of another way: by copy, in place, without news. `tests.reliability.day` has all 24.
    """
    day = live_through(tmp_path, dumps=2, hours=5, idle_hour=3)
    assert [hour.told.loaded for hour in day.hours] == [2, 2, 2, 0, 2]
    assert {hour.told.by_copy for hour in day.hours[::2]} == {True}
    assert day.at_snapshot


def test_nothing_new_does_not_copy_the_database(site: Site, open_shell: Callable[..., Shell]) -> None:
    """With a reader there, the record of an import that found nothing waits for the next load."""
    reader = open_shell(site.database, read_only=True)
    before = (site.inode, site.sha256)
    summary = site.load()
    assert (summary.import_id, summary.status, summary.unchanged) == (None, "ok", 2)
    assert (site.inode, site.sha256) == before
    reader.close()
    assert site.load().import_id == 3
    assert site.statuses() == [("ok", 2), ("ok", 0), ("ok", 0)]


@pytest.mark.slow
def test_imports_without_news_leave_one_file(site: Site, open_shell: Callable[..., Shell]) -> None:
    """Beside a reader that stays they are folded; all are in the history; the next load records each once."""
    bad = site.dumps / "bad-buffer-assignment.txt"
    bad.write_text("BufferAssignment:\nnonsense\n")
    os.utime(bad, (PAST, PAST))
    site.load()
    reader = open_shell(site.database, read_only=True)
    for _ in range(3):
        site.load()
    staging = staging_folder(str(site.database))
    assert sorted(path.name for path in staging.iterdir() if not path.name.startswith("2")) == [
        "imports.jsonl",
        "manifest.duckdb",
    ]
    assert len(read_journals(str(site.database))) == 1
    with (staging / "imports.jsonl").open("a") as file:
        file.write('{"started_at": "cut off')
    history = read_history(str(site.database))
    assert [entry.status for entry in history] == [*["rejects"] * 4, "ok"]
    folded = (staging / "imports.jsonl").read_bytes()
    reader.close()
    site.load()
    assert not (staging / "imports.jsonl").exists()
    assert site.statuses() == [("ok", 2), *[("rejects", 0)] * 5]
    # As after a kill between the load and the removal.
    (staging / "imports.jsonl").write_bytes(folded)
    site.load()
    with duckdb.connect(str(site.database), read_only=True) as connection:
        rows = connection.execute(
            "SELECT import_id, count(*), any_value(kind) FROM rejects GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        moments = connection.execute("SELECT started_at FROM imports ORDER BY import_id").fetchall()
    assert rows == [(number, 1, rows[0][2]) for number in range(2, 8)]
    assert moments == sorted(moments)


@pytest.mark.slow
def test_new_rejects_are_worth_a_copy_and_the_same_again_are_not(
    site: Site, open_shell: Callable[..., Shell]
) -> None:
    """A reader finds what was rejected at its next open; the same reject an hour later copies nothing."""
    open_shell(site.database, read_only=True)
    broken = site.dumps / "broken-buffer-assignment.txt"
    broken.write_text("BufferAssignment:\nnonsense\n")
    os.utime(broken, (PAST, PAST))
    assert site.load().import_id == 2
    with duckdb.connect(str(site.database), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM rejects").fetchall() == [(1,)]
    open_shell(site.database, read_only=True)  # the first one holds the file from before the copy
    before = site.inode
    assert (site.load().import_id, site.inode) == (None, before)


@pytest.mark.slow
def test_a_copy_keeps_permissions(site: Site, open_shell: Callable[..., Shell]) -> None:
    """The file that takes the place has the mode and owner of the old one."""
    site.database.chmod(0o640)
    open_shell(site.database, read_only=True)
    before = site.database.stat()
    site.grow(2)
    assert site.load().by_copy
    after = site.database.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@pytest.mark.slow
def test_a_link_to_the_database_stays_a_link(
    site: Site, open_shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """A database given by a symbolic link is replaced where it lies."""
    link = tmp_path / "elsewhere" / "link.duckdb"
    link.parent.mkdir()
    link.symlink_to(site.database)
    open_shell(site.database, read_only=True)
    site.grow(2)
    assert import_dumps([site.dumps], link).by_copy
    assert link.is_symlink()
    assert site.runs() == 3
    assert [path.name for path in link.parent.iterdir()] == ["link.duckdb"]


@pytest.mark.slow
def test_a_file_with_another_name_is_read_and_not_changed(
    site: Site, open_shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """The other name would keep the old runs, or hide the log; what was read is loaded once it is gone."""
    other = tmp_path / "other name.duckdb"
    os.link(site.database, other)
    before = site.database.read_bytes()
    site.grow(2)
    for beside in (False, True):
        if beside:
            open_shell(site.database, read_only=True)
        with pytest.raises(DatabaseError, match=r"2 names \(hard links\)"):
            site.load()
        with pytest.raises(DatabaseError, match=r"2 names \(hard links\)"):
            compact_database(str(site.database))
        assert site.runs() == 2
    assert site.database.read_bytes() == before
    other.unlink()
    assert site.load().resumed == 1
    assert site.runs() == 3


@pytest.mark.slow
def test_a_database_whose_maker_was_killed_at_its_birth_is_loaded(site: Site) -> None:
    """It has its name, and still the one that it was made under; the next import takes that away."""
    unborn = site.database.parent / f"{UNBORN}killed"
    unborn.mkdir(mode=0o700)
    os.link(site.database, unborn / site.database.name)
    site.grow(2)
    assert site.load().loaded == 1
    assert not unborn.exists()


def test_an_import_whose_read_lock_was_killed_does_not_replace_the_database(
    site: Site, open_shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """Without the lock a writer gets in, and what it commits would go with the old file."""
    place = str(site.database)

    def replace() -> None:
        with read_locked(place) as lock, replace_database(place, str(tmp_path / "staging"), lock) as new:
            lock.copy(place, new.file)
            lock._child.kill()
            lock._child.wait()
            with Shell(site.database, read_only=False) as writer:
                writer.run("UPDATE runs SET stem = 'acknowledged'")

    with pytest.raises(DatabaseError, match="the process that keeps the file locked ended"):
        replace()
    assert open_shell(site.database, read_only=True).run("SELECT DISTINCT stem FROM runs") == [
        ("acknowledged",)
    ]
    assert list((tmp_path / "staging").iterdir()) == []


def test_nobody_can_write_while_the_copy_is_changed(
    site: Site, open_shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """A write to the file that is about to be replaced would be lost, so it is refused until then."""
    open_shell(site.database, read_only=True)
    staging = tmp_path / "staging"
    with open_writer(str(site.database), str(staging)) as writer:
        assert writer.by_copy
        writer.connection.execute("UPDATE runs SET stem = 'changed'")
        with pytest.raises(ShellError, match="Could not set lock"):
            Shell(site.database, read_only=False)
        with Shell(site.database, read_only=True) as second:
            assert second.run("SELECT count(*) FROM runs WHERE stem = 'changed'") == [(0,)]
    with Shell(site.database, read_only=False) as writer:
        assert writer.run("SELECT count(*) FROM runs WHERE stem = 'changed'") == [(2,)]
    assert list(staging.iterdir()) == []


@pytest.mark.slow
def test_a_new_file_is_on_disk_before_it_has_its_name(
    site: Site, tmp_path: Path, open_shell: Callable[..., Shell], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is synced, then renamed, then its folder is synced: the copy, and the snapshot."""
    snapshot = tmp_path / "team.duckdb"
    site.grow(2)
    site.load(publish=snapshot)
    open_shell(site.database, read_only=True)
    calls: list[tuple[str, int]] = []
    real_replace = ReadLock.replace

    def sync(path: str) -> None:
        calls.append(("sync", os.stat(path).st_ino))
        file_module.sync(path)

    def replace(lock: ReadLock, new: str, place: str) -> None:
        calls.append((f"rename to {os.path.basename(place)}", os.stat(new).st_ino))
        real_replace(lock, new, place)

    for module in (writer_module, publish_module):
        monkeypatch.setattr(module, "sync", sync)
    monkeypatch.setattr(ReadLock, "replace", replace)
    site.grow(3)
    assert site.load(publish=snapshot).by_copy
    for place in (site.database, snapshot):
        at = calls.index((f"rename to {place.name}", place.stat().st_ino))
        assert ("sync", place.stat().st_ino) in calls[:at]
        assert calls[at + 1] == ("sync", place.parent.stat().st_ino)


def test_a_writer_that_fails_throws_the_copy_away(
    site: Site, open_shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """An error of the writer leaves the database as it was, also what was committed in the copy."""
    open_shell(site.database, read_only=True)
    before = (site.inode, site.sha256)

    def change() -> None:
        with open_writer(str(site.database), str(tmp_path / "staging")) as writer:
            writer.connection.execute("DELETE FROM runs")
            writer.connection.execute("DELETE FROM no_such_table")

    with pytest.raises(DatabaseError, match="no_such_table"):
        change()
    assert (site.inode, site.sha256) == before
    assert list((tmp_path / "staging").iterdir()) == []


@pytest.mark.slow
def test_a_short_reader_of_a_large_file_is_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where copying takes longer than the reader stays, the file is changed in place."""
    monkeypatch.setattr("ingest.database.writer.COPY_BYTES_PER_SECOND", 1.0)
    with Shell(site.database, read_only=True) as reader:
        timer = threading.Timer(0.4, reader.kill)
        timer.start()
        site.grow(2)
        assert site.load(wait_seconds=HANGING_SECONDS).by_copy is False
        timer.join()


# --- the read lock ------------------------------------------------------------------------------------------


def test_a_read_lock_leaves_the_locks_of_its_own_process_alone(site: Site, tmp_path: Path) -> None:
    """Copying the file does not unlock what a notebook in the same process has open.

    Closing any descriptor of a file drops all POSIX locks of the process on it; the lock has a process of
    its own.
    """
    with duckdb.connect(str(site.database), read_only=True):
        lock = ReadLock.take(str(site.database))
        assert lock is not None
        with lock:
            size = lock.copy(str(site.database), str(tmp_path / "copy"))
        assert size == site.database.stat().st_size
        with pytest.raises(ShellError, match=f"PID {os.getpid()}"):
            Shell(site.database, read_only=False)
    assert (tmp_path / "copy").read_bytes() == site.database.read_bytes()
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600


def test_reading_the_file_in_the_same_process_would_unlock_it(site: Site) -> None:
    """The reason for the lock's own process: an open and a close, and a writer gets in next to a reader."""
    with duckdb.connect(str(site.database), read_only=True):
        os.close(os.open(site.database, os.O_RDONLY))
        with Shell(site.database, read_only=False) as writer:
            assert writer.run(COUNT) == [(2,)]


def test_an_import_beside_a_connection_of_its_own_process(site: Site) -> None:
    """A notebook may import into the database that it has open for reading."""
    with open_database(site.database, read_only=True) as mine:
        site.grow(2)
        assert site.load().by_copy
        assert mine.execute(COUNT).fetchall() == [(2,)]
    assert site.runs() == 3


def test_a_read_lock_is_not_given_next_to_a_writer(site: Site, open_shell: Callable[..., Shell]) -> None:
    """A file that is open for writing cannot be held, hence never copied or replaced."""
    writer = open_shell(site.database, read_only=False)
    assert ReadLock.take(str(site.database)) is None
    writer.close()
    lock = ReadLock.take(str(site.database))
    assert lock is not None
    lock.release()


def test_a_read_lock_ends_with_its_parent(site: Site) -> None:
    """A killed import keeps nobody out."""
    code = """
        import os, sys
        from ingest.database.read_lock import ReadLock
        lock = ReadLock.take(sys.argv[1])
        assert lock is not None
        os.kill(os.getpid(), 9)
        """
    subprocess.run([sys.executable, "-c", dedent(code), str(site.database)], check=False)
    deadline = time.monotonic() + HANGING_SECONDS
    while True:
        try:
            Shell(site.database, read_only=False).close()
            break
        except ShellError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_copy_that_cannot_be_written_is_told(site: Site, tmp_path: Path) -> None:
    """The child's error reaches the parent with its number and the file."""
    lock = ReadLock.take(str(site.database))
    assert lock is not None
    with lock, pytest.raises(FileNotFoundError, match="nowhere"):
        lock.copy(str(site.database), str(tmp_path / "nowhere" / "copy"))


# --- writers -------------------------------------------------------------------------------------------


def test_a_writer_is_named_and_what_was_read_is_kept(site: Site, open_shell: Callable[..., Shell]) -> None:
    """A read-write shell stops the load, not the reading; the next import loads what is staged."""
    writer = open_shell(site.database, read_only=False)
    before = site.sha256
    site.grow(2, 3)
    with pytest.raises(DatabaseLocked, match="process") as caught:
        site.load()
    assert caught.value.pid == writer.pid
    assert caught.value.command is not None
    assert sys.executable in caught.value.command
    assert caught.value.exit_code == 3
    assert site.sha256 == before
    # It knew the old runs without the database, from what the last import wrote down.
    assert site.told(Planned) == [Planned(4, 2, 0, "staging")]
    assert [type(event) for event in site.events[-2:]] == [WaitingForLock, ImportFailed]
    assert site.events[-1][:2] == ("deferred", 2)

    with pytest.raises(DatabaseLocked):
        site.load()
    assert site.told(Planned) == [Planned(4, 0, 1, "staging")]

    writer.close()
    shutil.rmtree(site.dumps)
    site.dumps.mkdir()  # what is staged needs its dumps no more
    summary = site.load()
    assert (summary.loaded, summary.resumed, site.runs()) == (0, 2, 4)
    assert site.statuses() == [("ok", 2), ("deferred", 2), ("deferred", 0), ("ok", 0)]
    assert read_journals(str(site.database)) == []


@pytest.mark.slow
def test_a_deferred_import_equals_an_undisturbed_one(
    site: Site, open_shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """Labels, rejects and rows arrive as if the database had been free."""
    broken = site.dumps / "broken-buffer-assignment.txt"
    broken.write_text("BufferAssignment:\nnonsense\n")
    os.utime(broken, (PAST, PAST))
    site.grow(2)
    writer = open_shell(site.database, read_only=False)
    with pytest.raises(DatabaseLocked):
        site.load(labels=[("jax", "0.10.2")])
    writer.close()
    broken.unlink()
    site.load()
    with duckdb.connect(str(site.database), read_only=True) as connection:
        assert connection.execute("SELECT run_id, key, value FROM run_labels").fetchall() == [
            (3, "jax", "0.10.2")
        ]
        assert connection.execute("SELECT import_id, file FROM rejects").fetchall() == [(2, str(broken))]
    other = tmp_path / "other.duckdb"
    import_dumps([site.dumps], other)
    with duckdb.connect(str(site.database)) as connection:
        connection.execute("DELETE FROM run_labels")
    assert differences(site.database, other) == {}


def test_what_a_writer_commits_is_never_lost(site: Site, open_shell: Callable[..., Shell]) -> None:
    """An import that waits for a read-write shell loads beside what the shell has written."""
    writer = open_shell(site.database, read_only=False)
    site.grow(2)

    def commit() -> None:
        writer.run("CREATE TABLE mine AS SELECT 42 AS i")
        writer.close()

    site.events = WhenOneWaits(commit)
    summary = site.load(wait_seconds=HANGING_SECONDS)
    assert (summary.loaded, summary.by_copy) == (1, False)
    (waiting,) = site.told(WaitingForLock)
    assert (waiting.pid, waiting.wait_seconds) == (writer.pid, HANGING_SECONDS)
    with duckdb.connect(str(site.database), read_only=True) as connection:
        assert connection.execute("SELECT i, (SELECT count(*) FROM runs) FROM mine").fetchall() == [(42, 3)]


def test_nothing_new_beside_a_writer_is_no_failure(site: Site, open_shell: Callable[..., Shell]) -> None:
    """An import with nothing to load has no use for the database and does not wait for it."""
    open_shell(site.database, read_only=False)
    assert site.load(wait_seconds=0).status == "ok"
    assert site.told(WaitingForLock) == []


@pytest.mark.slow
def test_an_unknown_past_is_read_again_and_not_loaded_twice(
    site: Site, open_shell: Callable[..., Shell]
) -> None:
    """Without the record of what is known, a locked-out import stages all; the load passes over the old."""
    (staging_folder(str(site.database)) / "manifest.duckdb").unlink()
    site.grow(2)
    writer = open_shell(site.database, read_only=False)
    with pytest.raises(DatabaseLocked):
        site.load()
    assert site.told(Planned) == [Planned(3, 3, 0, "staging")]
    writer.close()
    assert site.load().resumed == 1
    assert site.runs() == 3


@pytest.mark.slow
def test_staged_work_completes_the_run_it_belongs_to(
    tmp_path: Path, open_shell: Callable[..., Shell]
) -> None:
    """A set that gained files while the database was locked completes its run, whatever number that has."""
    stem = "module_0002.jit_step.cpu_after_optimizations"
    members = sorted((DATA / "dumps" / "jaxlib-0.10.2-cpu").glob(f"{stem}-*"))
    site = Site(tmp_path)
    site.grow(0)
    shutil.copy(next(path for path in members if path.name.endswith("assignment.txt")), site.dumps)
    site.load()
    writer = open_shell(site.database, read_only=False)
    for path in members:
        shutil.copy(path, site.dumps)
    with pytest.raises(DatabaseLocked):
        site.load()
    # The analyst deletes one run and gives the other a new number: what was planned for 2 is 7 now.
    writer.run("DELETE FROM runs WHERE stem NOT LIKE 'module%'")
    for table in ("run_files", "runs"):
        writer.run(f"UPDATE {table} SET run_id = 7 WHERE run_id = (SELECT run_id FROM runs)")
    writer.close()
    site.load(rehash=True)
    with duckdb.connect(str(site.database), read_only=True) as connection:
        rows = connection.execute("SELECT run_id, stem, has_values FROM runs ORDER BY ALL").fetchall()
    assert rows == [(7, stem, True), (8, SEEDS[0].stem, True)]


# --- two importers -------------------------------------------------------------------------------------


def test_a_second_import_waits_for_the_first(site: Site) -> None:
    """One importer at a time; the second goes on when the first is done."""
    site.grow(2)
    waits = threading.Event()
    site.events = WhenOneWaits(waits.set)
    with import_lock(str(site.database)):
        thread_result: list[ImportSummary] = []
        thread = threading.Thread(
            target=lambda: thread_result.append(site.load(wait_seconds=HANGING_SECONDS))
        )
        thread.start()
        assert waits.wait(HANGING_SECONDS)
        assert thread_result == []
    thread.join()
    assert thread_result[0].loaded == 1
    (waiting,) = site.told(WaitingForLock)
    assert waiting.pid == os.getpid()


def test_a_second_import_gives_up_and_names_the_first(site: Site) -> None:
    """After --wait the second importer ends with the first one's number."""
    with import_lock(str(site.database)):
        holder = lock_holder(str(site.database))
        assert holder is not None
        assert holder.pid == os.getpid()
        with pytest.raises(DatabaseLocked) as caught:
            site.load(wait_seconds=0)
        assert caught.value.pid == os.getpid()
    assert lock_holder(str(site.database)) is None


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_imports_at_once_load_everything_once(tmp_path: Path, count: int) -> None:
    """Processes that start together on one new database leave each run in it once."""
    site = Site(tmp_path)
    site.grow(0, 1, 2, 3, 4)
    code = "from ingest.cli.entry import xbuf_ingest; xbuf_ingest()"
    command = [sys.executable, "-c", code, str(site.dumps), "--db", str(site.database)]
    command += ["--wait", str(HANGING_SECONDS), "--jobs", "1"]
    pipe = subprocess.PIPE
    imports = [subprocess.Popen(command, stdout=pipe, stderr=pipe) for _ in range(count)]
    for one in imports:
        _, error = one.communicate(timeout=HANGING_SECONDS)
        assert one.returncode == 0, error
    assert site.runs() == 5
    assert sorted(loaded for _, loaded in site.statuses()) == [0] * (count - 1) + [5]


# --- left-over write-ahead logs ------------------------------------------------------------------------


def leave_wal(site: Site) -> None:
    """Commit something in a shell that is killed: it is in the write-ahead log alone."""
    shell = Shell(site.database, read_only=False)
    shell.run("CREATE TABLE mine AS SELECT 42 AS i")
    shell.kill()
    assert Path(f"{site.database}.wal").stat().st_size > 0


def test_a_left_over_log_is_taken_into_the_copy(site: Site, open_shell: Callable[..., Shell]) -> None:
    """What a killed shell had committed survives a load by copy; its log does not stay to spoil the file."""
    leave_wal(site)
    reader = open_shell(site.database, read_only=True)
    assert reader.run("SELECT i FROM mine") == [(42,)]
    site.grow(2)
    assert site.load().by_copy
    assert not Path(f"{site.database}.wal").exists()
    assert reader.run("SELECT i FROM mine") == [(42,)]
    with Shell(site.database, read_only=True) as second:
        assert second.run("SELECT i, (SELECT count(*) FROM runs) FROM mine") == [(42, 3)]


@pytest.mark.slow
def test_a_kill_between_renaming_and_removing_the_log_is_mended(
    site: Site, open_shell: Callable[..., Shell]
) -> None:
    """The next import removes a log that the new file has in it already, and only such a log."""
    leave_wal(site)
    open_shell(site.database, read_only=True)
    site.grow(2)
    code = """
        import os, sys
        from ingest import import_dumps
        real = os.unlink
        def unlink(path, **options):
            if str(path).endswith(".wal"):
                os.kill(os.getpid(), 9)
            real(path, **options)
        os.unlink = unlink
        import_dumps([sys.argv[1]], sys.argv[2], jobs=1)
        """
    done = subprocess.run(
        [sys.executable, "-c", dedent(code), str(site.dumps), str(site.database)], check=False
    )
    assert done.returncode == -9
    with pytest.raises(ShellError, match="WAL"):
        Shell(site.database, read_only=True)
    site.load()
    assert not Path(f"{site.database}.wal").exists()
    with Shell(site.database, read_only=True) as shell:
        assert shell.run("SELECT i, (SELECT count(*) FROM runs) FROM mine") == [(42, 3)]


# --- staging -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-20],
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
        lambda data: data[: len(data) // 2].ljust(len(data), b"\0"),
        lambda data: None,
    ],
    ids=["cut off", "a bit", "zeros", "gone"],
)
def test_damaged_staged_work_is_read_again(
    site: Site, open_shell: Callable[..., Shell], damage: Callable[[bytes], bytes | None]
) -> None:
    """A part that a crash of the machine damaged is dropped, and its dumps are read once more."""
    site.grow(2)
    writer = open_shell(site.database, read_only=False)
    with pytest.raises(DatabaseLocked):
        site.load()
    writer.close()
    (journal,) = read_journals(str(site.database))
    part = Path(journal.parts[0]) / "values.parquet"
    data = damage(part.read_bytes())
    part.unlink()
    if data is not None:
        part.write_bytes(data)
    summary = site.load()
    assert (summary.loaded, summary.resumed, site.runs()) == (1, 0, 3)


@pytest.mark.slow
def test_staged_work_of_another_schema_is_read_again(site: Site, open_shell: Callable[..., Shell]) -> None:
    """Parts made by an older xbuf are not loaded into a newer schema."""
    site.grow(2)
    writer = open_shell(site.database, read_only=False)
    with pytest.raises(DatabaseLocked):
        site.load()
    writer.close()
    (journal,) = read_journals(str(site.database))
    record = journal.directory / "import.json"
    fields = json.loads(record.read_text())
    record.write_text(json.dumps({**fields, "revision": "0000_before"}))
    summary = site.load()
    assert (summary.loaded, summary.resumed, site.runs()) == (1, 0, 3)


@pytest.mark.slow
def test_what_is_staged_is_private(site: Site, open_shell: Callable[..., Shell]) -> None:
    """Nobody else can look into the staging folder, and a new database follows the umask."""
    old = os.umask(0o027)
    try:
        other = site.database.with_name("other.duckdb")
        import_dumps([site.dumps], other)
        assert stat.S_IMODE(other.stat().st_mode) == 0o640
        assert stat.S_IMODE(Path(f"{other}.lock").stat().st_mode) == 0o640
    finally:
        os.umask(old)
    assert stat.S_IMODE(staging_folder(str(other)).stat().st_mode) == 0o700


# --- publishing ----------------------------------------------------------------------------------------


def test_a_snapshot_is_published_and_replaced_under_its_readers(site: Site, tmp_path: Path) -> None:
    """The snapshot is read-only, whole, and new for the next open while readers keep theirs."""
    team = tmp_path / "team.duckdb"
    site.load(publish=team)
    assert stat.S_IMODE(team.stat().st_mode) == 0o444
    with Shell(team, read_only=True) as reader:
        site.grow(2)
        site.load(publish=team)
        assert reader.run(COUNT) == [(2,)]
        with Shell(team, read_only=True) as second:
            assert second.run(COUNT) == [(3,)]
    assert differences(site.database, team, with_imports=True) == {}
    assert [path.name for path in tmp_path.iterdir() if "publish" in path.name] == []


@pytest.mark.slow
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o444), (0o027, 0o440), (0o077, 0o400)])
def test_a_snapshot_is_read_only_and_follows_the_umask(
    site: Site, tmp_path: Path, umask: int, mode: int
) -> None:
    """Nobody may write to it; whom its owner has let in since stays let in when it is replaced."""
    snapshot = tmp_path / "team.duckdb"
    before = os.umask(umask)
    try:
        for number, wanted in ((2, mode), (3, 0o404)):
            site.grow(number)
            site.load(publish=snapshot)
            assert stat.S_IMODE(snapshot.stat().st_mode) == wanted
            snapshot.chmod(0o604)
    finally:
        os.umask(before)


@pytest.mark.slow
def test_a_snapshot_that_is_up_to_date_is_left(site: Site, tmp_path: Path) -> None:
    """An import that found nothing does not copy the database for its own row in imports."""
    team = tmp_path / "team.duckdb"
    site.load(publish=team)
    before = team.stat().st_ino
    site.load(publish=team)
    assert team.stat().st_ino == before
    team.unlink()
    site.load(publish=team)
    assert team.exists()


@pytest.mark.slow
def test_what_a_killed_publication_left_is_removed(site: Site, tmp_path: Path) -> None:
    """Also when it was killed after the renaming, so that there is nothing left to publish."""
    team = tmp_path / "team.duckdb"
    site.load(publish=team)
    left = tmp_path / ".team.duckdb.publish-killed"
    left.mkdir(mode=0o700)
    site.load(publish=team)
    assert not left.exists()


@pytest.mark.slow
def test_a_snapshot_holds_what_a_left_over_log_holds(site: Site, tmp_path: Path) -> None:
    """Publishing a database with a write-ahead log publishes the log's content too, in one file."""
    leave_wal(site)
    team = tmp_path / "team.duckdb"
    publish_snapshot(str(site.database), str(team))
    with Shell(team, read_only=True) as reader:
        assert reader.run("SELECT i FROM mine") == [(42,)]
    assert not Path(f"{team}.wal").exists()


def test_publishing_is_refused_where_it_would_destroy(site: Site, tmp_path: Path) -> None:
    """The database itself, foreign files, and snapshots that somebody wrote to are left as they are."""
    with pytest.raises(UsageError, match="is the database itself"):
        site.load(publish=site.database)
    link = tmp_path / "link.duckdb"
    os.link(site.database, link)
    with pytest.raises(UsageError, match="is the database itself"):
        site.load(publish=link)
    link.unlink()
    with pytest.raises(UsageError, match="folder does not exist"):
        site.load(publish=tmp_path / "nowhere" / "team.duckdb")
    notes = tmp_path / "notes.txt"
    notes.write_text("precious " * 10_000)
    with pytest.raises(NotADatabase, match="left untouched"):
        site.load(publish=notes)
    assert notes.read_text() == "precious " * 10_000
    foreign = tmp_path / "foreign.duckdb"
    duckdb.connect(str(foreign)).execute("CREATE TABLE mine AS SELECT 1").close()
    with pytest.raises(NotADatabase):
        site.load(publish=foreign)
    team = tmp_path / "team.duckdb"
    site.load(publish=team)
    Path(f"{team}.wal").write_bytes(b"written")
    with pytest.raises(DatabaseError, match=r"team\.duckdb\.wal holds what they wrote"):
        site.load(publish=team)


def test_a_snapshot_open_for_writing_is_not_replaced(
    site: Site, open_shell: Callable[..., Shell], tmp_path: Path
) -> None:
    """Somebody with the right to write who has it open would lose what they write."""
    team = tmp_path / "team.duckdb"
    site.load(publish=team)
    before = team.stat().st_ino
    team.chmod(0o644)
    open_shell(team, read_only=False)
    site.grow(2)
    with pytest.raises(DatabaseLocked, match="team"):
        site.load(publish=team)
    assert team.stat().st_ino == before
    assert site.runs() == 2


@pytest.mark.parametrize(
    ("name", "words"), [(b"\xff.duckdb", "only paths that are UTF-8"), (b"a?b.duckdb", "a question mark")]
)
def test_a_path_that_duckdb_cannot_use_is_refused_before_anything_is_read(
    site: Site, tmp_path: Path, name: bytes, words: str
) -> None:
    """As a database, as a snapshot, and as the folder of either; no dump is blamed for it."""
    before = sorted(tmp_path.iterdir())
    bad = tmp_path / os.fsdecode(name)
    for database, snapshot in ((bad, None), (bad / "x.duckdb", None), (site.database, bad)):
        with pytest.raises(DatabaseError, match=words):
            import_dumps([site.dumps], database, publish=snapshot)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["a b'\"\n", "[jax] *{a}", "100%#y;--"])
def test_a_database_may_lie_at_any_other_path(site: Site, tmp_path: Path, folder: str) -> None:
    """Loaded in place and by copy, published, compacted; and where the folder is a symbolic link."""
    (tmp_path / folder).mkdir()
    (tmp_path / "link").symlink_to(folder)
    database, snapshot = tmp_path / folder / "x[1].duckdb", tmp_path / folder / "t[1].duckdb"
    import_dumps([site.dumps], database, publish=snapshot)
    site.grow(2)
    with Shell(database, read_only=True):
        assert import_dumps([site.dumps], tmp_path / "link" / database.name, publish=snapshot).by_copy
    compact_database(str(database))
    assert differences(database, snapshot) == {}
    assert {path.name for path in (tmp_path / folder).iterdir()} == {
        name for one in (database.name,) for name in (one, f"{one}.lock", f"{one}.staging", snapshot.name)
    }


# --- the matrix ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_lock_matrix_is_as_documented(tmp_path: Path) -> None:
    """Every holder met by every newcomer, in two processes, as docs/reliability.md tells."""
    document = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert as_markdown(matrix(tmp_path)) in document


# --- the command ---------------------------------------------------------------------------------------


def test_a_wait_begins_when_it_is_known_that_one_must_wait(
    site: Site, open_shell: Callable[..., Shell], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine, finding that out takes longer than the wait; it is reported all the same."""
    open_shell(site.database, read_only=False)
    clock = iter(range(0, 10_000, 10))  # ten seconds pass between two looks
    monkeypatch.setattr("ingest.database.writer.time.monotonic", lambda: float(next(clock)))
    waits: list[DatabaseLocked] = []
    with (
        pytest.raises(DatabaseLocked),
        open_writer(str(site.database), str(site.database.parent), wait_seconds=0.2, on_wait=waits.append),
    ):
        pass
    assert len(waits) == 1


def test_the_log_is_one_event_a_line(site: Site, tmp_path: Path) -> None:
    """With --log-format json stderr is JSON alone, also when the import fails."""
    from click.testing import CliRunner

    broken = site.dumps / "broken-buffer-assignment.txt"
    broken.write_text("BufferAssignment:\nnonsense\n")
    os.utime(broken, (PAST, PAST))
    site.grow(2)
    base = [str(site.dumps), "--db", str(site.database), "--log-format", "json", "--wait", "0.2"]

    def run(*arguments: str) -> tuple[object, list[dict[str, object]]]:
        result = CliRunner().invoke(ingest, [*base, *arguments], standalone_mode=False)
        return result.return_value, [json.loads(line) for line in result.stderr.splitlines()]

    code, events = run("--publish", str(tmp_path / "team.duckdb"))
    assert code == 1
    assert [event["event"] for event in events] == [
        "import-started",
        "planned",
        "set-rejected",
        "loaded",
        "published",
        "import-finished",
    ]
    assert events[2]["file"] == str(broken)
    assert (events[-1]["status"], events[-1]["loaded"], events[-1]["rejected"]) == ("rejects", 1, 1)
    assert run("--max-rejects", "1")[0] == 0
    with Shell(site.database, read_only=False) as writer:
        site.grow(3)
        code, events = run()
    assert code == 3
    assert [event["event"] for event in events][-2:] == ["waiting-for-lock", "import-failed"]
    assert events[-2]["pid"] == writer.pid
    assert (events[-1]["status"], events[-1]["kept"], events[-1]["exit_code"]) == ("deferred", 1, 3)


@pytest.mark.slow
def test_the_command_of_a_holder_cannot_reach_the_terminal(site: Site) -> None:
    """A process chooses its own command line; what it holds is told with control characters escaped."""
    code = "'''\x1b[31mred\nrun: rm'''\n"
    code += "import sys, duckdb; held = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(site.database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    site.grow(2)
    import_ = "from ingest.cli.entry import xbuf_ingest; xbuf_ingest()"
    master, terminal = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", import_, str(site.dumps), "--db", str(site.database), "--wait", "0", "-q"],
            stdout=terminal,
            stderr=terminal,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        said = os.read(master, 65536)
    finally:
        os.close(master)
        os.close(terminal)
        holder.communicate()
    assert done.returncode == 3
    assert rb"\x1b[31mred\nrun: rm" in said
    assert b"\x1b" not in said


def test_people_are_told_what_is_kept(site: Site, capfd: pytest.CaptureFixture[str]) -> None:
    """The words on stderr name the holder and say that the work is not lost."""
    from ingest.cli.terminal import run

    site.grow(2)
    with Shell(site.database, read_only=False) as writer:
        sys.argv = ["xbuf-ingest", str(site.dumps), "--db", str(site.database), "--wait", "0.2"]
        with pytest.raises(SystemExit) as ended:
            run(ingest)
    assert ended.value.code == 3
    error = capfd.readouterr().err
    assert f"process {writer.pid} " in error
    assert "1 dump is read and kept: the next import loads what was read" in error
    assert "Traceback" not in error
    summary = site.load()
    assert (summary.resumed, summary.loaded) == (1, 0)
    assert site.told(Loaded)[0][:2] == (0, 1)
