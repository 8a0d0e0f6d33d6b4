"""Other people at the database: DuckDB shells in processes of their own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

_PROGRAM = """
import json, sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "ro") if sys.argv[1] else duckdb.connect()
print('"open"', flush=True)
for line in sys.stdin:
    try:
        answer = connection.execute(json.loads(line)).fetchall()
    except duckdb.Error as error:
        answer = {"error": str(error)}
    print(json.dumps(answer, default=str), flush=True)
"""


def duckdb_program() -> str:
    """Return the path of the `duckdb` program, which pip puts beside Python: that need not be on PATH.

    Raises:
        FileNotFoundError: it is not installed.
    """
    beside_python = Path(sys.executable).with_name("duckdb")
    program = str(beside_python) if beside_python.exists() else shutil.which("duckdb")
    if program is None:
        raise FileNotFoundError("no duckdb program: pip install -e '.[test]'")
    return program


class ShellError(Exception):
    """What DuckDB told the shell instead of a result."""


class Shell:
    """A process that has a database open, as a DuckDB shell has, and runs SQL when it is asked to."""

    def __init__(self, database: Path | str, *, read_only: bool) -> None:
        mode = "ro" if read_only else "rw"
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(database), mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != '"open"\n':
            _, error = self.process.communicate()
            raise ShellError(error.strip().splitlines()[-1])

    def run(self, sql: str) -> list[Any]:
        """Run a statement and return its rows."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(sql) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if isinstance(answer, dict):
            raise ShellError(answer["error"])
        return [tuple(row) for row in answer]

    def close(self) -> None:
        """Leave the shell as with .quit."""
        self.process.communicate()

    def kill(self) -> None:
        """Kill the shell as the system does when memory runs out."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            self.close()
