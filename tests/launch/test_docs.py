"""The screen of docs/run.md is what `xbuf run` prints, of a program that leaves the dumps of the example.

`python -m tests.launch.test_docs` writes it anew.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.documents import install, install_commands

pytestmark = pytest.mark.usefixtures("macros")

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "run.md"
_SCREEN = re.compile(r"^```console\n\$ ([^\n]*)\n(.*?)^```$", re.M | re.S)
_PYTHON = f"""#!/bin/sh
[ "$*" = examples/train.py ] || exit 9
folder=$(printf '%s\\n' $XLA_FLAGS | sed -n 's/^--xla_dump_to=//p')
mkdir -p "$folder" && cp "{ROOT}"/examples/dumps/step/* "$folder"
echo "step 0: loss 9.01087"
echo "step 1: loss 9.01087"
"""
"""Stands for a Python with JAX."""


def printed(command: str, folder: Path) -> str:
    """Run the command as typed into an 80-column terminal; return stdout and stderr as they come."""
    (folder / "bin").mkdir()
    install_commands(folder / "bin")
    install(folder / "bin" / "python", _PYTHON)
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "80",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
def test_the_screen_of_the_page_is_real(tmp_path: Path) -> None:
    """The program's own lines, then the report, which names the line that holds most of the peak."""
    [(command, output)] = _SCREEN.findall(PAGE.read_text(encoding="utf-8"))
    assert printed(command, tmp_path) == output
    assert "train.py:52 holds most of the peak" in output


if __name__ == "__main__":
    import tempfile

    text = PAGE.read_text(encoding="utf-8")
    [(shown, old)] = _SCREEN.findall(text)
    with tempfile.TemporaryDirectory() as name:
        PAGE.write_text(text.replace(old, printed(shown, Path(name))), encoding="utf-8")
