"""A batch comes whole, once, and whoever finds it half done completes it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from ingest.database.ddl import creation
from ingest.database.revision import HEAD
from ingest.lake.batch import Abandoned, Batch, abandon, open_batches, publish
from ingest.lake.commit import complete_all
from ingest.lake.layout import RUNS_A_BATCH, TABLES_OF_RUNS
from ingest.lake.store import Lake
from ingest.lake.transactions import take_number
from ingest.pipeline.load import load_parts
from tests.support.lakes import Content, ask, begin, end, in_process, load, stage, steps, visible


def test_a_lake_gets_the_rows_that_a_file_gets(lake: Lake, part: str) -> None:
    """Row for row and value for value, in every table."""
    first = in_process(load, lake, part)
    assert first == (1, 2)
    seen = in_process(visible, lake)
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(creation(HEAD))
        connection.begin()
        load_parts(connection, [part], 1)
        for name in ("runs", *TABLES_OF_RUNS):
            rows = connection.execute(
                f'SELECT r.stem, x.* EXCLUDE (run_id) FROM "{name}" AS x JOIN runs AS r USING (run_id)'
                if name != "runs"
                else "SELECT * EXCLUDE (run_id, import_id, ingested_at) FROM runs"
            ).fetchall()
            assert seen[name] == {tuple(map(repr, row)): rows.count(row) for row in rows}, name
    [row] = ask(lake, "SELECT import_id, status, loaded, import_uuid FROM imports", "imports")
    assert row == (1, "ok", 2, "one")
    numbers = ask(lake, "SELECT run_id FROM runs ORDER BY run_id", "runs")
    assert numbers == [(RUNS_A_BATCH,), (RUNS_A_BATCH + 1,)]


@pytest.mark.slow
def test_the_same_part_twice_is_one(lake: Lake, part: str) -> None:
    """Nothing is written for runs that are there."""

    def twice() -> list[int]:
        return [load(lake, part).runs, load(lake, part).runs]

    assert in_process(twice) == [2, 0]
    assert ask(lake, "SELECT count(*) FROM values", "values") == ask(
        lake, "SELECT count(*) FROM values JOIN runs USING (run_id)", "values", "runs"
    )


def survive_a_kill(lake: Lake, part: str, whole: Content, arm: Callable[[], None]) -> int:
    """Kill a load at a step, complete what it began, load again; return how the first one ended.

    Runs are never visible without their rows, and in the end all is there once.
    """

    def killed() -> None:
        arm()
        load(lake, part, team="a")

    code = end(begin(killed))

    def look() -> tuple[Content, int, Content]:
        before = visible(lake)
        complete_all(lake)
        again = load(lake, part, team="a").runs
        return before, again, visible(lake)

    before, again, after = in_process(look)
    assert before == (whole if before["runs"] else {name: Counter() for name in whole})
    assert after == whole
    assert again in (0, 2)
    assert not in_process(open_batches, lake)
    assert ask(lake, "SELECT count(*), count(DISTINCT import_uuid) FROM imports", "imports")[0][1] == 1
    return code


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "every", [pytest.param(False, marks=pytest.mark.slow), pytest.param(True, marks=pytest.mark.long)]
)
def test_a_writer_killed_at_every_step(
    empty_lake: Path, part: str, whole: Content, tmp_path: Path, moment: str, *, every: bool
) -> None:
    """At each commit, at the object and at its removal, until no step is left.

    In the slow run at one of each kind: of the commits of tables, which differ by their table, at two. What
    is there after one of them is there before the next, but for a file that nothing names.
    """
    last = sum(1 for rows in whole.values() if rows) + len(["number", "object", "imports", "removal"])
    some = {"before": [1, 2, 3, last - 2, last - 1, last, last + 1], "after": [2, last // 2, last]}
    numbers = range(1, last + 2) if every else some[moment]

    def code_at(number: int) -> int:
        root = shutil.copytree(empty_lake, tmp_path / str(number))
        code = survive_a_kill(Lake(str(root), True), part, whole, steps(number, moment))
        shutil.rmtree(root)
        return code

    assert [code_at(number) for number in numbers] == [-9 if number <= last else 0 for number in numbers]


@pytest.mark.slow
def test_a_batch_that_two_complete_at_once_comes_once(lake: Lake, part: str, whole: Content) -> None:
    """Whoever comes second at a step finds it done."""
    assert end(begin(lambda: (steps(2, "after")(), load(lake, part, team="a")))) == -9
    assert in_process(open_batches, lake) == [1]
    children = [begin(lambda: complete_all(lake)) for _ in range(2)]
    assert [end(child) for child in children] == [0, 0]
    assert in_process(visible, lake) == whole
    assert ask(lake, "SELECT import_id, loaded FROM imports", "imports") == [(1, 2)]
    assert not in_process(open_batches, lake)


@pytest.mark.slow
def test_the_race_for_the_same_dumps(lake: Lake, part: str, whole: Content) -> None:
    """Several processes load the same runs at once, again and again: each is there once, with its rows."""

    def contend() -> None:
        for _ in range(3):
            load(lake, part, team="a")

    children = [begin(contend) for _ in range(4)]
    assert [end(child) for child in children] == [0] * 4
    assert in_process(visible, lake) == whole
    [row] = ask(lake, "SELECT count(DISTINCT import_id), sum(loaded) FROM imports", "imports")
    assert row == (12, 2)


@pytest.mark.slow
def test_a_set_that_gains_files_takes_the_place_of_its_run(
    lake: Lake, part: str, lesser_part: str, whole: Content
) -> None:
    """It has another number and keeps the labels; nobody sees both or none."""

    def twice() -> tuple[int, int, int]:
        first = load(lake, lesser_part, team="a")
        second = load(lake, part)
        return first.runs, second.runs, load(lake, lesser_part).runs

    assert in_process(twice) == (2, 2, 0)
    assert in_process(visible, lake) == whole
    numbers = ask(lake, "SELECT run_id FROM runs ORDER BY run_id", "runs")
    assert numbers == [(2 * RUNS_A_BATCH,), (2 * RUNS_A_BATCH + 1,)]


@pytest.mark.slow
def test_replace_drops_the_older_runs_of_the_same_places(
    lake: Lake, part: str, tmp_path: Path, whole: Content
) -> None:
    """Of one dump with other content the old run goes, of the other one nothing."""
    dumps = Path(part).parent / "dumps"
    values = next(dumps.glob("module_1990*-values.txt"))
    kept = values.read_bytes()
    try:
        values.write_bytes(kept + b"\n")
        other = stage(dumps, tmp_path / "part")
    finally:
        values.write_bytes(kept)

    def twice() -> tuple[int, int]:
        return load(lake, part).runs, load(lake, other, replace=True).runs

    assert in_process(twice) == (2, 1)
    assert in_process(visible, lake)["ranges"] == whole["ranges"]
    numbers = ask(lake, "SELECT run_id FROM runs ORDER BY run_id", "runs")
    assert [int(str(number)) // RUNS_A_BATCH for (number,) in numbers] == [1, 2]


def test_a_writer_that_slept_too_long_is_refused(lake: Lake, part: str) -> None:
    """A vacuum gives up what has no object; its writer must begin anew."""

    def slept() -> str:
        number = take_number(lake)
        assert abandon(lake, number)
        with pytest.raises(Abandoned) as caught:
            publish(lake, Batch(number, {"import_id": number}))
        assert complete_all(lake) == 0
        return str(caught.value)

    assert "run again" in in_process(slept)
    assert in_process(load, lake, part) == (2, 2)


def test_a_batch_with_an_object_is_not_given_up(lake: Lake) -> None:
    """It is sure to come."""

    def publish_first() -> bool:
        publish(lake, Batch(take_number(lake), None))
        return abandon(lake, 1)

    assert in_process(publish_first) is False


def test_numbers_are_taken_once(lake: Lake) -> None:
    """By two processes at the same time."""

    def take() -> list[int]:
        return [take_number(lake) for _ in range(5)]

    child = begin(take)
    mine = in_process(take)
    assert end(child) == 0
    assert in_process(take_number, lake) == 11
    assert len(set(mine)) == 5
