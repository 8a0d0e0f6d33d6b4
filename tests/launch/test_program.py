"""A program runs as if nobody stood between it and its caller."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ingest.launch.program import Ended, NotStarted, Program

HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def ended(script: str) -> Ended:
    """Run a shell script to its end."""
    program = Program(["sh", "-c", script], dict(os.environ))
    try:
        return program.wait()
    finally:
        program.release()


def test_an_end_is_the_programs_own() -> None:
    """Exit codes as they are, a signal as shells have it."""
    assert ended("exit 0") == Ended(0, None)
    assert str(ended("exit 7")) == "ended with 7"
    killed = ended("kill -KILL $$")
    assert killed == Ended(137, signal.SIGKILL)
    assert str(killed) == "was killed by SIGKILL, out of memory maybe"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_goes_on_to_the_program(number: signal.Signals, tmp_path: Path) -> None:
    """It decides what to do; its caller goes on."""
    heard = tmp_path / "heard"
    os.mkfifo(tmp_path / "ready")
    script = f"""trap 'echo {number.name} > {heard}; exit 9' {number.name.removeprefix("SIG")}
        echo > {tmp_path}/ready; while :; do sleep 0.01; done"""
    program = Program(["sh", "-c", script], dict(os.environ))
    try:
        (tmp_path / "ready").read_text()
        os.kill(os.getpid(), number)
        assert program.wait() == Ended(9, None)
    finally:
        program.release()
    assert heard.read_text() == f"{number.name}\n"


def test_a_program_takes_signals_as_if_it_had_been_started_directly() -> None:
    """None is blocked, and SIGPIPE, which Python ignores, ends it; afterwards ours are as before."""
    before = [signal.getsignal(number) for number in HEARD]
    assert ended("grep -q '^SigBlk:\t0*$' /proc/self/status") == Ended(0, None)
    assert ended("kill -INT $$") == Ended(130, signal.SIGINT)
    assert ended("kill -PIPE $$") == Ended(128 + signal.SIGPIPE, signal.SIGPIPE)
    assert [signal.getsignal(number) for number in HEARD] == before


def test_what_cannot_be_started_is_named(tmp_path: Path) -> None:
    """With the exit codes of shells."""
    before = [signal.getsignal(number) for number in HEARD]
    with pytest.raises(NotStarted, match=r"xbuf-no-such: no such program") as missing:
        Program(["xbuf-no-such"], dict(os.environ))
    assert missing.value.code == 127
    with pytest.raises(NotStarted, match="Permission denied") as refused:
        Program([str(tmp_path)], dict(os.environ))
    assert refused.value.code == 126
    assert [signal.getsignal(number) for number in HEARD] == before
