"""Who can do what while somebody else is at the database: try every pair in two processes, and measure.

python -m tests.reliability.locks              # the matrix
python -m tests.reliability.locks --windows    # how long others are kept out, in place and by copy
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path

import duckdb

from ingest import import_dumps
from ingest.database.connect import open_database
from ingest.database.file import sync
from ingest.errors import DatabaseLocked
from ingest.events import Event, Loaded
from tests.reliability.kills import ROOT
from tests.support.dump_sets import PAST, SEEDS
from tests.support.shells import Shell, ShellError

# Goes through the steps of an import and stops at one of them until it is told to go on.
_IMPORTER = """
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
import ingest.pipeline.importer as importer, ingest.pipeline.loading as loading
def stop():
    print("here", flush=True)
    sys.stdin.readline()
if sys.argv[3] == "reading":
    real = importer.read_tasks
    def stage(*arguments, **options):
        stop()
        real(*arguments, **options)
    importer.read_tasks = stage
else:
    window = loading.open_writer
    @contextmanager
    def stopping(*arguments, **options):
        with window(*arguments, **options) as opened:
            stop()
            yield opened
    loading.open_writer = stopping
importer.import_dumps([sys.argv[1]], sys.argv[2], jobs=1, wait_seconds=600)
"""


class Place:
    """A database with two runs and dumps that are new to it."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "xbuf.duckdb"
        self.dumps, self.news = folder / "dumps", folder / "news"
        for target, seeds in ((self.dumps, SEEDS[:2]), (self.news, SEEDS[2:4])):
            target.mkdir(parents=True)
            for seed in seeds:
                shutil.copy(seed, target)
                os.utime(target / seed.name, (PAST, PAST))
        import_dumps([self.dumps], self.database)


@contextmanager
def importer(place: Place, at: str) -> Iterator[None]:
    """Another import, held at a step."""
    process = subprocess.Popen(
        [sys.executable, "-c", _IMPORTER, str(place.news), str(place.database), at],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    yield
    process.communicate("\n")
    assert process.returncode == 0


@contextmanager
def shells(place: Place, *modes: bool) -> Iterator[None]:
    """Shells that are open: True for read-only."""
    opened = [Shell(place.database, read_only=mode) for mode in modes]
    yield
    for shell in opened:
        shell.close()


@contextmanager
def by_copy(place: Place) -> Iterator[None]:
    """An import in its write window, beside a reader."""
    with shells(place, True), importer(place, "loading"):
        yield


@contextmanager
def nobody(place: Place) -> Iterator[None]:
    yield


HOLDERS: dict[str, Callable[[Place], object]] = {
    "nobody": nobody,
    "a reader": lambda place: shells(place, True),
    "two readers": lambda place: shells(place, True, True),
    "a writer": lambda place: shells(place, False),
    "an import, reading dumps": lambda place: importer(place, "reading"),
    "an import, loading in place": lambda place: importer(place, "loading"),
    "an import, loading by copy": by_copy,
}


def _shell(place: Place, *, read_only: bool) -> str:
    try:
        with Shell(place.database, read_only=read_only) as shell:
            ((runs,),) = shell.run("SELECT count(*) FROM runs")
    except ShellError as error:
        if "Could not set lock" not in str(error):
            raise
        return "refused"
    return f"opens, sees {runs} runs"


def _import(place: Place, dumps: Path) -> str:
    try:
        summary = import_dumps([dumps], place.database, jobs=1, wait_seconds=0.3)
    except DatabaseLocked:
        return "exit 3"
    if not summary.loaded:
        return "ok, nothing to load" + ("" if summary.import_id else ", recorded later")
    return f"loads {summary.loaded} {'by copy' if summary.by_copy else 'in place'}"


COMERS: dict[str, Callable[[Place], str]] = {
    "reader": lambda place: _shell(place, read_only=True),
    "writer": lambda place: _shell(place, read_only=False),
    "import with news": lambda place: _import(place, place.news),
    "import without": lambda place: _import(place, place.dumps),
}


def matrix(folder: Path) -> dict[tuple[str, str], str]:
    """Let each newcomer meet each holder, at a database of the holder's own.

    Those who change nothing come first, an import with news last.
    """
    found = {}
    start = Place(folder / "start")
    for number, (holder, hold) in enumerate(HOLDERS.items()):
        here = folder / str(number)
        shutil.copytree(start.database.parent, here)
        place = Place.__new__(Place)
        place.database = here / "xbuf.duckdb"
        place.dumps, place.news = start.dumps, start.news
        with hold(place):  # type: ignore[attr-defined]
            for comer in sorted(COMERS, key="import with news".__eq__):
                found[holder, comer] = COMERS[comer](place)
        shutil.rmtree(here)
    return found


def as_markdown(found: dict[tuple[str, str], str]) -> str:
    """Lay the matrix out: a line for each holder."""
    lines = [f"| at the database | {' | '.join(COMERS)} |", "|---" * (len(COMERS) + 1) + "|"]
    lines += [f"| {holder} | {' | '.join(found[holder, comer] for comer in COMERS)} |" for holder in HOLDERS]
    return "\n".join(lines)


# Asks the kernel again and again whether a reader would get DuckDB's lock, without taking it: a shell that
# opens the database would be a reader to the import. Prints the longest time that it would not.
_PROBE = """
import fcntl, os, select, struct, sys, time
print("ready", flush=True)
worst, since = 0.0, None
while not select.select([sys.stdin], [], [], 0)[0]:
    file = os.open(sys.argv[1], os.O_RDONLY)
    question = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
    (answer, *_) = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, question))
    os.close(file)
    if answer == fcntl.F_UNLCK:
        since = None
    else:
        since = since or time.monotonic()
        worst = max(worst, time.monotonic() - since)
    time.sleep(0.002)
print(worst)
"""


@dataclass(frozen=True)
class WindowCost:
    """What one import of two new dumps cost.

    Attributes:
        seconds: the whole import.
        load_seconds: from the first step in or beside the database to the last: so long a writer waits.
        refused_seconds: longest stretch in which a reader who came was refused.
        extra_bytes: most space that was taken besides the database at one moment.
    """

    seconds: float
    load_seconds: float
    refused_seconds: float
    extra_bytes: int


def windows(folder: Path, megabytes: list[int], rounds: int = 3) -> None:
    """Import two new runs into databases of several sizes, in place and by copy; print what it costs."""
    start = Place(folder / "start")
    print("| database | load | import takes | of it the load | a reader is refused for | extra space |")
    print("|---|---|---|---|---|---|")
    for size in megabytes:
        grown = folder / f"grown-{size}.duckdb"
        shutil.copy(start.database, grown)
        _grow(grown, size * 10**6)
        for by_copy in (False, True):
            costs = [_import_once(start, grown, folder / f"round-{one}", by_copy) for one in range(rounds)]
            took, load, refused, extra = (
                statistics.median(getattr(cost, field.name) for cost in costs) for field in fields(WindowCost)
            )
            size_and_way = f"{grown.stat().st_size / 1e6:,.0f} MB | {'by copy' if by_copy else 'in place'}"
            print(
                f"| {size_and_way} | {took:.2f} s | {load:.2f} s | {refused:.2f} s | {extra / 1e6:,.0f} MB |",
                flush=True,
            )
        grown.unlink()


def _import_once(start: Place, grown: Path, folder: Path, by_copy: bool) -> WindowCost:
    """Import two dumps into a copy of a database, while a prober asks for its lock."""
    folder.mkdir()
    database = folder / "xbuf.duckdb"
    shutil.copy(grown, database)
    sync(str(database))  # or the first checkpoint of the import writes the whole file to disk
    reader = Shell(database, read_only=True) if by_copy else None
    probe = subprocess.Popen(
        [sys.executable, "-c", _PROBE, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert probe.stdout is not None
    probe.stdout.readline()
    events: list[Event] = []
    before, most, done = _bytes_in(folder), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.01):
            most = max(most, _bytes_in(folder))

    watcher = threading.Thread(target=watch)
    watcher.start()
    begun = time.monotonic()
    summary = import_dumps([start.news], database, jobs=1, wait_seconds=600, on_event=events.append)
    took = time.monotonic() - begun
    done.set()
    watcher.join()
    text, _ = probe.communicate("\n")
    if reader is not None:
        reader.close()
    assert (summary.loaded, summary.by_copy) == (2, by_copy)
    (load,) = (event for event in events if isinstance(event, Loaded))
    shutil.rmtree(folder)
    return WindowCost(took, load.seconds, float(text), most - before)


def _bytes_in(folder: Path) -> int:
    """Return the space that the files of a folder take; some vanish meanwhile."""
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(directory, name)).st_blocks * 512
    return total


def _grow(database: Path, size: int) -> None:
    """Add numbers that nothing compresses until the file has this many bytes."""
    rows = min(2_000_000, size // 256)
    columns = ", ".join(f"hash(i, {number}) AS c{number}" for number in range(8))
    with open_database(database) as connection:
        connection.execute(f"CREATE TABLE ballast AS SELECT {columns} FROM range(0) AS r(i)")
        for number in count():
            if database.stat().st_size >= size:
                break
            first = number * rows
            connection.execute(
                f"INSERT INTO ballast SELECT {columns} FROM range({first}, {first + rows}) AS r(i)"
            )
            connection.execute("CHECKPOINT")


def main() -> None:
    """Print the matrix, or the windows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--windows", action="store_true")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[20, 500, 2000])
    arguments = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, DuckDB {duckdb.__version__}, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.windows:
            windows(Path(folder), arguments.megabytes)
        else:
            print(as_markdown(matrix(Path(folder))))


if __name__ == "__main__":
    main()
