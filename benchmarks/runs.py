"""The runs: each measures one target and returns tables."""

from __future__ import annotations

import json
import math
import shutil
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.columns import column_costs
from benchmarks.data import Data, DataSet
from benchmarks.grown import grow, make_files
from benchmarks.plain_load import export_rows
from benchmarks.process import XBUF, Usage, in_turn, median, run

LARGE_BYTES: Final = 50_000_000
"""Sets from here on are judged by the time that DuckDB needs for their rows."""
BY_LINE_BYTES: Final = 300_000_000
"""Larger sets are not given to the comparisons, which hold all their rows in memory several times."""


@dataclass(frozen=True)
class Sizes:
    """How much to generate; `SMALL` serves the tests."""

    one_mb: tuple[float, ...]
    middle: tuple[int, float]
    """Dumps of middle size, and MB of each."""
    many: tuple[int, ...]
    unchanged: int
    query_runs: int
    query_copies: int
    """Copies in each run of the query database, which make up its values."""
    grown: tuple[int, ...]
    """Runs in the databases that one more is imported into."""


FULL: Final = Sizes(
    (1, 4, 16, 64, 256, 1024),
    (8, 47),
    (10, 100, 1000, 10_000, 100_000),
    100_000,
    5000,
    17,
    (2_000, 50_000, 500_000),
)
SMALL: Final = Sizes((0.2, 1, 2), (2, 9), (10, 40), 40, 20, 2, (60, 600))


@dataclass(frozen=True)
class Table:
    """A table of results."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class Runs:
    """Runs benchmarks in a folder for data and databases."""

    def __init__(self, folder: Path, repeat: int, sizes: Sizes, report: Callable[[str], None]) -> None:
        self._folder = folder
        self._repeat = repeat
        self._sizes = sizes
        self._report = report
        self._data = Data(folder / "data")
        (folder / "data").mkdir(parents=True, exist_ok=True)

    def throughput(self) -> list[Table]:
        """Import into a new database, against the yardstick, the comparisons and DuckDB alone."""
        rows, loads = [], []
        for data in self._sets():
            self._report(f"{data.name}: {data.dumps:,} dumps, {data.text_bytes / 1e6:.1f} MB")
            database = self._folder / "throughput.duckdb"
            finished = self._folder / "finished"
            self._import(data, database)
            shutil.rmtree(finished, ignore_errors=True)
            count = export_rows(database, finished)
            other = self._folder / "other.duckdb"
            commands: dict[str, Callable[[], Usage]] = {
                "import": partial(self._import, data, database),
                "rough": partial(self._module, "rough", data.directory, other),
                "load": partial(self._module, "plain_load", finished, other),
                "tuned": partial(self._module, "plain_load", finished, other, "tuned"),
            }
            if data.text_bytes <= BY_LINE_BYTES:
                commands["by_line"] = partial(self._module, "by_line", data.directory, other)
                commands["analyzer"] = partial(self._module, "analyzer", data.directory)
            usage = in_turn(commands, self._repeat, self._report)
            load, tuned = (float(usage[name].output) for name in ("load", "tuned"))
            imported, rough = usage["import"], usage["rough"]
            others = (usage[name].seconds if name in usage else None for name in ("by_line", "analyzer"))
            megabytes = data.text_bytes / 1e6
            rows.append(
                (
                    data.name,
                    data.dumps,
                    megabytes,
                    count,
                    imported.seconds,
                    imported.cpu,
                    megabytes / imported.seconds,
                    rough.seconds,
                    imported.seconds / rough.seconds,
                    *others,
                )
            )
            loads.append((data.name, count, imported.seconds, load, imported.seconds / load, tuned))
            shutil.rmtree(finished, ignore_errors=True)
        head = (
            "data",
            "dumps",
            "MB",
            "rows",
            "import s",
            "CPU s",
            "MB/s",
            "rough s",
            "import/rough",
            "by line s",
            "analyzer s",
        )
        head_of_loads = ("data", "rows", "import s", "load s", "import/load", "our load s")
        return [
            Table("throughput", "Import into a new database", head, tuple(rows)),
            Table("loads", "Against DuckDB's load of the finished rows", head_of_loads, tuple(loads)),
        ]

    def memory(self) -> list[Table]:
        """Peak memory of imports, of all processes and of the largest."""
        rows = []
        sets = (
            *self._sets(),
            self._data.one(self._sizes.one_mb[-1]),
            self._data.middle(*self._sizes.middle),
            self._data.many(self._sizes.many[-1]),
        )
        for data in {data.name: data for data in sets}.values():
            usage = self.memory_of(data)
            self._report(f"memory {data.name}: {usage.together / 1e6:.0f} MB")
            rows.append(
                (data.name, data.dumps, data.text_bytes / 1e6, usage.together / 1e6, usage.largest / 1e6)
            )
        head = ("data", "dumps", "MB", "all processes MB", "largest MB")
        return [Table("memory", "Peak memory of an import", head, tuple(rows))]

    def memory_of(self, data: DataSet) -> Usage:
        """Import into a new database, with an eye on the memory."""
        return self._import(data, self._folder / "memory.duckdb", watch_memory=True)

    def unchanged(self) -> list[Table]:
        """Import what is imported already; count the files that are opened."""
        rows = []
        for dumps in sorted({self._sizes.unchanged // 10, self._sizes.unchanged}):
            data = self._data.many(dumps)
            database = self._folder / "unchanged.duckdb"
            self._import(data, database)
            again = [run([*XBUF, str(data.directory), "--db", str(database)]) for _ in range(self._repeat)]
            counted = run(
                [sys.executable, "-c", _COUNT_OPENED, str(data.directory), "--db", str(database), "-q"]
            )
            seconds = statistics.median(usage.seconds for usage in again)
            cpu = statistics.median(usage.cpu for usage in again)
            self._report(f"unchanged {data.name}: {seconds:.2f} s")
            rows.append((data.dumps, seconds, cpu, seconds / data.dumps * 1e6, int(counted.output)))
        head = ("unchanged dumps", "s", "CPU s", "us/dump", "dump files opened")
        return [Table("unchanged", "Import of what is unchanged, warm cache", head, tuple(rows))]

    def scaling(self) -> list[Table]:
        """Import dumps of growing size, and growing numbers of dumps; one worker against two."""
        tables = []
        for name, title, sets in (
            ("scaling_one", "One dump of growing size", [self._data.one(mb) for mb in self._sizes.one_mb]),
            ("scaling_many", "Growing numbers of dumps", [self._data.many(n) for n in self._sizes.many]),
        ):
            rows = []
            for data in sets:
                usages = [self._import(data, self._folder / "scaling.duckdb") for _ in range(self._repeat)]
                seconds = statistics.median(usage.seconds for usage in usages)
                cpu = statistics.median(usage.cpu for usage in usages)
                self._report(f"scaling {data.name}: {seconds:.2f} s")
                rows.append((data.dumps, data.text_bytes / 1e6, seconds, cpu))
            head = ("dumps", "MB", "s", "CPU s")
            tables.append(Table(name, f"{title} ({_fit(rows)})", head, tuple(rows)))
        return [*tables, self._workers()]

    def _workers(self) -> Table:
        rows = []
        for data in (
            self._data.many(self._sizes.many[-2]),
            self._data.one(self._sizes.one_mb[-2]),
        ):
            commands: dict[str, Callable[[], Usage]] = {
                str(jobs): partial(self._module, "staging", data.directory, jobs) for jobs in (1, 2)
            }
            usage = in_turn(commands, self._repeat, self._report)
            one, two = (float(usage[jobs].output) for jobs in ("1", "2"))
            rows.append((data.name, data.text_bytes / 1e6, one, two, one / two))
        head = ("data", "MB", "1 worker s", "2 workers s", "gain")
        return Table("workers", "Reading and staging alone, by workers", head, tuple(rows))

    def startup(self) -> list[Table]:
        """Time of the smallest things."""
        data = self._data.many(self._sizes.many[0])
        database = self._folder / "startup.duckdb"
        incoming = self._folder / "incoming"
        dumps = sorted(data.directory.glob("*.txt"))
        repeat = max(self._repeat, 7)
        rows: list[tuple[Any, ...]] = []

        def measure(what: str, action: Callable[[int], Usage]) -> None:
            usages = [action(number) for number in range(repeat)]
            seconds = [usage.seconds for usage in usages]
            cpu = statistics.median(usage.cpu for usage in usages)
            rows.append((what, statistics.median(seconds) * 1e3, min(seconds) * 1e3, cpu * 1e3))
            self._report(f"{what}: {statistics.median(seconds) * 1e3:.0f} ms")

        def one_more(number: int) -> Usage:
            shutil.rmtree(incoming, ignore_errors=True)
            incoming.mkdir()
            shutil.copy2(dumps[number % len(dumps)], incoming / f"module_{number:04d}.{dumps[0].name[12:]}")
            return run([*XBUF, str(incoming), "--db", str(database)])

        def new_database(number: int) -> Usage:
            _remove(database)
            return one_more(number)

        measure("xbuf-ingest --help", lambda _: run([*XBUF, "--help"]))
        measure("one small dump, new database", new_database)
        measure("one small dump, existing database", lambda number: one_more(number + 100))
        measure("nothing new", lambda _: run([*XBUF, str(incoming), "--db", str(database)]))
        head = ("what", "median ms", "least ms", "CPU ms")
        return [Table("startup", "Start-up", head, tuple(rows))]

    def size(self) -> list[Table]:
        """Bytes of the database against the text, and what each column takes."""
        rows = []
        columns: list[Table] = []
        sets = self._sets()
        for data in sets:
            database = self._folder / "size.duckdb"
            self._import(data, database)
            size = database.stat().st_size
            rows.append((data.name, data.dumps, data.text_bytes / 1e6, size / 1e6, size / data.text_bytes))
            if data.text_bytes >= LARGE_BYTES or data is sets[-1]:
                costs = [
                    (f"{cost.table}.{cost.column}", cost.bytes / 1e3, cost.bytes / size, cost.compression)
                    for cost in column_costs(database)[:12]
                ]
                title = f"Columns that take most: {data.name}"
                columns.append(
                    Table(f"columns_{data.name}", title, ("column", "kB", "share", "stored as"), tuple(costs))
                )
        head = ("data", "dumps", "text MB", "database MB", "ratio")
        return [Table("size", "Size", head, tuple(rows)), *columns]

    def queries(self) -> list[Table]:
        """Every saved query with its defaults, on many runs and on ten times as many."""
        return [
            self._queries("queries", self._of_values()),
            self._queries("queries_of_ten_times", self._of_ten_times()),
        ]

    def _queries(self, name: str, database: Path) -> Table:
        from benchmarks.queries import time_queries

        counts, timed = time_queries(database, self._repeat)
        rows = tuple((one.name, one.first * 1e3, one.median * 1e3, one.cpu * 1e3, one.rows) for one in timed)
        title = f"Saved queries on {counts.runs:,} runs and {counts.values:,} values"
        return Table(name, title, ("query", "first ms", "median ms", "CPU ms", "rows"), rows)

    def one_run(self) -> list[Table]:
        """Every question about one run, among ten times as many runs."""
        from benchmarks.queries import time_one_run

        counts, timed = time_one_run(self._of_ten_times(), self._repeat)
        rows = tuple((one.name, one.median * 1e3, one.cpu * 1e3, one.rows) for one in timed)
        title = f"Questions about one run of {counts.runs:,}, which have {counts.values:,} values"
        return [Table("one_run", title, ("query", "median ms", "CPU ms", "rows"), rows)]

    def _of_values(self) -> Path:
        """Return a database of many values, imported once."""
        database = self._folder / "queries.duckdb"
        if not database.exists():
            self._import(self._data.of_values(self._sizes.query_runs, self._sizes.query_copies), database)
        return database

    def _of_ten_times(self) -> Path:
        """Return that database grown to ten times the runs, with all they hold."""
        database = self._folder / "ten-times.duckdb"
        if not database.exists():
            shutil.copy(self._of_values(), database)
            grow(database, self._folder / "data" / "ten-times", 10 * self._sizes.query_runs)
        return database

    def grown(self) -> list[Table]:
        """Import one dump, and then nothing new, into databases of growing size."""
        first = self._data.many(50)
        start = self._folder / "start.duckdb"
        self._import(first, start)
        incoming = self._folder / "incoming"
        rows = []
        for runs in self._sizes.grown:
            database, files = self._folder / "grown.duckdb", self._folder / "data" / f"grown-{runs}"
            _remove(database)
            shutil.copy(start, database)
            grow(database, files, runs)
            if not files.is_dir():
                make_files(files, first.dumps + 1, runs)
            command = [sys.executable, "-c", _TIME_THE_LOAD, str(incoming), str(database)]
            ones = []
            # The first import writes the record that stands in for a locked database; it is not counted.
            for number in range(self._repeat + 1):
                shutil.rmtree(incoming, ignore_errors=True)
                incoming.mkdir()
                dump = next(first.directory.glob("*-buffer-assignment.txt"))
                shutil.copy2(dump, incoming / f"module_{number:04d}.jit_new.{dump.name[12:]}")
                ones.append(run(command, watch_memory=True))
            one = median(ones[1:])
            window = statistics.median(float(usage.output) for usage in ones[1:])
            again = median(
                [
                    run([*XBUF, str(files), "--db", str(database)], watch_memory=True)
                    for _ in range(self._repeat)
                ]
            )
            if " 0 loaded" not in again.output:
                raise RuntimeError(f"{runs} runs: {again.output}")
            self._report(f"grown to {runs:,}: {one.seconds:.2f} s, nothing new {again.seconds:.2f} s")
            size = database.stat().st_size
            figures = (one.seconds, one.cpu, one.largest / 1e6, window)
            rows.append((runs, size / 1e6, *figures, again.seconds, again.cpu, again.largest / 1e6))
        head = ("runs", "MB", "one new s", "CPU s", "memory MB", "load s", "none new s", "CPU s", "memory MB")
        return [Table("grown", "One new dump, and none, by the size of the database", head, tuple(rows))]

    def _sets(self) -> Sequence[DataSet]:
        """Return the real sets, or generated ones where there are none, and a set of many small dumps."""
        if self._sizes is SMALL:
            return [self._data.one(self._sizes.one_mb[-1]), self._data.many(self._sizes.many[-1])]
        real = list(self._data.real()) or [self._data.one(256)]
        return [*real, self._data.one(100), self._data.many(5900)]

    def _import(self, data: DataSet, database: Path, *, watch_memory: bool = False) -> Usage:
        """Import into a new database.

        Raises:
            RuntimeError: not every dump was loaded.
        """
        _remove(database)
        usage = run([*XBUF, str(data.directory), "--db", str(database)], watch_memory=watch_memory)
        if f"{data.dumps:,} loaded" not in usage.output:
            raise RuntimeError(f"{data.name}: not every dump was loaded: {usage.output}")
        return usage

    def _module(self, name: str, *arguments: object) -> Usage:
        return run([sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)])


NAMES: Final = (
    "throughput", "memory", "unchanged", "scaling", "startup", "size", "queries", "one_run", "grown",
)  # fmt: skip

_TIME_THE_LOAD: Final = """
import sys
from ingest import import_dumps
from ingest.events import Loaded
events = []
import_dumps(sys.argv[1:2], sys.argv[2], on_event=events.append)
print(*(event.seconds for event in events if isinstance(event, Loaded)))
"""
_COUNT_OPENED: Final = """
import sys
opened = []
def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".txt"):
        opened.append(arguments[0])
sys.addaudithook(note)
from ingest.cli.entry import xbuf_ingest
try:
    xbuf_ingest()
finally:
    print(len(opened))
"""


def save(tables: Sequence[Table], machine: str, path: Path) -> None:
    """Write tables to a JSON file, by name; others that it holds stay."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for one in tables:
        results[one.name] = {"title": one.title, "machine": machine, "head": one.head, "rows": one.rows}
    path.write_text(f"{json.dumps(results, indent=1)}\n", encoding="utf-8")


def _remove(database: Path) -> None:
    database.unlink(missing_ok=True)
    shutil.rmtree(f"{database}.staging", ignore_errors=True)


def _fit(rows: Sequence[tuple[Any, ...]]) -> str:
    """Say how the CPU time grows with the text: exponent of a power law, once start-up is taken off."""
    start = min(row[3] for row in rows)
    points = [(math.log(row[1]), math.log(row[3] - start * 0.9)) for row in rows if row[3] > start * 1.5]
    if len(points) < 2:
        return "too small to fit"
    exponent, _ = statistics.linear_regression(*zip(*points, strict=True))
    correlation = statistics.correlation(*zip(*points, strict=True))
    return f"CPU time ~ text^{exponent:.2f}, r = {correlation:.4f}"
