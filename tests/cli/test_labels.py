"""Labels after an import, and the trend of a peak over them."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest
from click.testing import CliRunner, Result

from ingest.cli.ingest import ingest
from ingest.cli.xbuf import xbuf
from ingest.compare.trend import Point, as_svg, jump, read_trend
from ingest.database.connect import create, open_database
from ingest.errors import UsageError
from ingest.pipeline.importer import import_dumps
from ingest.pipeline.labels import Labelling, lacking_labels
from tests.support.query_databases import GOLDEN

Run = Callable[..., Result]
BATCHES = {"night-1/rank0": "batch-8", "night-1/rank1": "batch-16", "night-2/rank0": "batch-32"}


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Dumps of one module in folders of nights and ranks."""
    for place, batch in BATCHES.items():
        shutil.copytree(GOLDEN / "dumps" / batch, tmp_path / "dumps" / place)
    return tmp_path / "dumps"


@pytest.fixture
def run(database: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `xbuf ...` or `xbuf-ingest ...` on a database of its own."""
    monkeypatch.setenv("XBUF_DB", str(database))

    def run_(*words: str) -> Result:
        command = xbuf if words[0] == "xbuf" else ingest
        return CliRunner().invoke(command, list(words[1:]), standalone_mode=False)

    return run_


@pytest.fixture(scope="module")
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loaded")
    for place, batch in BATCHES.items():
        shutil.copytree(GOLDEN / "dumps" / batch, folder / place)
    create(folder / "xbuf.duckdb", with_queries=True)
    import_dumps([folder], folder / "xbuf.duckdb", jobs=1)
    return folder / "xbuf.duckdb"


@pytest.fixture
def loaded(_loaded: Path, database: Path) -> Path:
    """The database of `run`, into which these dumps were loaded without labels."""
    return Path(shutil.copy(_loaded, database))


def labels(database: Path) -> list[str]:
    """List all labels as place: key=value."""
    with duckdb.connect(str(database), read_only=True) as connection:
        rows = connection.execute(
            "SELECT regexp_extract(dump_dir, 'night-.*') || ': ' || key || '=' || value"
            " FROM run_labels JOIN runs USING (run_id) ORDER BY ALL"
        ).fetchall()
    return [text for (text,) in rows]


def test_an_import_labels_what_it_finds_unchanged(run: Run, database: Path, dumps: Path) -> None:
    """A label that was forgotten is added by the same command once more; others stay."""
    run("ingest", str(dumps / "night-1"), "--jobs", "1")
    assert labels(database) == []
    run("ingest", str(dumps), "--label", "jax=0.10.2", "--jobs", "1")
    assert labels(database) == [f"{place}: jax=0.10.2" for place in BATCHES]
    run("ingest", str(dumps / "night-2"), "--label", "jax=0.11.0", "--jobs", "1")
    assert labels(database)[2] == "night-2/rank0: jax=0.11.0"
    assert labels(database)[:2] == ["night-1/rank0: jax=0.10.2", "night-1/rank1: jax=0.10.2"]


def test_labels_are_taken_from_paths(run: Run, database: Path, dumps: Path) -> None:
    """Named groups are keys; what does not match gets none."""
    run("ingest", str(dumps), "--label-from", r"night-(?P<night>1)/rank(?P<rank>\d+)", "--jobs", "1")
    assert labels(database) == [
        "night-1/rank0: night=1", "night-1/rank0: rank=0", "night-1/rank1: night=1", "night-1/rank1: rank=1",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_library_labels_as_the_command_does(database: Path, dumps: Path, tmp_path: Path) -> None:
    """Dumps that are unchanged too, fixed labels first, and before the snapshot is made."""
    snapshot = tmp_path / "snapshot.duckdb"
    import_dumps([dumps], database, jobs=1)
    again = import_dumps(
        [dumps],
        database,
        labels={"night": "last"},
        label_from=re.compile(r"night-(?P<night>2)/rank(?P<rank>\d+)|(?P<odd>rank1)"),
        publish=snapshot,
        jobs=1,
    )
    assert (again.loaded, again.unchanged) == (0, 3)
    expected = [
        "night-1/rank0: night=last", "night-1/rank1: night=last", "night-1/rank1: odd=rank1",
        "night-2/rank0: night=last", "night-2/rank0: rank=0",
    ]  # fmt: skip
    assert labels(database) == labels(snapshot) == expected


def test_labels_that_are_there_are_not_written_again(database: Path, dumps: Path) -> None:
    """So a scheduled import with labels and without news is one without news."""
    pattern = r"(?P<rank>rank\d)"
    import_dumps([dumps], database, label_from=pattern, jobs=1)
    with open_database(database, read_only=True) as connection:
        places = connection.execute("SELECT dump_dir, stem FROM runs ORDER BY ALL").fetchall()
        assert lacking_labels(connection, places, Labelling(pattern=pattern)) == []
        lacking = lacking_labels(connection, places[:2], Labelling((("rank", "rank0"),), pattern))
    assert [(key, value) for _, key, value in lacking] == [("rank", "rank0")]


@pytest.mark.slow
def test_what_a_killed_import_has_read_is_labelled_by_the_next(
    database: Path, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that one has no labels of its own: they are kept with what was read."""

    def strike(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ingest.pipeline.importer._Import.load", strike)
        with pytest.raises(KeyboardInterrupt):
            import_dumps([dumps / "night-1"], database, label_from=r"(?P<rank>rank\d)", jobs=1)
    assert labels(database) == []
    import_dumps([dumps / "night-2"], database, jobs=1)
    assert labels(database) == ["night-1/rank0: rank=rank0", "night-1/rank1: rank=rank1"]


@pytest.mark.parametrize(
    ("pattern", "said"), [("rank(", "no regular expression"), (r"\d+", "no named group")]
)
def test_a_wrong_pattern_is_refused(run: Run, dumps: Path, pattern: str, said: str) -> None:
    """Before anything is read."""
    assert said in str(run("ingest", str(dumps), "--label-from", pattern).exception)


def test_runs_are_labelled_later(run: Run, loaded: Path) -> None:
    """By references; a key has one value, and can be taken off."""
    assert run("xbuf", "label", "night-1/rank0", "night-1/rank1", "jax=1", "job=a").stdout.startswith(
        "2 runs, 4 "
    )
    assert run("xbuf", "label", "night-1/rank1", "jax=2").stdout.startswith("1 run, 1 ")
    assert labels(loaded) == [
        "night-1/rank0: jax=1", "night-1/rank0: job=a", "night-1/rank1: jax=2", "night-1/rank1: job=a",
    ]  # fmt: skip
    assert run("xbuf", "label", "latest", "--remove", "job").stdout.startswith("3 runs, 2 ")
    assert labels(loaded) == ["night-1/rank0: jax=1", "night-1/rank1: jax=2"]


@pytest.mark.usefixtures("loaded")
def test_label_wants_runs_and_something_to_change(run: Run) -> None:
    """Neither a label alone nor runs alone do anything."""
    for words in ("jax=1", "latest"):
        assert isinstance(run("xbuf", "label", words).exception, UsageError)


def test_a_trend_is_in_order_of_version(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Of the label as numbers, 8 before 16; the greatest growth is the jump."""
    points = read_trend(demonstration, "jit_step", "batch")
    assert [point.at for point in points] == ["8", "16", "32"]
    assert [point.change_bytes for point in points] == [None, 131072, 262144]
    assert jump(points) == 2
    assert [point.at for point in read_trend(demonstration, "jit_step")] == ["5", "6", "9"]
    with pytest.raises(UsageError, match="did you mean jit_step"):
        read_trend(demonstration, "jit_stepp")
    with pytest.raises(UsageError, match="has a label 'jax'"):
        read_trend(demonstration, "jit_step", "jax")


def test_a_peak_that_never_grows_has_no_jump() -> None:
    """Nor has a single point."""
    assert jump([Point("1", 1, 10, None), Point("2", 2, 8, -2), Point("3", 3, 8, 0)]) is None
    assert jump([Point("1", 1, 10, None)]) is None


def test_a_picture_holds_names_as_text() -> None:
    """Whatever a label holds, the picture is well-formed, with a dot for each point."""
    points = [Point("<b>&\x1b", 1, 10, None), Point("2", 2, 20, 10)]
    root = ElementTree.fromstring(as_svg(points, "jit_<x>\x00"))
    assert len(root.findall("{http://www.w3.org/2000/svg}circle")) == 2


@pytest.mark.slow
def test_a_trend_is_written_to_files(run: Run, dumps: Path, tmp_path: Path) -> None:
    """As CSV with the jump, and as a picture; the terminal names the command that explains it."""
    for place in BATCHES:
        run("ingest", str(dumps / place), "--jobs", "1")
    assert run("xbuf", "trend", "jit_step").stdout.splitlines()[-1] == "what grew: xbuf diff 2 3"
    run("xbuf", "trend", "jit_step", "-o", str(tmp_path / "t.csv"))
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [(row["at"], row["is_jump"]) for row in rows] == [("1", "false"), ("2", "false"), ("3", "true")]
    run("xbuf", "trend", "jit_step", "-o", str(tmp_path / "t.svg"))
    assert ElementTree.parse(tmp_path / "t.svg").getroot().tag.endswith("svg")
    assert isinstance(run("xbuf", "trend", "jit_step", "-o", "t.pdf").exception, UsageError)
