"""Other people at the database: DuckDB shells in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

_SERVER = """
import json, os, signal, socket, duckdb
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
control = socket.socket(fileno=0)
while True:
    asked, ends, _, _ = socket.recv_fds(control, 1, 1)
    if not asked:
        os._exit(0)
    if os.fork() == 0:
        break
    os.close(ends[0])
lines = socket.socket(fileno=ends[0]).makefile("rw", encoding="utf-8")

def answer(result):
    lines.write(json.dumps(result, default=str) + "\\n")
    lines.flush()

answer(os.getpid())
path, read_only = json.loads(lines.readline())
try:
    connection = duckdb.connect(path, read_only=read_only) if path else duckdb.connect()
except duckdb.Error as error:
    answer({"error": str(error).strip().splitlines()[-1]})
    os._exit(1)
answer([])
for line in lines:
    try:
        answer(connection.execute(json.loads(line)).fetchall())
    except duckdb.Error as error:
        answer({"error": str(error)})
connection.close()
os._exit(0)
"""
"""Forks a shell for each socket that it is sent: it has imported DuckDB already, which takes 0.1 s."""


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
        mine, its = socket.socketpair()
        with mine, its:
            socket.send_fds(_server(), [b"1"], [its.fileno()])
            self._lines = mine.makefile("rw", encoding="utf-8")
        self.pid = int(json.loads(self._lines.readline()))
        try:
            self._ask([str(database), read_only])
        except ShellError:
            self.close()
            raise

    def run(self, sql: str) -> list[Any]:
        """Run a statement and return its rows."""
        return [tuple(row) for row in self._ask(sql)]

    def close(self) -> None:
        """Leave the shell as with .quit."""
        self._lines.close()
        while _lives(self.pid):
            time.sleep(0.001)

    def kill(self) -> None:
        """Kill the shell as the system does when memory runs out; nothing where it has ended."""
        if not self._lines.closed:
            os.kill(self.pid, signal.SIGKILL)
            self.close()

    def _ask(self, request: object) -> list[Any]:
        self._lines.write(json.dumps(request) + "\n")
        self._lines.flush()
        answer = json.loads(self._lines.readline())
        if isinstance(answer, dict):
            raise ShellError(answer["error"])
        return list(answer)

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._lines.closed:
            self.close()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@cache
def _server() -> socket.socket:
    """Start what forks the shells of this process, and return the socket that it reads; it ends with that."""
    mine, its = socket.socketpair()
    with its:
        program = [sys.executable, "-c", _SERVER]
        # No Popen, which complains at the end of the tests that the server is still there.
        os.posix_spawn(program[0], program, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, its.fileno(), 0)])
    return mine
