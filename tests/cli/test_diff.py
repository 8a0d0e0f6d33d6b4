"""`xbuf diff` and the references to runs that every command takes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from ingest.cli.xbuf import xbuf
from ingest.compare.comparison import Comparison, compare
from ingest.database.connect import open_database
from ingest.errors import UsageError
from ingest.query.cells import display_width
from ingest.query.references import resolve, resolve_one
from tests.support.completion import complete
from tests.support.query_databases import GOLDEN

pytestmark = pytest.mark.usefixtures("demonstration_kept_open")

SMALL, LARGE = str(GOLDEN / "dumps/batch-8"), str(GOLDEN / "dumps/batch-32")
Run = Callable[..., Result]
Compare = Callable[[duckdb.DuckDBPyConnection, Sequence[int], Sequence[int]], Comparison]


@pytest.fixture(scope="module")
def compare_once() -> Compare:
    """Compare the same runs of the same database once: it takes most of the time of `xbuf diff`."""
    made: dict[tuple[object, ...], Comparison] = {}

    def compare_(
        connection: duckdb.DuckDBPyConnection, before: Sequence[int], after: Sequence[int]
    ) -> Comparison:
        files = connection.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
        runs = (*files, tuple(before), tuple(after))
        if runs not in made:
            made[runs] = compare(connection, before, after)
        return made[runs]

    return compare_


@pytest.fixture
def xbuf_(own_demonstration: Path, compare_once: Compare, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `xbuf ...` on the demonstration, 80 columns wide."""
    monkeypatch.setattr("ingest.compare.comparison.compare", compare_once)
    monkeypatch.setenv("XBUF_DB", str(own_demonstration))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(xbuf, list(arguments), prog_name="xbuf", standalone_mode=False)

    return run


def test_80_columns_say_what_grew(xbuf_: Run) -> None:
    """Operation, shapes and source line of each row are there; nothing is wider than the terminal."""
    done = xbuf_("diff", "jit_step@batch=8", "jit_step@batch=32")
    lines = done.stdout.splitlines()
    assert max(map(display_width, lines)) <= 80
    row = next(number for number, line in enumerate(lines) if "layer/dot_general" in line)
    assert "+96.0 KiB  resized  layer/dot_general (likely)" in lines[row]
    assert lines[row + 1].split() == ["f32[8,1024]", "->", "f32[32,1024]", "/home/user/train/step.py:10"]
    assert "the live peak grows by 384.0 KiB to 4.50 MiB" in done.stdout


def test_a_url_is_read_as_dumps(xbuf_: Run) -> None:
    """It is looked for in no database."""
    done = xbuf_("diff", "ftp://user:word@host/dumps", SMALL, "--db", "gone.duckdb")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("ftp://host/dumps: dumps are read from s3://")


def test_what_is_not_shown_is_added_up(xbuf_: Run) -> None:
    """With fewer rows than there are, a last one holds the others: the sum stays that of the change."""
    done = xbuf_("diff", "batch=8", "batch=32", "--top", "1")
    assert "+288.0 KiB  in 3 smaller rows" in done.stdout
    assert "in 1 smaller row (" in xbuf_("diff", "batch=8", "batch=32", "--top", "3").stdout


def test_json_has_everything(xbuf_: Run) -> None:
    """Figures of both sides and all rows, which add up."""
    (pair,) = json.loads(xbuf_("diff", "batch=8", "batch=32", "--format", "json").stdout)["pairs"]
    figures = {figure["name"]: figure for figure in pair["figures"]}
    assert {"total", "resident peak", "live peak", "host", "temp", "unused in arenas"} <= figures.keys()
    peak = figures["live peak"]
    assert sum(row["change_bytes"] for row in pair["changes"]) == peak["change_bytes"] == 384 << 10
    assert pair["summary"] == (
        "the live peak grows by 384.0 KiB to 4.50 MiB; what grew most is add.6 of /home/user/train/step.py:11"
        " (layer/add, f32[32,1024]{1,0}), by 96.0 KiB"
    )
    temp = figures["temp"]
    assert (temp["before_bytes"], temp["after_bytes"]) == (65536, 262144)


def test_markdown_is_a_comment_for_a_pull_request(xbuf_: Run) -> None:
    """Nothing of a dump becomes markup."""
    text = xbuf_("diff", "batch=8", "batch=32", "--format", "markdown").stdout
    assert "### jit\\_step (cpu)" in text
    assert "| +96.0 KiB | resized | `layer/add` | `f32[8,1024] -> f32[32,1024]` |" in text


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("batch=8", "batch=32", 1),
        ("batch=8", "batch=8", 0),
        pytest.param(SMALL, SMALL, 0, marks=pytest.mark.slow, id="dumps-0"),
        pytest.param(SMALL, LARGE, 1, marks=pytest.mark.slow, id="dumps-1"),
    ],
)
def test_the_exit_code_says_whether_something_differs(xbuf_: Run, before: str, after: str, code: int) -> None:
    """As git diff: only on demand, and a run is equal to itself."""
    assert xbuf_("diff", before, after, "--exit-code").return_value == code
    if code:
        assert xbuf_("diff", before, after).return_value == 0


@pytest.mark.parametrize("is_file", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_dumps_are_compared_without_a_database(
    is_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two directories, or a file: nothing is written where the command runs, nor beside the dumps."""
    old, new = (
        Path(shutil.copytree(source, tmp_path / name)) for source, name in ((SMALL, "a"), (LARGE, "b"))
    )
    (file,) = new.iterdir()
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    before = sorted(tmp_path.rglob("*"))
    side = file if is_file else new
    done = CliRunner().invoke(xbuf, ["diff", str(old), str(side), "--format", "json"], standalone_mode=False)
    (pair,) = json.loads(done.stdout)["pairs"]
    assert pair["paired_by"] == "name"
    assert sum(row["change_bytes"] for row in pair["changes"]) == 384 << 10
    assert before == sorted(tmp_path.rglob("*"))


@pytest.mark.slow
def test_a_dump_is_compared_with_a_run(xbuf_: Run, own_demonstration: Path) -> None:
    """The run keeps its number; the dump gets one that no run has. The database stays as it is."""
    before = own_demonstration.read_bytes()
    (pair,) = json.loads(xbuf_("diff", "jit_step@batch=8", LARGE, "--format", "json").stdout)["pairs"]
    with open_database(own_demonstration, read_only=True) as connection:
        ((number, greatest),) = connection.execute(
            "SELECT (SELECT max(run_id) FROM run_labels WHERE (key, value) = ('batch', '8')), max(run_id)"
            " FROM runs"
        ).fetchall()
    assert pair["before"]["run_id"] == number
    assert pair["after"]["run_id"] > greatest
    assert sum(row["change_bytes"] for row in pair["changes"]) == 384 << 10
    assert own_demonstration.read_bytes() == before


def test_modules_without_a_partner_are_listed(xbuf_: Run) -> None:
    """And nothing is compared that is not the same module."""
    done = xbuf_("diff", "batch=8", "set=devices")
    assert "only before: run" in done.stdout
    assert "only after: run" in done.stdout
    done = xbuf_("diff", "set=seeds", "batch=32")
    assert done.stderr.startswith("no module is on both sides")


def test_a_side_that_names_nothing_is_an_error(xbuf_: Run, tmp_path: Path) -> None:
    """With what it may have meant; a directory without dumps too."""
    error = xbuf_("diff", "batch=8", "batch=23").exception
    assert isinstance(error, UsageError)
    assert "no run is 'batch=23'; did you mean batch=32" in str(error)
    error = xbuf_("diff", "batch=8", str(tmp_path)).exception
    assert isinstance(error, UsageError)
    assert str(tmp_path) in str(error)


REFERENCES = [
    ("3", "run_id = 3"),
    ("5,3", "run_id IN (3, 5)"),
    ("latest", "import_id = 9"),
    ("latest~1", "import_id = 8"),
    ("import:2", "import_id = 2"),
    ("jax=0.6.2", "import_id = 3"),
    ("jax=0.*", "import_id IN (2, 3, 4)"),
    ("jit_step@batch=16", "import_id = 6"),
    ("jit_step@import:5", "import_id = 5"),
    ("jit_step", "run_id = (SELECT max(run_id) FROM runs WHERE module_name = 'jit_step')"),
    ("jaxlib-0.4.13-cpu", "dump_dir LIKE '%/jaxlib-0.4.13-cpu'"),
    ("seeds/004_a3085531593bac68.txt", "stem LIKE '%004_a3085531593bac68%'"),
]


@pytest.mark.parametrize(("reference", "condition"), REFERENCES)
def test_a_reference_names_runs(
    demonstration: duckdb.DuckDBPyConnection, reference: str, condition: str
) -> None:
    """Numbers, imports, labels, modules and ends of paths."""
    wanted = demonstration.execute(f"SELECT run_id FROM runs WHERE {condition} ORDER BY 1").fetchall()
    assert wanted
    assert resolve(demonstration, reference) == tuple(run for (run,) in wanted)


@pytest.mark.parametrize(
    "reference", ["99", "latest~99", "import:99", "jax=9", "jit_nothing", "a/b", "jit_step@jax=9"]
)
def test_a_reference_to_nothing_is_an_error(demonstration: duckdb.DuckDBPyConnection, reference: str) -> None:
    """Whatever its form."""
    with pytest.raises(UsageError, match="no run"):
        resolve(demonstration, reference)


def test_there_is_not_always_an_import_before(demonstration: duckdb.DuckDBPyConnection) -> None:
    """`latest~99` is well said; there are not so many imports."""
    with pytest.raises(UsageError, match=r"no run is 'latest~99': \d+ imports brought runs; `xbuf imports`"):
        resolve(demonstration, "latest~99")


def test_one_run_is_not_several(demonstration: duckdb.DuckDBPyConnection) -> None:
    """A command for one run lists those that are meant."""
    with pytest.raises(UsageError, match=r"'set=seeds' names 5 runs, and one is wanted: 1 "):
        resolve_one(demonstration, "set=seeds")


def test_commands_take_references(xbuf_: Run) -> None:
    """show, query and its comparisons, forget."""
    assert json.loads(xbuf_("show", "jit_step@batch=8", "--format", "json").stdout)["labels"] == ["batch=8"]
    rows = xbuf_(
        "query", "largest_modules", "--run", "latest", "--run", "1", "--format", "csv"
    ).stdout.splitlines()
    assert len(rows) == 3
    grown = xbuf_(
        "query", "peak_growth", "--before", "import:5", "--after", "latest", "--format", "csv"
    ).stdout
    assert "jit_step,393216," in grown
    assert "would forget 1 run (" in xbuf_("forget", "--run", "jit_step@batch=8").stdout


def test_references_are_completed(xbuf_: Run) -> None:
    """Numbers, latest, labels and modules, and labels behind a module."""
    assert complete("diff", "jit_st") == ["jit_step"]
    assert complete("diff", "batch=8", "lat") == ["latest", "latest~1"]
    assert complete("show", "jit_step@batch=3") == ["jit_step@batch=32"]
    assert complete("forget", "--run", "batch=1") == ["batch=16"]
