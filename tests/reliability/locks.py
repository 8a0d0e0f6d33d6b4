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
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ingest import import_dumps
from ingest.errors import DatabaseLocked
from ingest.store.database import open_database
from tests.dump_sets import DATA
from tests.reliability.kills import ROOT
from tests.shells import Shell, ShellError

SEEDS = sorted((DATA / "seeds").iterdir())
PAST = 1_700_000_000

# Goes through the steps of an import and stops at one of them until it is told to go on.
_IMPORTER = """
import sys
from contextlib import contextmanager
import ingest.importer as importer
def stop():
    print("here", flush=True)
    sys.stdin.readline()
if sys.argv[3] == "reading":
    real = importer._stage
    def stage(*arguments):
        stop()
        real(*arguments)
    importer._stage = stage
else:
    window = importer.write_window
    @contextmanager
    def stopping(*arguments, **options):
        with window(*arguments, **options) as opened:
            stop()
            yield opened
    importer.write_window = stopping
importer.import_dumps([sys.argv[1]], sys.argv[2], jobs=1, wait_seconds=30)
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
    """Let each newcomer meet each holder, each time at a database of its own."""
    found = {}
    start = Place(folder / "start")
    for number, (holder, hold) in enumerate(HOLDERS.items()):
        for comer, come in COMERS.items():
            here = folder / f"{number}-{comer}"
            shutil.copytree(start.database.parent, here)
            place = Place.__new__(Place)
            place.database = here / "xbuf.duckdb"
            place.dumps, place.news = start.dumps, start.news
            with hold(place):  # type: ignore[attr-defined]
                found[holder, comer] = come(place)
            shutil.rmtree(here)
    return found


def as_markdown(found: dict[tuple[str, str], str]) -> str:
    """Lay the matrix out: a line for each holder."""
    lines = [f"| at the database | {' | '.join(COMERS)} |", "|---" * (len(COMERS) + 1) + "|"]
    lines += [f"| {holder} | {' | '.join(found[holder, comer] for comer in COMERS)} |" for holder in HOLDERS]
    return "\n".join(lines)


# Opens the database read-only again and again; prints the longest time that it could not.
_PROBE = """
import sys, time, duckdb
print("ready", flush=True)
worst, since, refused = 0.0, None, 0
end = time.monotonic() + 3600
import select
while not select.select([sys.stdin], [], [], 0)[0]:
    try:
        duckdb.connect(sys.argv[1], read_only=True).close()
        since = None
    except duckdb.IOException:
        refused += 1
        since = since or time.monotonic()
        worst = max(worst, time.monotonic() - since)
    time.sleep(0.002)
print(worst, refused)
"""


def windows(folder: Path, megabytes: list[int], rounds: int = 3) -> None:
    """Import two new runs into databases of several sizes and tell how long a reader was kept out."""
    start = Place(folder / "start")
    print("| database | way | import takes | a reader is kept out |\n|---|---|---|---|")
    for size in megabytes:
        grown = folder / f"grown-{size}.duckdb"
        shutil.copy(start.database, grown)
        _grow(grown, size << 20)
        for way in ("in place", "by copy"):
            took, out = [], []
            for number in range(rounds):
                here = folder / f"round-{number}.duckdb"
                shutil.copy(grown, here)
                reader = Shell(here, read_only=True) if way == "by copy" else None
                probe = subprocess.Popen(
                    [sys.executable, "-c", _PROBE, str(here)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                assert probe.stdout is not None
                probe.stdout.readline()
                begun = time.monotonic()
                summary = import_dumps([start.news], here, jobs=1, wait_seconds=30)
                took.append(time.monotonic() - begun)
                assert summary.loaded == 2
                text, _ = probe.communicate("\n")
                out.append(float(text.split()[0]))
                if reader is not None:
                    reader.close()
                for path in folder.glob(f"{here.name}*"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            ms = statistics.median(out) * 1000
            real = f"{grown.stat().st_size / 1e6:,.0f} MB"
            print(f"| {real} | {way} | {statistics.median(took):.2f} s | {ms:.0f} ms |", flush=True)
        grown.unlink()


def _grow(database: Path, size: int) -> None:
    """Add rows of random text until the file is this large."""
    with open_database(database) as connection:
        connection.execute("CREATE TABLE ballast (t VARCHAR)")
        while database.stat().st_size < size:
            connection.execute(
                "INSERT INTO ballast"
                " SELECT md5(random()::VARCHAR) || md5(random()::VARCHAR) FROM range(500_000)"
            )
            connection.execute("CHECKPOINT")


def main() -> None:
    """Print the matrix, or the windows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--windows", action="store_true")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[10, 100, 1000])
    arguments = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, DuckDB {duckdb.__version__}, load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.windows:
            windows(Path(folder), arguments.megabytes)
        else:
            print(as_markdown(matrix(Path(folder))))


if __name__ == "__main__":
    main()
