"""`python -m benchmarks.capacity --folder F`: how far a file and a lake go.

    500 generated dumps of a thousand values ──► file ──► grown to each size ──► the same runs in a lake

At each size: what it takes on disk, a question about one run, all questions about all runs, one more dump.
The largest size needs 12 GB and an hour. The figures go into docs/performance.json and from there into
docs/scale-out.md (`python -m benchmarks.report`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.data import Data
from benchmarks.grown import grow
from benchmarks.machine import describe
from benchmarks.process import XBUF, Usage, run
from benchmarks.report import RESULTS
from benchmarks.runs import Table, save
from benchmarks.table import table

RUNS: Final = (1_000, 10_000, 100_000)
BASE_DUMPS: Final = 500
BASE_COPIES: Final = 85
"""A thousand values each."""
ALL_RUNS_UP_TO: Final = 10_000
"""Sizes at which all questions about all runs are asked: beyond, they take minutes."""

_TIME_OF: Final = """
import sys
import benchmarks.queries as queries
counts, timed = getattr(queries, sys.argv[1])(sys.argv[2], int(sys.argv[3]))
print(counts.runs, counts.values, *(f"{one.name}={one.cpu}" for one in timed))
"""
_XBUF: Final = (sys.executable, "-c", "from ingest.cli.entry import xbuf; xbuf()")


class Capacity:
    """Grows and asks; what it makes stays in the folder."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self._folder = folder
        self._report = report
        self._file = folder / "capacity.duckdb"
        self._lake = folder / "lake"
        folder.mkdir(parents=True, exist_ok=True)

    def measure(self, sizes: Sequence[int]) -> list[Table]:
        """Return a table of files and one of lakes, a row each size."""
        data = Data(self._folder / "data").of_values(BASE_DUMPS, BASE_COPIES)
        for leftover in (self._file, self._lake):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
        run([*XBUF, str(data.directory), "--db", str(self._file)])
        files: list[tuple[Any, ...]] = []
        lakes: list[tuple[Any, ...]] = []
        for runs in sizes:
            grow(self._file, self._folder / "dumps", runs)
            self._report(f"{runs:,} runs: grown")
            one, every, values = self._ask(str(self._file), runs)
            in_place, copied = self._one_more(runs)
            size = self._file.stat().st_size / 1e6
            files.append((runs, values, size, *one, every, in_place.cpu, in_place.seconds, copied.seconds))
            self._report(f"file: {files[-1]}")
            lakes.append((runs, values, *self._measure_lake(runs)))
            self._report(f"lake: {lakes[-1]}")
        one_run = ("one run, median ms", "slowest ms")
        return [
            Table(
                "capacity_file",
                "A file, by its size; CPU time of questions",
                ("runs", "values", "MB", *one_run, "all questions s", "one more CPU s", "s", "by copy s"),
                tuple(files),
            ),
            Table(
                "capacity_lake",
                "A lake in a folder, compacted, by its size; CPU time",
                (
                    "runs", "values", "load s", "files", "compact s", "files after", "MB", *one_run,
                    "all questions s", "one more s",
                ),
                tuple(lakes),
            ),
        ]  # fmt: skip

    def _measure_lake(self, runs: int) -> tuple[Any, ...]:
        """Bring the file's new runs into the lake, compact that, and ask."""
        load = run([*_XBUF, "lake", "import", str(self._file), str(self._lake)])
        before = self._parquet()
        compact = run([*_XBUF, "lake", "compact", str(self._lake)])
        run([*_XBUF, "lake", "vacuum", str(self._lake), "--keep-hours", "0"])
        after = self._parquet()
        size = sum(path.stat().st_size for path in self._lake.rglob("*") if path.is_file()) / 1e6
        one, every, _ = self._ask(f"lake:{self._lake}", runs)
        more = run(
            [*XBUF, str(self._dump(runs)), "--lake", str(self._lake), "--staging", f"{self._lake}-staging"]
        )
        return load.cpu, before, compact.cpu, after, size, *one, every, more.cpu

    def _ask(self, database: str, runs: int) -> tuple[tuple[float, float], float | None, int]:
        """Return CPU ms of a question about one run, median and worst; CPU s of all about all; values."""
        once = self._times("time_one_run", database, 3)
        times = sorted(once[2])
        every = sum(self._times("time_queries", database, 1)[2]) if runs <= ALL_RUNS_UP_TO else None
        return (times[len(times) // 2] * 1e3, times[-1] * 1e3), every, once[1]

    def _times(self, function: str, database: str, repeat: int) -> tuple[int, int, list[float]]:
        output = run([sys.executable, "-c", _TIME_OF, function, database, str(repeat)]).output.split()
        self._report(f"{function} {database}: {' '.join(output)}")
        return int(output[0]), int(output[1]), [float(one.partition("=")[2]) for one in output[2:]]

    def _one_more(self, runs: int) -> tuple[Usage, Usage]:
        """Import a dump that is new, with nobody there, and next to a reader."""
        in_place = run([*XBUF, str(self._dump(runs)), "--db", str(self._file)])
        reading = (
            "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); print(flush=True); input()"
        )
        with subprocess.Popen(
            [sys.executable, "-c", reading, str(self._file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as reader:
            assert reader.stdout is not None
            reader.stdout.readline()
            copied = run([*XBUF, str(self._dump(runs + 1)), "--db", str(self._file)])
            reader.kill()
        return in_place, copied

    def _dump(self, number: int) -> Path:
        """Return a folder with one dump of a place of its own."""
        folder = self._folder / "more" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        dump = next((self._folder / "data").rglob("*-buffer-assignment.txt"))
        os.utime(shutil.copy(dump, folder), (1_700_000_000, 1_700_000_000))
        return folder

    def _parquet(self) -> int:
        """Count the files of rows; a checkpoint of a log is one of another kind."""
        return sum(path.parent.name != "_delta_log" for path in self._lake.rglob("*.parquet"))


def main(arguments: list[str] | None = None) -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="for data and databases, which stay there")
    parser.add_argument("--runs", type=int, nargs="*", default=RUNS, help="sizes, ascending")
    options = parser.parse_args(arguments)
    started = time.monotonic()

    def report(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", file=sys.stderr, flush=True)

    tables = Capacity(options.folder, report).measure(options.runs)
    for one in tables:
        print(table(one.title, one.head, one.rows))
    save(tables, describe(), RESULTS)


if __name__ == "__main__":
    main()
