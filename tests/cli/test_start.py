"""What a program imports before it knows what is asked of it."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("program", "module"), [("xbuf", "xbuf"), ("xbuf_ingest", "ingest")])
def test_the_help_imports_little_but_click(program: str, module: str) -> None:
    """Nothing of the library, and no module of Python's that only errors or completion need."""
    code = (
        "import atexit, sys\n"
        f"from ingest.cli.entry import {program} as main\n"
        "sys.argv[1:] = ['--help']\n"
        "atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert "Options:" in done.stdout
    ours = {name for name in imported if name.startswith("ingest.")}
    assert f"ingest.cli.{module}" in ours
    # Of sources the command line knows how a URL begins, and how to show one.
    assert {name.split(".")[1] for name in ours} <= {"cli", "display", "errors", "source", "version"}
    assert len(ours) < 15
    spared = {
        "asyncio",
        "click.shell_completion",
        "difflib",
        "duckdb",
        "json",
        "select",
        "traceback",
        "urllib.parse",
    }
    assert imported & spared == set()


def test_a_program_does_not_import_pandas() -> None:
    """DuckDB would to bind a parameter, and Arrow to make an array, where it is installed."""
    code = (
        "import ingest.cli.entry, duckdb, numpy, pyarrow, sys\n"
        "print(duckdb.execute('SELECT $1', ['bound']).fetchall())\n"
        "print(pyarrow.array(numpy.arange(2)).to_pylist(), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[('bound',)]\n[0, 1] False\n"
