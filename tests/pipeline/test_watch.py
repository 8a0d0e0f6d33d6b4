"""What a watch imports, when, and how it ends."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Unpack

import duckdb
import pytest

import ingest.staging.outcome
from ingest.database.import_lock import import_lock
from ingest.dump.sets import Discovery, DumpSet, Member
from ingest.errors import DatabaseLocked, SourceError, UsageError
from ingest.events import Event, SourceAway
from ingest.pipeline.importer import import_dumps
from ingest.pipeline.plan import Search, Select
from ingest.pipeline.summary import ImportSummary
from ingest.pipeline.watch import (
    LONGEST_SECONDS,
    PATIENCE_SECONDS,
    QUIET_SECONDS,
    SHORTEST_REMOTE_SECONDS,
    ImportOptions,
    watch,
)
from ingest.source.address import parse_url
from ingest.source.archive import Listing, list_archive
from ingest.source.objects import AtUrl
from tests.source.test_archives import as_tar, as_zip
from tests.support.dump_sets import DATA, SEEDS
from tests.support.waiting import HANGING_SECONDS

SPLIT = DATA / "dumps" / "jaxlib-0.10.2-cpu"


class Day:
    """A clock that only moves while the watch waits, and what happens at which second of it."""

    def __init__(self, folder: Path, ends: float, happenings: dict[float, Callable[[], object]]) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.loaded_at: dict[float, ImportSummary] = {}
        self._ends = ends
        self._happenings = dict(sorted(happenings.items()))
        self.dumps = folder / "dumps"
        self.database = folder / "xbuf.duckdb"

    def pause(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.now += seconds
        for moment in [moment for moment in self._happenings if moment <= self.now]:
            self._happenings.pop(moment)()
        return self.now >= self._ends

    def watch(self, **options: Unpack[ImportOptions]) -> list[ImportSummary]:
        options["jobs"] = 1
        for summary in watch(self.dumps, self.database, pause=self.pause, clock=lambda: self.now, **options):
            self.loaded_at[self.now] = summary
        return list(self.loaded_at.values())


@pytest.fixture
def dumps(database: Path) -> Path:
    """A directory without a dump, next to an empty database."""
    folder = database.parent / "dumps"
    folder.mkdir()
    return folder


@pytest.fixture
def _only_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports report what they would load: a tenth of the time where only the moment matters."""
    monkeypatch.setattr("ingest.pipeline.watch.import_dumps", partial(import_dumps, dry_run=True))


@pytest.fixture(autouse=True)
def _no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import need not wait before it looks at an unfinished dump again: nothing changes meanwhile."""
    monkeypatch.setattr("ingest.pipeline.reading.RETRY_SECONDS", 0)


def counts(summary: ImportSummary) -> tuple[int, int, int]:
    return summary.loaded, summary.rejected, summary.unfinished


def test_what_appears_is_imported_once_it_is_quiet(dumps: Path) -> None:
    """One import for what was there, one for what came; none in between, and none at the end without news."""
    shutil.copy(SEEDS[0], dumps)
    day = Day(dumps.parent, 100, {50: lambda: shutil.copy(SEEDS[1], dumps)})
    first, second = day.watch(labels={"job": "7"})
    assert (counts(first), counts(second)) == ((1, 0, 0), (1, 0, 0))
    early, late = day.loaded_at
    assert QUIET_SECONDS <= early < 2 * QUIET_SECONDS
    assert 50 + QUIET_SECONDS <= late < 50 + LONGEST_SECONDS + 2 * QUIET_SECONDS
    with duckdb.connect(str(day.database), read_only=True) as connection:
        assert connection.execute("SELECT found, loaded FROM imports").fetchall() == [(1, 1), (1, 1)]
        assert connection.execute("SELECT count(*) FROM run_labels").fetchall() == [(2,)]


def test_the_looks_become_rare_while_nothing_happens(dumps: Path) -> None:
    """Half an hour without a dump: at most as many looks as the longest interval allows, and a few."""
    day = Day(dumps.parent, 1800, {})
    before = day.database.stat().st_mtime_ns
    assert day.watch() == []
    assert day.database.stat().st_mtime_ns == before
    assert max(day.pauses) == LONGEST_SECONDS
    assert len(day.pauses) < 1800 / LONGEST_SECONDS + 15


class Store:
    """What a watch finds at a URL, by the second; each look comes with a source of its own."""

    def __init__(self, day: Day, looks: dict[float, list[str] | Exception]) -> None:
        self._day, self._looks = day, looks
        self.imported: list[list[str]] = []

    def search(self, what: Search) -> Discovery:
        found = self._looks[max(second for second in self._looks if second <= self._day.now)]
        if isinstance(found, Exception):
            raise found
        source = AtUrl(parse_url("s3://bucket"), what.terms)
        sets = [
            DumpSet("s3://bucket/d", etag[0], (Member("primary", "x", 1, 0, etag),), (), None, source)
            for etag in found
        ]
        return Discovery(tuple(sets), ())

    def import_dumps(self, names: list[str], _: object, *, select: Select, **__: object) -> ImportSummary:
        found = select(self.search(Search([], read_hlo=True, follow_symlinks=False)))
        self.imported.append([one.members[0].etag or "" for one in found.sets])
        return ImportSummary("x", 1, "ok", found.found, found.found, 0, 0, 0, 0, 0.0, (), ())

    def watch(self, **options: Unpack[ImportOptions]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ingest.pipeline.watch.search", self.search)
            patch.setattr("ingest.pipeline.watch.import_dumps", self.import_dumps)
            day = self._day
            list(watch("s3://bucket/d", day.database, pause=day.pause, clock=lambda: day.now, **options))


def test_a_url_is_watched_by_etags_and_while_its_store_is_away(dumps: Path) -> None:
    """Nothing below it at first, then two dumps, one of them changed after the store was away."""
    day = Day(dumps.parent, 150, {})
    events: list[Event] = []
    away, nothing = SourceError("s3://bucket: is away"), UsageError("there is nothing below it")
    store = Store(day, {0: nothing, 40: ["a1", "b1"], 80: away, 120: ["a1", "b2"]})
    store.watch(on_event=events.append)
    assert store.imported == [["a1", "b1"], ["b2"]]
    assert events == [SourceAway("s3://bucket: is away")]
    assert min(day.pauses) >= SHORTEST_REMOTE_SECONDS


@pytest.mark.parametrize("looks", [{}, {0: ["a1"]}])
def test_a_store_that_is_away_at_the_start_or_the_end_is_an_error(
    dumps: Path, looks: dict[float, list[str] | Exception]
) -> None:
    """A wrong bucket is not waited for, and nothing is said to be done that is not."""
    away = SourceError("s3://bucket: is away")
    with pytest.raises(SourceError, match="is away"):
        Store(Day(dumps.parent, 150, {}), {**looks, 40 if looks else 0: away}).watch()


def test_an_import_takes_what_the_watch_found_in_an_archive(
    dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tar archive at a URL is fetched whole to be listed, and once more to be read."""
    archive = dumps / "a.tar"
    archive.write_bytes(as_tar([(SEEDS[0].name, SEEDS[0].read_bytes())]))
    listed: list[str] = []

    def counted(path: str, wants_start: Callable[[str], bool]) -> Listing:
        listed.append(path)
        return list_archive(path, wants_start)

    monkeypatch.setattr("ingest.dump.elsewhere.list_archive", counted)
    day = Day(dumps.parent, 20, {})
    day.dumps = archive
    assert [counts(summary) for summary in day.watch()] == [(1, 0, 0)]
    assert listed == [str(archive)]


def test_an_archive_is_imported_once_it_is_whole(dumps: Path) -> None:
    """Half a copy of it is no reject yet, and it is listed once a version."""
    content = as_zip([(f"{number}/{SEEDS[0].name}", SEEDS[0].read_bytes()) for number in range(2)])
    archive = dumps.parent / "run.zip"
    archive.write_bytes(content[:200])
    day = Day(dumps.parent, 100, {20: lambda: archive.write_bytes(content)})
    day.dumps = archive
    assert [counts(summary) for summary in day.watch()] == [(2, 0, 0)]


@pytest.mark.usefixtures("_only_planned")
def test_a_dump_is_not_read_while_it_grows(dumps: Path) -> None:
    """Written in pieces a second apart, it is imported once, when it is whole."""
    whole = SEEDS[2].read_bytes()
    target = dumps / SEEDS[2].name
    day = Day(
        dumps.parent,
        60,
        {1.0 + n: lambda n=n: target.write_bytes(whole[: len(whole) * (n + 1) // 10]) for n in range(10)},  # type: ignore[misc]
    )
    [summary] = day.watch()
    assert counts(summary) == (1, 0, 0)
    assert min(day.loaded_at) >= 10 + QUIET_SECONDS


def test_a_dump_whose_writer_pauses_is_not_rejected(dumps: Path) -> None:
    """Cut off for longer than a dump is usually quiet: left as unfinished, then loaded when it is whole."""
    whole = SEEDS[3].read_bytes()
    target = dumps / SEEDS[3].name
    target.write_bytes(whole[: len(whole) // 2])
    day = Day(dumps.parent, 60, {30: lambda: target.write_bytes(whole)})
    assert list(map(counts, day.watch())) == [(0, 0, 1), (1, 0, 0)]


@pytest.mark.slow
def test_a_damaged_dump_is_rejected_once(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody goes on with it: it is rejected after a while, and not tried again until it changes."""
    damaged = SEEDS[0].read_text().replace("Total bytes used: ", "Total bytes used: 9")
    target = dumps / SEEDS[0].name
    target.write_text(damaged)
    day = Day(dumps.parent, 400, {200: lambda: shutil.copy(SEEDS[0], target)})
    monkeypatch.setattr(ingest.staging.outcome, "RECENT_SECONDS", 3600)
    watched = watch(dumps, day.database, pause=day.pause, clock=lambda: day.now, jobs=1)
    assert counts(next(watched)) == (0, 0, 1)
    assert day.now < PATIENCE_SECONDS
    monkeypatch.setattr(ingest.staging.outcome, "RECENT_SECONDS", 0)
    assert counts(next(watched)) == (0, 1, 0)
    assert day.now >= PATIENCE_SECONDS
    assert list(map(counts, watched)) == [(1, 0, 0)]
    assert day.now > 200


@pytest.mark.usefixtures("_only_planned")
def test_the_files_of_a_set_arrive_one_by_one(dumps: Path) -> None:
    """Values without their primary file are no reject as long as it may still come."""
    files = sorted(SPLIT.iterdir(), reverse=True)[1:4]
    assert [name.stem.rpartition("-")[2] for name in files] == ["range", "assignment", "values"]
    day = Day(
        dumps.parent,
        60,
        {1.0 + n: lambda file=file: shutil.copy(file, dumps) for n, file in enumerate(files)},  # type: ignore[misc]
    )
    [summary] = day.watch()
    assert (summary.loaded, summary.rejected) == (summary.found, 0)


@pytest.mark.usefixtures("_only_planned")
def test_the_end_takes_along_what_is_new(dumps: Path) -> None:
    """What appeared a moment before the end is imported, too."""
    day = Day(dumps.parent, 20, {19: lambda: shutil.copy(SEEDS[0], dumps)})
    assert list(map(counts, day.watch())) == [(1, 0, 0)]


@pytest.mark.usefixtures("_only_planned")
def test_a_directory_that_is_cleared_is_waited_for(dumps: Path) -> None:
    """A job that removes its directory and makes it again does not end the watch."""

    def come_back() -> None:
        dumps.mkdir()
        shutil.copy(SEEDS[1], dumps)

    shutil.copy(SEEDS[0], dumps)
    day = Day(dumps.parent, 100, {20: lambda: shutil.rmtree(dumps), 60: come_back})
    assert list(map(counts, day.watch())) == [(1, 0, 0), (1, 0, 0)]


@pytest.mark.parametrize("released", [True, False])
def test_a_database_that_is_held_is_waited_for_to_the_end(dumps: Path, released: bool) -> None:
    """Loaded when the holder has gone; refused at the end when it has not."""
    shutil.copy(SEEDS[0], dumps)
    with ExitStack() as holder:
        holder.enter_context(import_lock(str(dumps.parent / "xbuf.duckdb")))
        day = Day(dumps.parent, 100, {40: holder.close} if released else {})
        if released:
            assert list(map(counts, day.watch(wait_seconds=0))) == [(1, 0, 0)]
        else:
            with pytest.raises(DatabaseLocked):
                day.watch(wait_seconds=0)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_after_a_last_look(dumps: Path, number: signal.Signals) -> None:
    """All is imported, the exit code is that of an import, and nothing is left of the lock."""
    shutil.copy(SEEDS[0], dumps)
    code = "from ingest.cli.entry import xbuf_ingest as main; main()"
    database = dumps.parent / "xbuf.duckdb"
    arguments = [str(dumps), "--db", str(database), "--watch", "--jobs", "1"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("1 dumps found: 1 loaded")
        shutil.copy(SEEDS[1], dumps)
        process.send_signal(number)
        out, err = process.communicate(timeout=HANGING_SECONDS)
    assert process.returncode == 0, err
    assert "1 loaded" in out
    assert err.splitlines()[-1] == "stopping: one last look (once more to end at once)"
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(2,)]


@pytest.mark.slow
def test_a_second_ctrl_c_ends_an_import_as_ever(dumps: Path) -> None:
    """During the last look it is an interruption like any other."""
    code = (
        "import os, signal, ingest.pipeline.importer as importer\n"
        "real, calls = importer.read_tasks, []\n"
        "def struck(*arguments, **options):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 2: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(*arguments, **options)\n"
        "importer.read_tasks = struck\n"
        "from ingest.cli.entry import xbuf_ingest as main; main()"
    )
    shutil.copy(SEEDS[0], dumps)
    arguments = [str(dumps), "--db", str(dumps.parent / "xbuf.duckdb"), "--watch", "--jobs", "1"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        shutil.copy(SEEDS[1], dumps)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANGING_SECONDS)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "interrupted; 1 dump was loaded"
