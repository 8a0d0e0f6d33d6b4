"""Compaction, vacuum and checks, while others write and read."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import ingest.lake.compact as compact_module
from ingest.cli.lake import lake as lake_command
from ingest.errors import DatabaseError
from ingest.lake.batch import Abandoned, Batch, publish
from ingest.lake.commit import complete_all
from ingest.lake.compact import compact_lake
from ingest.lake.snapshot import listed
from ingest.lake.store import Lake
from ingest.lake.vacuum import vacuum_lake
from ingest.lake.verify import verify_lake
from tests.support.lakes import Content, begin, end, in_process, load, steps, stored, visible


@pytest.mark.slow
def test_compaction_drops_the_rows_of_runs_that_are_no_more(lake: Lake, part: str, lesser_part: str) -> None:
    """What is visible stays; a vacuum then leaves one file a table, and nothing is found amiss."""

    def work() -> tuple[Content, Content, dict[str, int], int]:
        load(lake, lesser_part, team="a")
        load(lake, part)
        before = visible(lake)
        dropped = compact_lake(lake).dropped_rows
        again = compact_lake(lake)
        assert again.dropped_rows == 0
        assert again.files_before == again.files_after
        removed = vacuum_lake(lake, keep_hours=0).files
        assert verify_lake(lake) == []
        assert removed > dropped > 0 or dropped > removed > 0
        return before, visible(lake), stored(lake), len(listed(lake.table("values")))

    before, after, there, files = in_process(work)
    assert after == before
    assert there == {name: rows.total() for name, rows in before.items()}
    assert files == len(list(Path(lake.url("values")).glob("*.parquet"))) == 1


@pytest.mark.slow
def test_compaction_keeps_the_rows_of_a_batch_under_way(lake: Lake, part: str, whole: Content) -> None:
    """They come before their runs."""
    assert end(begin(lambda: (steps(12, "after")(), load(lake, part, team="a")))) == -9

    def work() -> Content:
        # As if the batch had begun just after the compaction looked for batches to complete.
        vars(compact_module)["complete_all"] = lambda lake: 0
        assert stored(lake)["values"] > 0
        assert compact_lake(lake).dropped_rows == 0
        assert vacuum_lake(lake, keep_hours=0, dry_run=True).files == 0
        assert complete_all(lake) == 1
        return visible(lake)

    assert in_process(work) == whole


@pytest.mark.slow
def test_a_vacuum_blocks_the_way_of_a_writer_that_sleeps(lake: Lake, part: str, whole: Content) -> None:
    """It had written its files, but no object: the next import begins anew, and so must the sleeper."""
    assert end(begin(lambda: (steps(2, "before")(), load(lake, part, team="a")))) == -9

    def work() -> Content:
        assert vacuum_lake(lake, keep_hours=1).files == 0
        assert vacuum_lake(lake, keep_hours=0).files > 10
        with pytest.raises(Abandoned):
            publish(lake, Batch(1, {"import_id": 1}))
        assert load(lake, part, team="a") == (2, 2)
        assert verify_lake(lake) == []
        return visible(lake)

    assert in_process(work) == whole


def test_what_is_gone_or_cut_off_is_found(lake: Lake, part: str) -> None:
    """With exit code 1; what is under way, or waits for a vacuum, is no trouble."""
    in_process(load, lake, part)
    [gone] = Path(lake.url("values")).glob("*.parquet")
    [cut] = Path(lake.url("uses")).glob("*.parquet")
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])

    def run() -> tuple[int, str]:
        result = CliRunner().invoke(lake_command, ["verify", lake.root], standalone_mode=False)
        return int(result.return_value), result.stdout

    code, text = in_process(run)
    assert code == 1
    assert f"trouble: values: {gone.name} is gone" in text
    assert f"trouble: uses: {cut.name} has" in text


def moved(part: str, target: Path) -> str:
    """Copy a part as if its dumps lay in another folder."""
    shutil.copytree(part, target)
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            f"COPY (SELECT * REPLACE ('{target}' AS dump_dir) FROM '{part}/runs.parquet')"
            f" TO '{target}/runs.parquet' (FORMAT parquet)"
        )
    return str(target)


@pytest.mark.slow
def test_two_writers_one_killed_again_and_again_during_compactions_and_vacuums(
    lake: Lake, part: str, whole: Content, tmp_path: Path
) -> None:
    """In the end all is there once, and nothing else is."""
    parts = [moved(part, tmp_path / f"part-{number}") for number in range(6)]

    def write(some: list[str]) -> None:
        for one in some:
            try:
                load(lake, one, team="a")
            except DatabaseError:  # a vacuum that keeps nothing took what it was reading
                continue

    def die_at(number: int) -> None:
        steps(number, "after" if number % 2 else "before")()
        write(parts[number % 3 :])

    def keep_order() -> None:
        for _ in range(4):
            try:
                compact_lake(lake)
                vacuum_lake(lake, keep_hours=0)
            except DatabaseError:
                continue

    order = begin(keep_order)
    steady = begin(lambda: write(parts[::2]))
    codes = [end(begin(partial(die_at, number))) for number in range(1, 24, 5)]
    assert codes.count(-9) > 2
    assert end(steady) == 0
    assert end(order) == 0

    def look() -> Content:
        for one in parts:
            load(lake, one, team="a")
        compact_lake(lake)
        vacuum_lake(lake, keep_hours=0)
        assert verify_lake(lake) == []
        return visible(lake)

    seen = {name: rows.total() for name, rows in in_process(look).items()}
    assert seen == {name: len(parts) * rows.total() for name, rows in whole.items()}
    assert in_process(stored, lake) == seen
