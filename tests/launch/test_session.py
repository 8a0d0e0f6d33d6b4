"""`xbuf run`, with a program that leaves what JAX has left behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingest.cli.run import run
from ingest.database.connect import open_database
from ingest.database.import_lock import import_lock
from ingest.errors import NotADatabase, UsageError, XbufError

CHECKOUT = Path(__file__).parents[2]
STEP = CHECKOUT / "examples" / "dumps" / "step"
SMALL = CHECKOUT / "tests" / "data" / "hlo" / "jaxlib-0.10.2-cpu"
DUMPS_TO = "for flag in $XLA_FLAGS; do case $flag in --xla_dump_to=*) to=${flag#*=};; esac; done; "
"""Shell that finds where to dump."""

Run = Callable[..., Result]


@pytest.fixture
def run_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `xbuf run` in an empty folder, with a shell script as the program."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("COLUMNS", "80")

    def run_script(script: str, *options: str) -> Result:
        done = CliRunner().invoke(run, [*options, "--", "sh", "-c", DUMPS_TO + script], standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done

    return run_script


def test_the_report_names_the_line_that_holds_most_of_the_peak(run_: Run, tmp_path: Path) -> None:
    """Of a program that fails; its exit code stays, its dumps are in the database and nowhere else."""
    done = run_(f'echo "$XLA_FLAGS" > flags; cp {STEP}/* "$to"; exit 3', "--label", "a=b", "--module", "step")
    assert done.return_value == 3
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[:2] == ["sh ended with 3", "1 module in xbuf.duckdb, the largest:"]
    assert lines[-3] == (
        "/src/train.py:52 holds most of the peak of jit_train_step: 384.02 MiB of 738.30 MiB, 52.0%;"
        " its largest buffer is ynn_fusion.18, 128.00 MiB"
    )
    assert lines[-2:] == [
        "its peak would be 192.19 MiB lower (26.0%) after: recompute, /src/train.py:39",
        "xbuf show 1 shows more, xbuf advise 1 what would lower its peak",
    ]
    assert (tmp_path / "flags").read_text().split()[1:] == [
        "--xla_dump_hlo_as_text=true",
        "--xla_dump_hlo_as_proto=true",
        "--xla_dump_hlo_module_re=step",
    ]
    assert list((tmp_path / "tmp").iterdir()) == []
    with open_database("xbuf.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT key, value FROM run_labels").fetchall() == [("a", "b")]


def test_dumps_of_a_killed_program_are_imported_as_it_runs(
    run_: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each module while it runs. They stay in a directory of the user's own, of which all is
    imported and only what is new reported."""
    own = tmp_path / "mine"
    own.mkdir()
    for file in SMALL.glob("module_0010*"):
        (own / file.name).write_bytes(file.read_bytes())
        os.utime(own / file.name, (1, 1))
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=mine --xla_x=1")
    script = f'[ "$to" = mine ] && cp {SMALL}/module_0004* "$to"; kill -KILL $$'
    done = run_(script, "--watch", "--db", "my.db")
    assert done.return_value == 137
    lines = done.stderr.splitlines()
    assert "sh was killed by SIGKILL, out of memory maybe" in lines
    assert any("jit_cd: live peak " in line for line in lines)
    report = lines[lines.index("1 module in my.db, the largest:") :]
    assert not any("jit_dn" in line for line in report)
    assert report[-2].startswith("xbuf show ")
    assert " --db my.db shows more, " in report[-2]
    assert report[-1] == "the dumps are in mine"
    assert len(list(own.iterdir())) == 10


def test_dumps_that_cannot_be_imported_are_kept(run_: Run) -> None:
    """And the exit code is still the program's."""
    with import_lock(os.path.abspath("xbuf.duckdb"), wait_seconds=0):
        done = run_(f'cp {SMALL}/module_0004* "$to"', "--wait", "0")
    assert done.return_value == 0
    said, kept = done.stderr.splitlines()[-2:]
    assert said.startswith("error: ")
    assert len(list(Path(kept.removeprefix("the dumps are in ")).iterdir())) == 5


def test_a_folder_to_keep_the_dumps_in_is_made(run_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless XLA_FLAGS name another."""
    run_('echo > "$to/notes"', "--keep", "some/dumps")
    assert os.listdir("some/dumps") == ["notes"]
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=mine")
    with pytest.raises(UsageError, match=r"dumps to mine already; leave out --keep"):
        run_("", "--keep", "other")


def test_a_program_that_compiles_nothing_leaves_nothing(run_: Run, tmp_path: Path) -> None:
    """And what could be the reason is said."""
    done = run_("exit 0")
    assert done.return_value == 0
    assert done.stderr.startswith("nothing was dumped: ")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_is_wrong_is_refused_before_the_program_runs(run_: Run, tmp_path: Path) -> None:
    """A folder that is in use, a database that is none, a program that is not there."""
    (tmp_path / "tmp" / "x").touch()
    refusals: tuple[tuple[type[XbufError], tuple[str, ...]], ...] = (
        (UsageError, ("--keep", "tmp")),
        (NotADatabase, ("--db", "tmp/x")),
    )
    (tmp_path / "tmp" / "x").write_text("no database")
    for error, options in refusals:
        with pytest.raises(error):
            run_("touch ran", *options)
    missing = CliRunner().invoke(run, ["--", "xbuf-no-such"], standalone_mode=False)
    assert missing.return_value == 127
    assert missing.stderr == "error: xbuf-no-such: no such program\n"
    assert not (tmp_path / "ran").exists()
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == ["x"]
