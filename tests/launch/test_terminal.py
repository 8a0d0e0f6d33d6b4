"""`xbuf run` on a terminal: the program has it to itself."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_XBUF = "import sys; sys.argv[0] = 'xbuf'; from ingest.cli.entry import xbuf; xbuf()"
_PROGRAM = """
import signal, sys, time
assert sys.stdin.isatty() and sys.stdout.isatty()
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(1))
print("name?", input(), flush=True)
while not heard:
    time.sleep(0.01)
time.sleep(0.5)
print("interrupts:", len(heard), flush=True)
sys.exit(5)
"""


def test_the_program_reads_the_terminal_and_gets_one_interrupt(tmp_path: Path) -> None:
    """Ctrl-C reaches it once: of the terminal, and not from us as well."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(tmp_path)
        command = [sys.executable, "-c", _XBUF, "run", "--", sys.executable, "-c", _PROGRAM]
        os.execv(sys.executable, command)
    shown = b""

    def read_until(text: bytes) -> None:
        nonlocal shown
        while text not in shown:
            shown += os.read(terminal, 4096)

    os.write(terminal, b"Ada\n")
    read_until(b"name? Ada")
    os.write(terminal, b"\x03")
    read_until(b"interrupts: 1")
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 5
