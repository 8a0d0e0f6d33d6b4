"""`xbuf label` and `xbuf forget` on a lake: as on a file, in one commit each, among writers and kills."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ingest.cli.forget import forget
from ingest.database.connect import open_database
from ingest.lake.compact import compact_lake
from ingest.lake.layout import LAKE_TABLES, RUNS_A_BATCH, TABLES_OF_RUNS
from ingest.lake.reading import open_to_read
from ingest.lake.store import Lake
from ingest.lake.vacuum import vacuum_lake
from ingest.maintenance.forget import Selection, forget_runs
from ingest.maintenance.label import label_runs
from tests.lake.test_upkeep import moved
from tests.support.lakes import Content, begin, end, in_process, load, steps, stored, visible

FIRST = RUNS_A_BATCH
LABELS = "SELECT run_id, key, value FROM run_labels ORDER BY ALL"


def ask(database: str, query: str) -> list[tuple[Any, ...]]:
    with open_to_read(database) as connection:
        return connection.execute(query).fetchall()


def commits(lake: Lake) -> int:
    return sum(lake.table(name).version() for name in LAKE_TABLES)


def test_labels_are_put_on_changed_and_taken_off_in_a_commit(lake: Lake, part: str) -> None:
    """What changes nothing makes no commit."""
    name = f"lake:{lake.root}"

    def work() -> list[object]:
        load(lake, part, team="a")
        before = commits(lake)
        runs = (FIRST, FIRST + 1)
        return [
            label_runs(name, runs, [("team", "a"), ("rank", "0")]),
            label_runs(name, runs[:1], [("rank", "1")], ["team", "none"]),
            label_runs(name, runs, [("nightly", "1")], ["nightly"]),
            commits(lake) - before,
            ask(name, LABELS),
        ]

    labels = [(FIRST, "rank", "1"), (FIRST + 1, "rank", "0"), (FIRST + 1, "team", "a")]
    assert in_process(work) == [2, 2, 0, 2, labels]


@pytest.mark.slow
def test_a_run_is_forgotten_and_comes_again(lake: Lake, part: str, whole: Content) -> None:
    """First it is only shown; its dump can be imported again."""
    words = ["--db", f"lake:{lake.root}", "--run", str(FIRST)]

    def work() -> tuple[str, str, list[Any], int, Content]:
        load(lake, part, team="a")
        shown = CliRunner().invoke(forget, words, standalone_mode=False).stdout
        done = CliRunner().invoke(forget, [*words, "--yes"], standalone_mode=False).stdout
        left = ask(f"lake:{lake.root}", "SELECT DISTINCT run_id FROM runs JOIN values USING (run_id)")
        return shown, done, left, load(lake, part, team="a").runs, visible(lake)

    shown, done, left, again, content = in_process(work)
    assert shown.startswith("would forget 1 run (")
    assert done.startswith("forgot 1 run (")
    assert (left, again) == ([(FIRST + 1,)], 1)
    assert content == whole


@pytest.mark.slow
def test_forgetting_is_killed_before_or_after_its_commit(lake: Lake, part: str) -> None:
    """All runs of the import are there with their rows, or none."""
    in_process(load, lake, part)

    def left_when_killed(moment: str) -> list[tuple[Any, ...]]:
        def work() -> None:
            steps(1, moment)()
            forget_runs(f"lake:{lake.root}", Selection(import_id=1))

        assert end(begin(work)) == -9
        return ask(
            f"lake:{lake.root}", "SELECT (SELECT count(*) FROM runs), count(DISTINCT run_id) FROM values"
        )

    assert left_when_killed("before") == [(2, 2)]
    assert left_when_killed("after") == [(0, 0)]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
def test_labelling_is_killed_before_or_after_its_commit(lake: Lake, part: str, moment: str) -> None:
    """All labels are there, or none; the same command again changes the rest."""
    in_process(load, lake, part)

    def work() -> int:
        return label_runs(f"lake:{lake.root}", (FIRST, FIRST + 1), [("a", "1"), ("b", "2")])

    assert end(begin(lambda: (steps(1, moment)(), work()))) == -9
    assert in_process(work) == (4 if moment == "before" else 0)
    assert len(ask(f"lake:{lake.root}", LABELS)) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "selection",
    [
        Selection(import_id=1),
        Selection(older_than=timedelta(0)),
        Selection(directory="/"),
        Selection(labels=(("jax", "0.10.2"),)),
        Selection(runs=(0,)),
    ],
)
def test_the_lake_forgets_what_a_file_with_its_runs_forgets(
    full_lake: Lake, exported_file: Path, tmp_path: Path, selection: Selection
) -> None:
    """Rejects too; compacted and vacuumed, no row of it is left in any file."""
    file = str(shutil.copy(exported_file, tmp_path / "file.duckdb"))
    name = f"lake:{full_lake.root}"
    with open_database(file, read_only=True) as connection:
        row = connection.execute("SELECT min(run_id), min(import_id) FROM runs").fetchone()
    assert row is not None
    if selection.runs:
        selection = Selection(runs=(row[0],))
    if selection.import_id:
        selection = Selection(import_id=row[1])
    tables = (*("runs", "rejects", "imports"), *TABLES_OF_RUNS)

    def work() -> tuple[Any, dict[str, int], dict[str, int]]:
        plan = forget_runs(name, selection)
        counts = {table: len(ask(name, f'SELECT 1 FROM "{table}"')) for table in tables}
        compact_lake(full_lake)
        vacuum_lake(full_lake, keep_hours=0)
        return plan, counts, stored(full_lake)

    plan, counts, left = in_process(work)
    assert plan == forget_runs(file, selection)
    with open_database(file, read_only=True) as connection:
        expected = {table: len(connection.execute(f'SELECT 1 FROM "{table}"').fetchall()) for table in tables}
    assert counts == expected
    assert left == {table: counts[table] for table in left}


@pytest.mark.slow
def test_several_forget_label_load_and_compact_at_once(
    lake: Lake, part: str, whole: Content, tmp_path: Path
) -> None:
    """In the end all runs are there once, with their rows, and with every label that was put on."""
    name = f"lake:{lake.root}"
    other = moved(part, tmp_path / "other")
    assert in_process(load, lake, other).runs == 2
    forgotten = Selection(directory=str(Path(part).parent / "dumps"))

    def label_again(key: str) -> None:
        for number in range(4):
            assert label_runs(name, (FIRST,), [(f"{key}{number}", "1")]) == 1

    def repeat(work: Callable[[], object]) -> Callable[[], object]:
        return lambda: [work() for _ in range(4)]

    work: tuple[Callable[[], object], ...] = (
        repeat(lambda: load(lake, part)),
        repeat(lambda: forget_runs(name, forgotten)),
        repeat(lambda: forget_runs(name, forgotten)),
        repeat(lambda: compact_lake(lake)),
        lambda: label_again("x"),
        lambda: label_again("y"),
    )
    assert [end(child) for child in [begin(one) for one in work]] == [0] * len(work)

    def look() -> Content:
        load(lake, part)
        return visible(lake)

    content = in_process(look)
    rows = {table: 2 * of_one.total() for table, of_one in whole.items()}
    assert {table: found.total() for table, found in content.items()} == {**rows, "run_labels": 8}
