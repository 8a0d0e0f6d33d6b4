"""A scheduled day: 24 imports, one an hour, beside DuckDB shells that stay open or come and go.

    python -m tests.reliability.day                          # an hour lasts as long as its import
    python -m tests.reliability.day --before DIR             # begin with a database of these dumps
    python -m tests.reliability.day --hour-seconds 3600      # a real day

The shells are the real ones, `duckdb -readonly`. One is opened in the morning and stays; it reads the whole
database every hour and must see what it saw first. One is opened in every second hour, so that half of the
imports find a reader at the file as it is then and load by copy, and half find nobody and load in place. Two
are opened anew all the time, one at the database and one at the published snapshot. None of them may see a
part of an import; the snapshot's must never be refused, the database's only while a load is in place. One
has the snapshot attached, reads all of it after each import, which must not have changed it, and refreshes it
as docs/scheduled-imports.md says. Every import brings new dumps, but for one hour; every one must end with
exit code 0, and nothing may be left beside the database that was not there in the morning.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tests.reliability.kills import ROOT, count
from tests.support.content import differences, orphans
from tests.support.dump_sets import DATA, PAST

HOURS = 24
_DUCKDB = (
    shutil.which("duckdb", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or "duckdb"
)
_VISIT_PAUSE_SECONDS = 0.5
"""A shell takes 0.1 s of CPU time: with short pauses they would take more than the imports."""
IDLE_HOUR = 13
"""The hour that brings no new dumps."""
_ALL = 'SELECT (SELECT count(*) FROM runs), (SELECT sum(hash(v)::HUGEINT) FROM "values" AS v);'
_RUNS = "SELECT count(*) FROM runs;"


class RealShell:
    """A `duckdb` that is open and runs what it is told."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [_DUCKDB, "-init", os.devnull, "-csv", "-noheader", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, sql: str) -> str:
        """Run statements; return what the shell prints, errors too."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{sql}\n.print --done--\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line == "--done--\n":
                return "\n".join(lines)
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"the shell ended: {lines}")

    def close(self) -> None:
        """Leave it with `.quit`."""
        self._process.communicate(".quit\n")


@dataclass
class Visits:
    """What a shell met that was opened again and again.

    Attributes:
        counts: runs that it saw, in order.
        refused: (from, to) of each stretch in which it was refused, by the monotonic clock.
        errors: what it was told else.
    """

    counts: list[int] = field(default_factory=list)
    refused: list[tuple[float, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Import:
    """What the log of an import tells: the seconds of its load include the copy."""

    status: str
    loaded: int
    rejected: int
    by_copy: bool
    load_seconds: float
    publish_seconds: float


@dataclass(frozen=True)
class Hour:
    """One import of the day.

    Attributes:
        told: by its log.
        seconds: of the whole command.
        refused_seconds: how long shells that came to the database were refused.
        file_bytes: the database afterwards.
    """

    told: Import
    seconds: float
    refused_seconds: float
    file_bytes: int


@dataclass(frozen=True)
class Day:
    """The imports of a day, and how often the database and the snapshot were opened meanwhile."""

    hours: tuple[Hour, ...]
    at_database: int
    at_snapshot: int


def new_dumps(target: Path, hour: int, dumps: int) -> None:
    """Let the dumps of an hour arrive in a folder of their own, long finished."""
    sets = sorted(DATA.glob("dumps/*/*-buffer-assignment.txt"))
    for number in range(dumps):
        source = sets[(hour * dumps + number) % len(sets)]
        folder = target / f"hour-{hour:02}" / f"{number:03}-{source.parent.name}"
        folder.mkdir(parents=True)
        for file in source.parent.glob(f"{source.name.removesuffix('buffer-assignment.txt')}*"):
            shutil.copy(file, folder)
            os.utime(folder / file.name, (PAST, PAST))


def live_through(
    folder: Path,
    *,
    dumps: int,
    hours: int = HOURS,
    idle_hour: int = IDLE_HOUR,
    before: Sequence[Path] = (),
    hour_seconds: float = 0.0,
    tell: bool = False,
) -> Day:
    """Run a day below `folder` and check it; raise AssertionError where something went wrong.

    Args:
        dumps: new ones an hour.
        hours: imports of the day; in every second hour they find another reader at the database.
        idle_hour: brings no new dumps.
        before: directories whose dumps the database has in the morning.
        hour_seconds: time between two imports.
        tell: print a line an hour.
    """
    inbox, data = folder / "dumps", folder / "data"
    inbox.mkdir()
    data.mkdir()
    database, snapshot = data / "xbuf.duckdb", data / "team.duckdb"
    new_dumps(inbox, hours, dumps)
    _import([inbox, *before], database, snapshot)
    morning = _files(data)
    stays, team = RealShell("-readonly", str(database)), RealShell()
    second: RealShell | None = None
    seen_first = stays.run(_ALL)
    runs = int(seen_first.partition(",")[0])
    whole = {runs}
    team.run(_refresh(snapshot))
    lived: list[Hour] = []
    try:
        with visiting(database) as visits, visiting(snapshot) as team_visits:
            for hour in range(hours):
                if hour % 2 == 0:
                    second = RealShell("-readonly", str(database))
                    assert second.run(_RUNS) == str(runs)
                if hour != idle_hour:
                    new_dumps(inbox, hour, dumps)
                news = 0 if hour == idle_hour else dumps
                whole.add(runs + news)
                published, file = _visit(snapshot, _ALL), snapshot.stat().st_ino
                begun = time.monotonic()
                told = _import([inbox], database, snapshot)
                ended = time.monotonic()
                assert (told.status, told.loaded, told.rejected) == ("ok", news, 0), told
                assert stays.run(_ALL) == seen_first, "the open shell's view of the database changed"
                if second is not None:
                    assert second.run(_RUNS) == str(runs), "the second shell's view changed"
                    assert told.by_copy, told
                    second.close()
                    second = None
                runs += news
                assert _visit(database) == str(runs), "a shell that is opened now does not see the new runs"
                # A file that is written over may have the old rows where they were.
                assert (snapshot.stat().st_ino != file) == bool(news), "the snapshot is not another file"
                assert team.run(_ALL) == published, "the attached snapshot changed"
                attached = team.run(f"{_refresh(snapshot)}\n{_RUNS}")
                assert attached == str(runs), f"the team sees {attached} of {runs} runs"
                left = _files(data)
                # An import without news may leave its line in `imports` to the next load.
                assert left == morning or hour == idle_hour, left ^ morning
                refused = sum(end - start for start, end in visits.refused if start >= begun)
                assert not (refused and told.by_copy), visits.refused
                lived.append(Hour(told, ended - begun, refused, database.stat().st_size))
                if tell:
                    print(_line(hour, lived[-1]), flush=True)
                time.sleep(max(0.0, hour_seconds - (time.monotonic() - begun)))
        for seen in (visits, team_visits):
            assert not seen.errors, seen.errors
            assert set(seen.counts) <= whole, "a shell saw a part of an import"
            assert seen.counts == sorted(seen.counts), "a shell saw fewer runs than one before it"
        assert not team_visits.refused, "a reader of the snapshot was refused"
    finally:
        for shell in (stays, team, second):
            if shell is not None:
                shell.close()
    assert _files(data) == morning
    assert count(database, "SELECT count(*) FROM imports WHERE status = 'ok'") >= hours
    assert count(database, "SELECT count(*) FROM imports WHERE status NOT IN ('ok', 'rejects')") == 0
    assert orphans(database) == {}
    assert differences(database, snapshot) == {}
    # All that came is there as if it had been loaded at once.
    at_once = folder / "at-once.duckdb"
    _import([inbox, *before], at_once, folder / "at-once-team.duckdb")
    assert differences(at_once, database) == {}
    return Day(tuple(lived), len(visits.counts), len(team_visits.counts))


@contextmanager
def visiting(database: Path) -> Iterator[Visits]:
    """Open the database in a new shell all the time, in the background."""
    visits, stop = Visits(), threading.Event()

    def visit() -> None:
        refused_since: float | None = None
        while not stop.is_set():
            begun = time.monotonic()
            answer = _visit(database)
            if "Could not set lock" in answer:
                refused_since = refused_since or begun
            elif refused_since is not None:
                visits.refused.append((refused_since, time.monotonic()))
                refused_since = None
            if answer.isdigit():
                visits.counts.append(int(answer))
            elif refused_since is None:
                visits.errors.append(answer)
            stop.wait(_VISIT_PAUSE_SECONDS)

    thread = threading.Thread(target=visit)
    thread.start()
    try:
        yield visits
    finally:
        stop.set()
        thread.join()


def _visit(database: Path, sql: str = _RUNS) -> str:
    done = subprocess.run(
        [_DUCKDB, "-init", os.devnull, "-csv", "-noheader", "-readonly", str(database), sql],
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).strip()


def _import(paths: Sequence[Path], database: Path, snapshot: Path) -> Import:
    """Import as the script for the timer does; return what its log tells."""
    code = "from ingest.cli.entry import xbuf_ingest; xbuf_ingest()"
    options = ["--db", str(database), "--publish", str(snapshot), "--wait", "600"]
    options += ["--max-rejects", "20", "--log-format", "json", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, paths), *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    events = {event["event"]: event for event in map(json.loads, done.stderr.splitlines())}
    end = events["import-finished"]
    load, publication = events.get("loaded", {}), events.get("published", {})
    return Import(
        end["status"],
        end["loaded"],
        end["rejected"],
        load.get("by_copy", False),
        load.get("seconds", 0.0),
        publication.get("seconds", 0.0),
    )


def _refresh(snapshot: Path) -> str:
    """Return the statements that docs/scheduled-imports.md gives for a shell that stays open."""
    document = (ROOT / "docs" / "scheduled-imports.md").read_text(encoding="utf-8")
    block = document.partition("<!-- file: refresh.sql -->")[2].partition("```sql\n")[2].partition("```")[0]
    assert "/srv/xbuf/team.duckdb" in block
    return block.replace("/srv/xbuf/team.duckdb", str(snapshot))


def _files(folder: Path) -> frozenset[str]:
    return frozenset(str(path.relative_to(folder)) for path in folder.rglob("*"))


def _line(number: int, hour: Hour) -> str:
    told = hour.told
    way = "by copy" if told.by_copy else "in place" if told.loaded else "no news"
    return (
        f"{number:02}:00 {told.loaded:>4} new  {hour.seconds:6.2f} s,"
        f" load {told.load_seconds:5.2f} s {way:<8} publish {told.publish_seconds:5.2f} s"
        f"  refused {hour.refused_seconds:5.2f} s {hour.file_bytes / 1e6:8.1f} MB"
    )


def as_markdown(day: Day) -> str:
    """Sum the day up: a line for each way of loading."""
    lines = [
        "| imports | way | takes, median (longest) | load | publish | shells refused, longest | database |",
        "|---" * 7 + "|",
    ]
    for way, wanted in (
        ("in place", (False, True)),
        ("by copy", (True, True)),
        ("nothing new", (False, False)),
    ):
        hours = [hour for hour in day.hours if (hour.told.by_copy, hour.told.loaded > 0) == wanted]
        if not hours:
            continue
        seconds, loads, publishes = (
            [hour.seconds for hour in hours],
            [hour.told.load_seconds for hour in hours],
            [hour.told.publish_seconds for hour in hours],
        )
        refused = max(hour.refused_seconds for hour in hours)
        sizes = [hour.file_bytes / 1e6 for hour in hours]
        lines.append(
            f"| {len(hours)} | {way} | {_spread(seconds)} | {_spread(loads)} | {_spread(publishes)}"
            f" | {refused:.2f} s | {min(sizes):.0f} to {max(sizes):.0f} MB |"
        )
    return "\n".join(lines)


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s ({max(seconds):.2f})"


def main() -> None:
    """Live through a day and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dumps", type=int, default=50, help="new dumps an hour")
    parser.add_argument("--before", type=Path, nargs="*", default=[], help="dumps of the days before")
    parser.add_argument("--hour-seconds", type=float, default=0.0)
    arguments = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, DuckDB {duckdb.__version__}, {os.cpu_count()} cores\n")
    with tempfile.TemporaryDirectory() as folder:
        day = live_through(
            Path(folder),
            dumps=arguments.dumps,
            before=arguments.before,
            hour_seconds=arguments.hour_seconds,
            tell=True,
        )
    print(
        f"\n{len(day.hours)} imports, all exit 0; shells opened meanwhile: {day.at_database} at the database,"
        f" {day.at_snapshot} at the snapshot\n\n{as_markdown(day)}"
    )


if __name__ == "__main__":
    main()
