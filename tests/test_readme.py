"""The examples of the README and of the tutorial run and print what is shown.

`python -m tests.test_readme` writes the outputs anew.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ingest import import_dumps, open_database
from ingest.cli.xbuf import xbuf

pytestmark = pytest.mark.usefixtures("macros")

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_ELSEWHERE = ("python3 -m venv", "XLA_FLAGS=", "xbuf-ingest ", "xbuf run ")
"""Commands that other tests run, or that need a program of the reader's."""


def blocks(language: str, page: Path = README) -> list[str]:
    """Return a page's code blocks of a language."""
    return [body for found, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if found == language]


def consoles(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each command of the console blocks with the output shown."""
    for body in blocks("console", page):
        for part in body.split("$ ")[1:]:
            command, _, output = part.partition("\n")
            if not command.startswith(_ELSEWHERE):
                yield command, output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as after the README's first line: the example dumps and a database."""
    return prepare(tmp_path_factory.mktemp("readme"))


def prepare(folder: Path) -> Path:
    """Load the example dumps into a database in `folder`."""
    for name in ("examples", "tests"):
        (folder / name).symlink_to(ROOT / name)
    for dumps in ("examples/dumps", "tests/data/seeds"):
        import_dumps([folder / dumps], folder / "xbuf.duckdb")
    return folder


def run(command: str, folder: Path) -> str:
    """Run a command as typed into an 80-column terminal; return what it prints.

    One that asks nothing of the shell runs in this process.
    """
    if not set(command) & set("|&;<>$\n"):
        with contextlib.chdir(folder):
            done_here = CliRunner(env={"COLUMNS": "80"}).invoke(
                xbuf, shlex.split(command)[1:], prog_name="xbuf", catch_exceptions=False
            )
        assert done_here.exit_code == 0, done_here.stderr
        return done_here.stdout
    script = "import sys; sys.argv[0] = 'xbuf'; from ingest.cli.entry import xbuf; xbuf()"
    done = subprocess.run(
        ["bash", "-c", f'xbuf() {{ "{sys.executable}" -c "{script}" "$@"; }}; {command}'],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SHOWN = [(page, command, output) for page in (README, TUTORIAL) for command, output in consoles(page)]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        pytest.param(
            command,
            output,
            id=f"{page.stem}: {command}",
            marks=[pytest.mark.slow] if page == TUTORIAL and "peak_growth" in command else [],
        )
        for page, command, output in SHOWN
    ],
)
def test_a_command_prints_what_the_page_shows(command: str, output: str, folder: Path) -> None:
    """The outputs shown are real."""
    assert run(command, folder) == output


def test_the_sql_of_the_readme_runs(folder: Path) -> None:
    """Every statement of the shell tour runs in a plain connection, and has rows."""
    [tour] = blocks("sql")
    with open_database(folder / "xbuf.duckdb", read_only=True) as connection:
        statements = connection.extract_statements(tour)
        assert len(statements) == 5
        for statement in statements:
            assert connection.execute(statement).fetchall(), statement.query


def test_the_python_of_the_readme_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python example prints the run, and its table has the lines of source."""
    [example] = blocks("python")
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        exec(compile(example, str(README), "exec"), names)
    assert "jit_train_step" in capsys.readouterr().out
    assert any(str(owner).endswith("train.py:52") for owner in names["frame"].column("owner").to_pylist())
    names["dumps"].close()


def test_ci_runs_the_test_line_of_the_readme() -> None:
    """What CI does is what the README tells."""
    lines = [line.removeprefix("$ ") for body in blocks("console") for line in body.splitlines()]
    [line] = [line for line in lines if line.endswith("/pytest")]
    assert line in (ROOT / ".ci/run").read_text().splitlines()


def test_the_first_line_of_the_readme_names_what_exists() -> None:
    """The first line loads dumps that are in the checkout."""
    line = blocks("console")[0]
    [path] = re.findall(r"xbuf-ingest (\S+)", line)
    assert len(list((ROOT / path).iterdir())) == 4


def _write_outputs(folder: Path) -> None:
    """Put the real outputs into the pages."""
    for page in (README, TUTORIAL):
        text = page.read_text(encoding="utf-8")
        for command, output in consoles(page):
            text = text.replace(f"$ {command}\n{output}", f"$ {command}\n{run(command, folder)}")
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        _write_outputs(prepare(Path(name)))
