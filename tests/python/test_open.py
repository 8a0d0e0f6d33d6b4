"""`xbuf.open`: databases, dumps, and what is neither."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import xbuf
from ingest.pipeline.summary import ImportSummary
from ingest.staging.task import Rejected
from tests.python.conftest import CHECKOUT, PROTO
from xbuf.database import check_loaded

STEP = CHECKOUT / "examples" / "dumps" / "step"


@pytest.fixture(scope="module")
def step() -> Iterator[xbuf.Database]:
    """The dump of the example's training step."""
    with xbuf.open(STEP, labels={"variant": "plain"}) as database:
        yield database


def test_the_names_are_those_that_are_listed() -> None:
    """Each is there, and importing them needs neither DuckDB nor JAX at once."""
    assert {name: getattr(xbuf, name) for name in xbuf.__all__}.keys() == set(dir(xbuf))
    assert [name for name in xbuf.__all__ if find_spec(f"xbuf.{name}")] == [], "a module would take its place"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = xbuf.nothing
    script = "import sys, xbuf; print(xbuf.__version__, [m for m in ('duckdb', 'jax') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{xbuf.__version__} []\n"


def test_dumps_answer_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are imported into a temporary database, which goes with it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    database = xbuf.open(PROTO)
    assert [run.module for run in database.runs] == ["jit_cd"]
    assert Path(database.path).is_relative_to(tmp_path)
    run = database.run(1)
    database.close()
    assert list(tmp_path.glob("xbuf-*/*")) == []
    assert repr(database) == "<xbuf.Database of dumps: closed>"
    with pytest.raises(xbuf.UsageError, match="is closed; open it again"):
        run.peak()
    database.close()


def test_a_process_with_threads_of_jax_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for a dump that is large enough for workers."""
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    monkeypatch.setattr("ingest.staging.stage.LARGE_BYTES", 1000)
    monkeypatch.delattr("os.fork")
    with xbuf.open(PROTO) as opened:
        assert opened.run("jit_cd").peak().live_bytes == 12317


def test_a_temporary_database_that_nobody_closes_goes_when_it_is_forgotten(database: Path) -> None:
    """Without a warning: in a notebook nobody closes anything."""
    opened = xbuf.Database(database, folder=str(database.parent))
    del opened
    assert not database.parent.exists()


def test_a_database_is_opened_in_place(database: Path) -> None:
    """It may have any name; what is imported meanwhile is seen when it is opened again."""
    path = database.rename(database.with_name("memory.db"))
    with xbuf.open(path) as opened:
        assert opened.path == str(path)
        assert xbuf.import_dumps(PROTO, path, jobs=1).by_copy
        assert opened.runs == []
    with xbuf.open(path) as opened:
        assert repr(opened) == f"<xbuf.Database {path}: 1 run>"
        assert "jit_cd" in opened._repr_html_()


def test_what_cannot_be_opened_has_an_error_of_its_own(tmp_path: Path) -> None:
    """No path, no dump, a file of another kind."""
    with pytest.raises(xbuf.DatabaseError, match="no such database"):
        xbuf.open(tmp_path / "missing")
    with pytest.raises(xbuf.UsageError, match="no dump found"):
        xbuf.open(tmp_path)
    with pytest.raises(TypeError, match="a path is"):
        xbuf.open(b"bytes")  # type: ignore[arg-type]
    other = tmp_path / "notes.txt"
    other.write_text("Dear diary\n")
    with pytest.raises(xbuf.XbufError, match=r"notes\.txt"):
        xbuf.open(other)


def test_what_is_lost_is_an_error_alone_and_a_warning_among_others() -> None:
    """The others are there."""
    reject = Rejected("a.hlo.pb", kind="hlo-proto", message="is cut off")
    some = ImportSummary("x.duckdb", 1, "rejects", 3, 1, 0, 1, 1, 9, 0.1, (reject,), ("b.hlo.pb",))
    with pytest.warns(xbuf.RejectedWarning, match=r"2 of 3 dumps .* first a\.hlo\.pb: is cut off"):
        check_loaded(some, ["dumps"])
    none = ImportSummary("x.duckdb", 1, "rejects", 1, 0, 0, 1, 0, 0, 0.1, (reject,))
    with pytest.raises(xbuf.DumpError, match="is cut off") as refused:
        check_loaded(none, ["dumps"])
    assert (refused.value.file, refused.value.kind) == ("a.hlo.pb", "hlo-proto")
    waiting = ImportSummary("x.duckdb", 1, "ok", 1, 0, 0, 0, 1, 0, 0.1, (), ("b.hlo.pb",))
    with pytest.raises(xbuf.DumpError, match=r"b\.hlo\.pb: is still being written"):
        check_loaded(waiting, ["dumps"])


def test_a_run_has_figures_and_answers(step: xbuf.Database) -> None:
    """By number or name; questions are narrowed to it."""
    run = step.run("jit_train_step@variant=plain")
    assert (run.id, run.module, run.backend, run.labels) == (1, "jit_train_step", "cpu", {"variant": "plain"})
    peak = run.peak()
    assert (peak.slot, peak.slots) == (75, 146)
    assert str(peak) == "live 738.30 MiB, resident 752.09 MiB, total 752.09 MiB"
    [line] = run.query("memory_by_source", top=1).rows()
    assert line["owner"].endswith("train.py:52")
    assert sum(row["bytes"] for row in run.live_at_peak()) == peak.live_bytes
    with pytest.raises(xbuf.UsageError, match="no run"):
        step.run("jit_other")


def test_parameters_are_checked_and_take_runs_and_sizes(step: xbuf.Database) -> None:
    """As the command line does; what is cut or missing is said with the rows."""
    run = step.run(1)
    few = step.query("live_at_peak", run=[run], top=2)
    assert len(few) == 2
    assert few.notes == ("2 of 46 rows; top=None for all",)
    assert len(step.query("live_at_peak", run="latest", top=None)) == 46
    same = step.query("diff", before=run, after="jit_train_step", top=3)
    assert "no row" in same.notes[0]
    assert len(step.query("longest_lived", min_bytes="1GiB")) == 0
    with pytest.raises(xbuf.UsageError, match=r"no query 'live_at_peek'.*did you mean live_at_peak"):
        step.query("live_at_peek")
    with pytest.raises(xbuf.UsageError, match="no parameter 'tops'"):
        step.query("live_at_peak", tops=2)
    with pytest.raises(xbuf.UsageError, match="no whole number"):
        step.query("live_at_peak", top="many")
    assert step.queries["diff"]


def test_sql_reads_and_nothing_else(step: xbuf.Database) -> None:
    """As `xbuf sql`."""
    [row] = step.sql("SELECT count(*) AS runs FROM runs").rows()
    assert row == {"runs": 1}
    for statement in ("DELETE FROM runs", "SELECT 1; SELECT 2", "FROM read_text('/etc/hostname')"):
        with pytest.raises(xbuf.UsageError):
            step.sql(statement)


def test_a_run_prints_as_on_the_command_line(
    step: xbuf.Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures first, then what fills the peak."""
    monkeypatch.setattr("ingest.report.glance._findings", lambda *_: [])  # five queries, which others try
    monkeypatch.setenv("COLUMNS", "80")
    step.run(1).show()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "run 1: jit_train_step, cpu, variant=plain"
    assert lines[4].startswith("live peak      738.30 MiB")
    assert any("52.0%  train.py:52" in line for line in lines)
