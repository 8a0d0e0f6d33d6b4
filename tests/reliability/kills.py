"""Kill imports with SIGKILL, at random moments and at every step, and look at what is left.

    python -m tests.reliability.kills --kills 200 --seed 1      # about 15 minutes
    python -m tests.reliability.kills --every-step

After each kill the database opens in plain DuckDB without a repair, has every run that it had before under
the same number, every run in it is whole and equal to the same run of an undisturbed import, no row belongs
to a run that is not there, and a published snapshot is one of the whole states. The killed import is in the
history, as interrupted unless all of it is there, with the number of runs that it loaded. Then the import is
run again, often to be killed once more. The one that is left to end makes the database equal to the
undisturbed one, table by table, and leaves nothing beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import duckdb

from ingest.pipeline.history import read_history
from tests.support.content import Content, content, differences
from tests.support.dump_sets import DATA, PAST
from tests.support.shells import Shell

ROOT = Path(__file__).resolve().parents[2]
VICTIM = Path(__file__).with_name("victim.py")
LATE_SECONDS = 0.1
"""Mean time from a step to the kill: much of an import is spent within one call of DuckDB."""


@dataclass(frozen=True)
class Way:
    """How an import is run: beside a reader (then by copy) or alone, with how many workers, publishing."""

    reader: bool
    jobs: int
    publish: bool

    def options(self, snapshot: Path) -> list[str]:
        """Return the options of an import that is run so."""
        return ["--jobs", str(self.jobs), *(["--publish", str(snapshot)] if self.publish else [])]

    def __str__(self) -> str:
        return (
            f"{'by copy' if self.reader else 'in place'}, {self.jobs} jobs"
            f"{', publishing' if self.publish else ''}"
        )


WAYS = tuple(
    Way(reader, jobs, publish) for reader in (False, True) for jobs in (1, 2) for publish in (False, True)
)

STAGES = ("starting", "reading", "loaded in part", "loaded", "published")
"""How far an import can have come when it is killed: what is left behind tells it."""


@dataclass
class Tally:
    """What a series of kills met."""

    kills: int = 0
    survived: int = 0
    met: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Kills by way and by how far the import had come."""


@dataclass(frozen=True)
class Sight:
    """What is to be seen of a database: (import, run) of each run by its identity, and the history."""

    runs: dict[tuple[str, str, str], tuple[int, int]]
    published: frozenset[tuple[str, str, str]]
    history: dict[datetime, str]


class Site:
    """Dumps, a database with the first few of them, and the database that an undisturbed import makes."""

    def __init__(self, folder: Path, dumps: int = 60) -> None:
        self.folder = folder
        self.first, self.dumps = folder / "first", folder / "dumps"
        sources = sorted(path for path in (DATA / "dumps").iterdir() if path.is_dir())
        taken = 0
        for number, source in enumerate(sources):
            if taken >= dumps:
                break
            target = shutil.copytree(source, self.dumps / source.name)
            taken += len(list(target.glob("*-buffer-assignment.txt")))
            if number < 2:
                shutil.copytree(source, self.first / "dumps" / source.name)
        for path in self.dumps.rglob("*"):
            os.utime(path, (PAST, PAST))
        self.start = folder / "start.duckdb"
        self.whole = folder / "whole.duckdb"
        self._import(self.whole)
        self._steps: dict[Way, tuple[int, list[str]]] = {}
        # The first runs come from the same place, so that the next import knows them.
        hidden = folder / "hidden"
        self.dumps.rename(hidden)
        (self.first / "dumps").rename(self.dumps)
        for path in self.dumps.rglob("*"):
            os.utime(path, (PAST, PAST))
        self._import(self.start)
        shutil.rmtree(self.dumps)
        hidden.rename(self.dumps)

    @cached_property
    def start_content(self) -> Content:
        """What the first database holds."""
        return content(self.start)

    @cached_property
    def whole_content(self) -> Content:
        """What an undisturbed import of all dumps makes."""
        return content(self.whole)

    def steps(self, way: Way) -> int:
        """Return how many steps an undisturbed import takes."""
        return self._undisturbed(way)[0]

    def kinds(self, way: Way) -> list[str]:
        """Return the kinds of its steps that change something, in the order of their first ones."""
        return self._undisturbed(way)[1]

    def _undisturbed(self, way: Way) -> tuple[int, list[str]]:
        if way not in self._steps:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            database, snapshot = self.copies(folder, way)
            reader = Shell(database, read_only=True) if way.reader else None
            done = run_victim(self.dumps, database, *way.options(snapshot))
            if reader is not None:
                reader.kill()
            assert done.returncode == 0, done.stderr
            shutil.rmtree(folder)
            count, kinds = done.stdout.splitlines()
            self._steps[way] = (int(count), json.loads(kinds))
        return self._steps[way]

    def copies(self, folder: Path, way: Way) -> tuple[Path, Path]:
        """Put a copy of the first database into a folder, and its snapshot, if it is published."""
        database, snapshot = folder / "xbuf.duckdb", folder / "team.duckdb"
        shutil.copy(self.start, database)
        if way.publish:
            shutil.copy(self.start, snapshot)
        return database, snapshot

    def _import(self, database: Path) -> None:
        done = run_victim(self.dumps, database)
        assert done.returncode == 0, done.stderr


def command(dumps: Path, database: Path, *options: str) -> list[str]:
    """Return the command line of a victim."""
    return [sys.executable, str(VICTIM), str(dumps), str(database), *options]


class Victim:
    """A victim that runs: forked, with a session of its own. One at a time."""

    def __init__(self, dumps: Path, database: Path, *options: str) -> None:
        mine, its = os.pipe()
        self.output = os.fdopen(mine, encoding="utf-8")
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (closed by `read`)
        self._server = _server()
        request = json.dumps([str(dumps), str(database), *options]).encode()
        socket.send_fds(self._server, [request], [its, self._errors.fileno()])
        os.close(its)
        self.pid = self._answer()

    def wait(self, seconds: float | None = None) -> int:
        """Return its exit code, negative for a signal, as `subprocess` does.

        Raises:
            TimeoutError: it has not ended in time.
        """
        self._server.settimeout(seconds)
        try:
            return self._answer()
        finally:
            self._server.settimeout(None)

    def read(self) -> tuple[str, str]:
        """Return what it has written, when it and its workers have ended."""
        with self.output, self._errors:
            written = self.output.read()
            self._errors.seek(0)
            return written, self._errors.read()

    def _answer(self) -> int:
        answer = self._server.recv(4)
        assert len(answer) == 4, "the server of victims has ended"
        return int.from_bytes(answer, "big", signed=True)


@cache
def _server() -> socket.socket:
    """Start what forks the victims of this process; it ends with that."""
    mine, its = socket.socketpair()
    with its:
        program = [sys.executable, str(VICTIM), "--serve"]
        # No Popen, which complains at the end of the tests that the server is still there.
        os.posix_spawn(program[0], program, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, its.fileno(), 0)])
    return mine


def run_victim(dumps: Path, database: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a victim to its end, or to its death."""
    victim = Victim(dumps, database, *options)
    code = victim.wait()
    return subprocess.CompletedProcess(options, code, *victim.read())


Kill = Callable[[Path, Path, Sequence[str]], bool]
"""Runs an import of dumps into a database, with options, that may be killed; returns whether it was."""


def attack(site: Site, way: Way, tally: Tally, kills: Iterable[Kill]) -> None:
    """Kill imports into one database one after the other, check each time, then let one end and compare.

    The first that is not killed is the last of them.
    """
    folder = Path(tempfile.mkdtemp(dir=site.folder))
    database, snapshot = site.copies(folder, way)
    options = way.options(snapshot)
    interrupted = 0
    try:
        for kill in kills:
            before = look(database, snapshot)
            reader = Shell(database, read_only=True) if way.reader else None
            try:
                killed = kill(site.dumps, database, options)
                if reader is not None:
                    # Whatever happened, the reader's snapshot is whole.
                    reader.run("SELECT count(*), sum(size_bytes) FROM values")
            finally:
                if reader is not None:
                    reader.kill()
            tally.kills += killed
            tally.survived += not killed
            _check(site, database, snapshot)
            interrupted += killed
            if not killed:
                break
            tally.met[str(way), _check_what_is_left(site, database, snapshot, before)] += 1
        done = run_victim(site.dumps, database, *options)
        assert done.returncode == 0, done.stderr
        compare_whole(site, database)
        if way.publish:
            assert differences(site.whole_content, snapshot) == {}
        statuses = Counter(dict(_rows(database, "SELECT status, count(*) FROM imports GROUP BY 1")))
        assert statuses["ok"] >= 2, statuses
        assert set(statuses) <= {"ok", "interrupted"}, statuses
        assert statuses["interrupted"] <= interrupted, statuses
        left = {path.name for path in folder.iterdir()}
        assert left <= {"xbuf.duckdb", "xbuf.duckdb.lock", "xbuf.duckdb.staging", "team.duckdb"}, left
        assert [path.name for path in (folder / "xbuf.duckdb.staging").iterdir()] == ["manifest.duckdb"]
    except BaseException:
        kept = Path(tempfile.mkdtemp(prefix="xbuf-killed-")) / "site"
        shutil.copytree(folder, kept)
        print(f"{way}: kept for a look: {kept}", file=sys.stderr)
        raise
    shutil.rmtree(folder)


def at_random(site: Site, way: Way, chooser: random.Random, again: float = 0.4) -> Iterator[Kill]:
    """Kill from outside at a random moment, and so on with a chance of `again`.

    The moment is a random time after a random one of the steps, so that a busy machine, on which everything
    takes longer, is no reason to come too late.
    """

    def kill(dumps: Path, database: Path, options: Sequence[str]) -> bool:
        step = chooser.randint(1, site.steps(way))
        victim = Victim(dumps, database, *options, "--tell-at", str(step))
        victim.output.readline()  # its step, or the number of them when it has come to its end
        try:
            code = victim.wait(chooser.choice((0.001, chooser.expovariate(1 / LATE_SECONDS))))
        except TimeoutError:
            if chooser.random() < 0.5:
                os.kill(victim.pid, signal.SIGKILL)  # its workers must end by themselves
            else:
                os.killpg(victim.pid, signal.SIGKILL)
            code = victim.wait()
        _, errors = victim.read()
        assert code in (0, -signal.SIGKILL), errors
        return code != 0

    yield kill
    while chooser.random() <= again:
        yield kill


def at(option: str, value: object) -> Kill:
    """Kill at a step: `--kill-at` its number, or `--kill-kind`, at the first of its kind."""

    def kill(dumps: Path, database: Path, options: Sequence[str]) -> bool:
        done = run_victim(dumps, database, *options, option, str(value))
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode != 0

    return kill


def attack_each_kind(site: Site, way: Way, tally: Tally, kinds: Sequence[str], in_a_row: int = 4) -> None:
    """Kill an import at the first step of each kind, of several in a row each at one of a later stage.

    An import that takes up what killed ones have left does not come to some of the steps; those have their
    turn with another database.
    """
    waiting = list(kinds)
    while waiting:
        rows = -(-len(waiting) // in_a_row)
        killed: list[str] = []
        for first in range(rows):
            attack(site, way, tally, (_at_kind(kind, killed) for kind in waiting[first::rows]))
            assert waiting[first] in killed, f"an import does not come to: {waiting[first]}"
        waiting = [kind for kind in waiting if kind not in killed]


def _at_kind(kind: str, killed: list[str]) -> Kill:
    """Kill at the first step of a kind, and then note the kind."""

    def kill(dumps: Path, database: Path, options: Sequence[str]) -> bool:
        was_killed = at("--kill-kind", kind)(dumps, database, options)
        killed.extend([kind] * was_killed)
        return was_killed

    return kill


def compare_whole(site: Site, database: Path) -> None:
    """Compare with an undisturbed import, table by table."""
    assert differences(site.whole_content, database) == {}
    _require_one_row_each(database)
    loaded = count(database, "SELECT sum(loaded) FROM imports")
    assert loaded == count(site.whole, "SELECT count(*) FROM runs"), loaded


def _check(site: Site, database: Path, snapshot: Path) -> None:
    """Check that the database is whole as it is, without any repair."""
    for path in (database, snapshot):
        if path is snapshot and not path.exists():
            continue
        found = content(path)
        assert found.orphans == {}
        assert differences(found, site.whole_content, runs_of_first=True) == {}


def look(database: Path, snapshot: Path) -> Sight:
    """Read what the database holds, what is published, and the history with what waits beside it."""
    runs = {
        (directory, stem, content): (import_id, run_id)
        for directory, stem, content, import_id, run_id in _rows(
            database, "SELECT dump_dir, stem, content_sha256, import_id, run_id FROM runs"
        )
    }
    published: frozenset[Any] = frozenset()
    if snapshot.exists():
        published = frozenset(_rows(snapshot, "SELECT dump_dir, stem, content_sha256 FROM runs"))
    history = {entry.started_at: entry.status for entry in read_history(str(database))}
    return Sight(runs, published, history)


def _check_what_is_left(site: Site, database: Path, snapshot: Path, before: Sight) -> str:
    """Check a kill's outcome against what was there before it; tell how far the import had come."""
    now = look(database, snapshot)
    assert before.runs.items() <= now.runs.items(), "a run is gone or has another number"
    assert before.published <= now.published, "the snapshot has gone back"
    assert now.published <= now.runs.keys(), "the snapshot is ahead of its database"
    assert before.history.items() <= now.history.items(), "the history was changed"
    new = [status for started, status in now.history.items() if started not in before.history]
    assert len(new) <= 1, new
    whole = count(site.whole, "SELECT count(*) FROM runs")
    if new != ["ok"]:
        assert new == ["interrupted"] or (not new and now.runs == before.runs), new
    assert new != ["ok"] or len(now.runs) == whole, "an import that did not end counts as good"
    wrong = _rows(
        database,
        "SELECT import_id, loaded FROM imports WHERE loaded <> (SELECT count(*) FROM runs AS r"
        " WHERE r.import_id = imports.import_id)",
    )
    assert not wrong, wrong
    _require_one_row_each(database)
    if len(now.published) == whole > len(before.published):
        return "published"
    if len(now.runs) == whole:
        return "loaded"
    if now.runs != before.runs:
        return "loaded in part"
    return "reading" if new else "starting"


def _require_one_row_each(database: Path) -> None:
    """Require that an import that was gone on with has no other row."""
    query = "SELECT import_uuid, count(*) FROM imports GROUP BY ALL HAVING count(*) > 1"
    assert _rows(database, query) == []


def count(database: Path, query: str) -> int:
    """Return one number from a database, read by DuckDB alone."""
    return int(_rows(database, query)[0][0])


def _rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(database), read_only=True) as connection:
        return connection.execute(query).fetchall()


def as_markdown(tally: Tally) -> str:
    """Lay the kills out: a line for each way, a column for how far the import had come."""
    lines = [f"| import | {' | '.join(STAGES)} | kills |", "|---" * (len(STAGES) + 2) + "|"]
    for way in map(str, WAYS):
        numbers = [tally.met[way, stage] for stage in STAGES]
        lines.append(f"| {way} | {' | '.join(map(str, numbers))} | {sum(numbers)} |")
    sums = [sum(tally.met[way, stage] for way in map(str, WAYS)) for stage in STAGES]
    lines.append(f"| together | {' | '.join(map(str, sums))} | {sum(sums)} |")
    return "\n".join(lines)


def main() -> None:
    """Run a long series and print what it met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument(
        "--every-step", type=int, nargs="?", const=1, metavar="N", help="kill at each step, or at each N-th"
    )
    parser.add_argument("--dumps", type=int, default=60, help="how many dumps are imported")
    arguments = parser.parse_args()
    chooser, tally, begun = random.Random(arguments.seed), Tally(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), arguments.dumps)
        print(
            f"{time.strftime('%Y-%m-%d')}, DuckDB {duckdb.__version__}, {os.cpu_count()} cores,"
            f" seed {arguments.seed}, {count(site.whole, 'SELECT count(*) FROM runs')} dumps",
            flush=True,
        )
        if arguments.every_step:
            for way in (Way(False, 1, True), Way(True, 1, True)):
                steps = site.steps(way)
                print(f"{way}: {steps} steps", flush=True)
                for step in range(1, steps + 1, arguments.every_step):
                    attack(site, way, tally, [at("--kill-at", step)])
                print(f"{tally.kills} kills, {time.monotonic() - begun:.0f} s", flush=True)
        while not arguments.every_step and tally.kills < arguments.kills:
            way = chooser.choice(WAYS)
            attack(site, way, tally, at_random(site, way, chooser))
            print(f"{tally.kills} kills, {time.monotonic() - begun:.0f} s", flush=True)
    seconds = time.monotonic() - begun
    print(f"{tally.kills} kills in {seconds:.0f} s, {tally.survived} imports ended before theirs\n")
    print(as_markdown(tally))


if __name__ == "__main__":
    main()
