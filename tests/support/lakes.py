"""Lakes in folders: staged parts to load, what is visible, processes that are killed on the way."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import ingest.lake.batch as batch_module
import ingest.lake.commit as commit_module
import ingest.lake.load as load_module
import ingest.lake.transactions as transactions
from ingest.dump.find import discover
from ingest.lake.commit import connect
from ingest.lake.files import attach
from ingest.lake.layout import LAKE_TABLES, TABLES_OF_RUNS
from ingest.lake.load import LoadedBatch, load_batch
from ingest.lake.store import Lake
from ingest.source.apart import apart
from ingest.source.source import Terms
from ingest.sql import quoted
from ingest.staging.stage import stage_sets
from ingest.staging.task import Task

_T = TypeVar("_T")

Content = dict[str, Counter[tuple[str, ...]]]
"""Rows by table, as texts."""

ROW = {
    "started_at": "2026-01-01 00:00:00",
    "finished_at": "2026-01-01 00:00:01",
    "status": "ok",
    "tool_version": "0",
    "host": "here",
    "sources": ["dumps"],
    "found": 2,
    "unchanged": 0,
    "rejected": 0,
    "unfinished": 0,
    "import_uuid": "one",
}


def in_process(function: Callable[..., _T], *arguments: Any) -> _T:
    """Run a function in a process of its own: one that has opened a lake must not be forked."""

    def make() -> Iterator[_T]:
        yield function(*arguments)

    return next(apart(make, what="test", terms=Terms(None, is_apart=True)))


def begin(function: Callable[[], object]) -> int:
    """Run a function in a child that is not waited for; return its process id."""
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def end(child: int) -> int:
    """Wait for a child; return its exit code, or minus the number of the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def stage(dumps: Path, part: Path) -> str:
    """Read the dumps of a folder into a part."""
    tasks = [Task(number, one) for number, one in enumerate(discover([str(dumps)]).sets)]
    staged = stage_sets(tasks, str(part))
    assert not staged.rejected
    return str(part)


def load(lake: Lake, part: str, *, replace: bool = False, **labels: str) -> LoadedBatch:
    """Load a part; to be called in a process of its own."""
    return load_batch(lake, [part], ROW, labels_of=lambda directory, stem: labels, replace=replace)


def steps(number: int, moment: str) -> Callable[[], None]:
    """Kill the process that calls this at a step: before or after the commit or put of that number."""

    def arm() -> None:
        taken = 0

        def killing(real: Callable[..., object]) -> Callable[..., object]:
            def step(*arguments: object) -> object:
                nonlocal taken
                taken += 1
                if taken == number and moment == "before":
                    die()
                result = real(*arguments)
                if taken == number and moment == "after":
                    die()
                return result

            return step

        vars(transactions)["_commit"] = killing(transactions._commit)
        vars(load_module)["publish"] = killing(batch_module.publish)
        vars(commit_module)["remove_batch"] = killing(batch_module.remove_batch)

    return arm


def visible(lake: Lake) -> Content:
    """Return the rows that count of each table, with the stem of their run in place of its number.

    To be called in a process of its own. When a run was loaded, and by which import, is left out.
    """
    found: Content = {}
    with connect() as connection:
        for name in ("runs", *(one for one in LAKE_TABLES if one != "runs")):
            attach(connection, lake, name, lake.table(name))
        for name in ("runs", *TABLES_OF_RUNS):
            rows = connection.execute(
                f"SELECT r.stem, x.* EXCLUDE (run_id) FROM {quoted(name)} AS x JOIN runs AS r USING (run_id)"
                if name != "runs"
                else "SELECT * EXCLUDE (run_id, import_id, ingested_at) FROM runs"
            ).fetchall()
            found[name] = Counter(tuple(map(repr, row)) for row in rows)
    return found


def ask(lake: Lake, query: str, *tables: str) -> list[tuple[Any, ...]]:
    """Run a query on tables of a lake, as they are; in a process of its own."""

    def answer() -> list[tuple[Any, ...]]:
        with connect() as connection:
            for name in tables:
                attach(connection, lake, name, lake.table(name))
            return connection.execute(query).fetchall()

    return in_process(answer)


def stored(lake: Lake) -> dict[str, int]:
    """Return how many rows tables of runs have, with those that do not count; in a process of its own."""
    with connect() as connection:
        for name in ("runs", *TABLES_OF_RUNS):
            attach(connection, lake, name, lake.table(name))
        return {
            name: len(connection.execute(f"SELECT 1 FROM {quoted(name)}").fetchall())
            for name in ("runs", *TABLES_OF_RUNS)
        }
