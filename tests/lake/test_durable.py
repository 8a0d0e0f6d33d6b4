"""What a step of a batch counts on is on disk before it: a power failure takes nothing that was reported."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import ingest.lake.batch as batch_module
import ingest.lake.commit as commit_module
import ingest.lake.load as load_module
import ingest.lake.transactions as transactions
from ingest.errors import DatabaseError
from ingest.lake.commit import complete_all
from ingest.lake.compact import compact_lake
from ingest.lake.create import create_lake
from ingest.lake.store import Lake
from tests.support.lakes import Content, in_process, load, visible


class Disk:
    """Knows which files of a folder were synced, by watching `os.fsync`."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)
        self._known = set(self._files())
        self._synced: dict[str, int] = {}
        self._turn = count(1)
        self._real = os.fsync
        vars(os)["fsync"] = self._fsync

    def _files(self) -> list[Path]:
        return [path for path in self._root.rglob("*") if path.is_file()]

    def _fsync(self, descriptor: int) -> None:
        self._real(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self._synced[path] = next(self._turn)

    def lacks(self) -> set[str]:
        """Return the new files that a power failure could take, or their names."""
        return {
            str(path.relative_to(self._root))
            for path in self._files()
            if path not in self._known
            and not 0 < self._synced.get(str(path), 0) < self._synced.get(str(path.parent), 0)
        }


def test_each_step_finds_on_disk_what_it_counts_on(lake: Lake, part: str) -> None:
    """The object of a batch its files; the runs their rows; the removal of the object all."""

    def work() -> list[tuple[str, set[str]]]:
        disk = Disk(lake.root)
        found = []

        def looking(real: Callable[..., Any], what: Callable[..., str]) -> Callable[..., Any]:
            def step(*arguments: Any) -> Any:
                found.append((what(*arguments), disk.lacks()))
                return real(*arguments)

            return step

        vars(transactions)["_commit"] = looking(transactions._commit, lambda _, name, *__: name)
        vars(load_module)["publish"] = looking(batch_module.publish, lambda *_: "object")
        vars(commit_module)["remove_batch"] = looking(batch_module.remove_batch, lambda *_: "removal")
        load(lake, part, team="a")
        return [*found, ("end", disk.lacks())]

    steps = in_process(work)
    assert [name for name, _ in steps if name in ("object", "runs", "removal", "end")] == [
        "object",
        "runs",
        "removal",
        "end",
    ]
    assert [(name, lacks) for name, lacks in steps if lacks] == []


@pytest.mark.slow
def test_a_lake_is_on_disk_when_it_is_made_and_compacted(lake: Lake, tmp_path: Path) -> None:
    """With the checkpoints, without which a log that is named by one cannot be read."""

    def work() -> tuple[set[str], set[str]]:
        made = Lake(str(tmp_path / "new"), True)
        disk = Disk(made.root)
        create_lake(made)
        lacks = disk.lacks()
        disk = Disk(lake.root)
        compact_lake(lake)
        return lacks, disk.lacks()

    assert in_process(work) == (set(), set())


@pytest.mark.slow
@pytest.mark.parametrize("table", ["values", "runs", "imports"])
def test_a_commit_whose_entry_a_power_failure_left_empty_is_done_again(
    lake: Lake, part: str, whole: Content, table: str
) -> None:
    """The object is on disk then, and whoever comes completes the batch."""

    def work() -> Content:
        def fail(real: Callable[..., Any]) -> Callable[..., Any]:
            def commit(lake: Lake, name: str, *arguments: Any) -> Any:
                is_committed = real(lake, name, *arguments)
                if name == table and arguments[1].batch is not None:
                    entry = max(Path(lake.url(name), "_delta_log").glob("*.json"))
                    entry.write_bytes(b"")
                    raise ConnectionAbortedError
                return is_committed

            return commit

        real = transactions._commit
        vars(transactions)["_commit"] = fail(real)
        with pytest.raises(ConnectionAbortedError):
            load(lake, part, team="a")
        vars(transactions)["_commit"] = real
        assert complete_all(lake) == 1
        return visible(lake)

    assert in_process(work) == whole


@pytest.mark.parametrize(
    ("is_checkpoint", "remedy"),
    [
        (True, "runs/_delta_log/_last_checkpoint, without which"),
        (False, "from a copy of .*runs/_delta_log: "),
    ],
)
def test_a_log_that_cannot_be_read_is_named_with_a_remedy(
    lake: Lake, is_checkpoint: bool, remedy: str
) -> None:
    """A cut checkpoint costs nothing: Delta reads the entries before it."""

    def work() -> str:
        table = lake.table("runs")
        log = Path(lake.url("runs"), "_delta_log")
        if is_checkpoint:
            table.create_checkpoint()
            next(log.glob("*.checkpoint.parquet")).write_bytes(b"")
        else:
            entry = next(log.glob("*.json"))
            entry.write_bytes(entry.read_bytes()[:100])
        with pytest.raises(DatabaseError) as caught:
            lake.table("runs")
        if is_checkpoint:
            (log / "_last_checkpoint").unlink()
            assert lake.table("runs").version() == 0
        return str(caught.value)

    said = in_process(work)
    assert re.search(remedy, said)
    assert len(said.splitlines()) == 1
