"""`xbuf-ingest --lake`: the same import, another place for its runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ingest.pipeline.importer as importer
from ingest import ImportSummary, import_dumps
from ingest.cli.ingest import ingest
from ingest.errors import SourceError
from ingest.lake.store import Lake
from ingest.source.apart import has_read
from tests.lake.conftest import TWO_RUNS
from tests.support.dump_sets import DATA, settle
from tests.support.lakes import ask, begin, die, end, in_process

SEEDS = DATA / "seeds"


def settled_copy(target: Path) -> Path:
    """Copy two dumps, with times long past."""
    shutil.copytree(TWO_RUNS, target)
    return settle(target)


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Two dumps."""
    return settled_copy(tmp_path / "dumps")


def load(lake: Lake, dumps: Path, **options: Any) -> ImportSummary:
    return import_dumps(dumps, lake=lake.root, staging=f"{lake.root}-staging", jobs=0, **options)


def test_an_import_and_another_that_finds_nothing_new(lake: Lake, dumps: Path) -> None:
    """The second opens no dump and writes nothing; a third with a label puts that on."""

    def work() -> tuple[ImportSummary, ImportSummary, ImportSummary, bool]:
        first = load(lake, dumps)
        vars(importer)["read_tasks"] = lambda tasks, *_, **__: tasks and 1 / 0
        before = sorted(Path(lake.root).rglob("*"))
        again = load(lake, dumps)
        is_untouched = sorted(Path(lake.root).rglob("*")) == before
        return first, again, load(lake, dumps, labels={"team": "a"}), is_untouched

    first, again, labelled, is_untouched = in_process(work)
    assert (first.database, first.import_id, first.loaded, first.status) == (lake.root, 1, 2, "ok")
    assert (again.loaded, again.unchanged, again.import_id) == (0, 2, None)
    assert is_untouched
    assert labelled.unchanged == 2
    assert ask(lake, "SELECT key, value FROM run_labels", "run_labels") == [("team", "a")] * 2
    # The import that found nothing new is in the history now.
    history = "SELECT import_id, loaded, unchanged FROM imports ORDER BY started_at"
    assert ask(lake, history, "imports") == [(1, 2, 0), (2, 0, 2), (3, 0, 2)]


@pytest.mark.slow
def test_what_another_writer_brought_meanwhile_is_unchanged(lake: Lake, dumps: Path) -> None:
    """Summary and history count it so, and still add up to what was found."""

    def work() -> tuple[ImportSummary, ImportSummary]:
        read_tasks, others = vars(importer)["read_tasks"], []

        def read_and_be_overtaken(*given: Any, **options: Any) -> None:
            read_tasks(*given, **options)
            vars(importer)["read_tasks"] = read_tasks
            others.append(import_dumps(dumps, lake=lake.root, staging=f"{lake.root}-other", jobs=0))

        vars(importer)["read_tasks"] = read_and_be_overtaken
        return load(lake, dumps), others[0]

    mine, other = in_process(work)
    assert (other.found, other.loaded, other.unchanged) == (2, 2, 0)
    assert (mine.found, mine.loaded, mine.unchanged) == (2, 0, 2)
    assert sorted(ask(lake, "SELECT found, loaded, unchanged FROM imports", "imports")) == [
        (2, 0, 2), (2, 2, 0),
    ]  # fmt: skip


def add_damaged(folder: Path) -> Path:
    """Put a dump there whose printed total is wrong."""
    folder.mkdir()
    seed = next(path for path in sorted(SEEDS.iterdir()) if "Total bytes used: " in path.read_text())
    damaged = folder / seed.name
    damaged.write_text(seed.read_text().replace("Total bytes used: ", "Total bytes used: 9"))
    os.utime(damaged, (1_700_000_000, 1_700_000_000))
    return folder


@pytest.mark.slow
def test_several_imports_on_one_machine_with_workers(lake: Lake, dumps: Path) -> None:
    """Each has a staging folder of its own; what one left that was killed, another takes over."""
    sources = [dumps, add_damaged(dumps.parent / "damaged")]

    def run(**options: Any) -> ImportSummary:
        return import_dumps(sources, lake=lake.root, staging=f"{lake.root}-staging", jobs=2, **options)

    def killed() -> None:
        vars(importer)["_Import"].load = lambda self: die()
        run()

    assert end(begin(killed)) == -9
    children = [begin(run) for _ in range(3)]
    assert [end(child) for child in children] == [0, 0, 0]
    assert ask(lake, "SELECT count(*) FROM runs", "runs") == [(2,)]
    assert ask(lake, "SELECT count(*) FROM imports WHERE loaded = 2", "imports") == [(1,)]
    assert not list(Path(f"{lake.root}-staging").glob("*/2*"))
    last = run()
    assert (last.unchanged, last.status, last.import_id) == (2, "rejects", None)
    rejects = ask(lake, "SELECT DISTINCT kind FROM rejects", "rejects")
    assert len(rejects) == 1


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--lake", "s3://u:SECRET@b/x"], 3, "environment"),
        (["--lake", "/somewhere", "--publish", "/x"], 2, "snapshot"),
        (["--lake", "/somewhere", "--db", "x.duckdb"], 2, "one of them"),
        (["--staging", "/somewhere"], 2, "staging folder"),
    ],
)
def test_what_is_refused(dumps: Path, options: list[str], code: int, said: str) -> None:
    """In one line, before anything is read."""
    result = CliRunner().invoke(ingest, [str(dumps), *options], standalone_mode=False)
    said_so = str(result.exception)
    assert getattr(result.exception, "exit_code", None) == code
    assert said in said_so
    assert "SECRET" not in said_so
    assert result.stdout == ""


def test_a_process_that_has_opened_a_lake_in_a_folder_forks_nothing_that_opens_one(lake: Lake) -> None:
    """A child would wait for ever for threads of deltalake's, or die with its panic."""

    def work() -> tuple[bool, str]:
        lake.table("runs")
        reading, writing = os.pipe()
        child = begin(lambda: os.write(writing, told().encode()))
        assert end(child) == 0
        return has_read(), os.read(reading, 1000).decode()

    def told() -> str:
        with pytest.raises(SourceError) as caught:
            lake.table("runs")
        return str(caught.value)

    works_itself, said = in_process(work)
    assert works_itself
    assert "opened a lake itself" in said


@pytest.mark.slow
@pytest.mark.parametrize("use", ["lake", "library"])
def test_workers_of_a_process_that_has_opened_a_lake_in_a_folder_are_new_programs(
    lake: Lake, dumps: Path, use: str
) -> None:
    """By xbuf or by deltalake alone."""

    def refuse() -> int:
        raise AssertionError("forked")

    def work() -> int:
        if use == "lake":
            lake.table("runs")
        else:
            from deltalake import DeltaTable

            DeltaTable(lake.url("runs"))
        os.fork = refuse
        return import_dumps(dumps, lake=lake.root, staging=f"{lake.root}-staging", jobs=1).loaded

    assert in_process(work) == 2
