"""A program of the user's own, run as if nobody stood between it and the terminal.

It gets the standard streams, the terminal and the process group as they are. Signals that are sent to us go
on to it; those of the terminal (Ctrl-C) reach it by themselves, as all of the group.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from ingest.errors import UsageError

NOT_FOUND: Final = 127
CANNOT_RUN: Final = 126
"""Exit codes of shells, env and nohup for a program that is not there or is none."""

_FORWARDED: Final = (
    signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2
)  # fmt: skip
_OF_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT)
_SET_BY_PYTHON: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""What the interpreter ignores, and a program would go on ignoring."""


class NotStarted(UsageError):
    """The program cannot be started.

    Attributes:
        code: NOT_FOUND or CANNOT_RUN.
    """

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        code: its exit code; 128 and the signal's number if one killed it.
        signal: the signal; None if it ended by itself.
    """

    code: int
    signal: int | None

    def __str__(self) -> str:
        if self.signal is None:
            return f"ended with {self.code}"
        name = signal.Signals(self.signal).name if self.signal in signal.valid_signals() else "a signal"
        # The kernel leaves no other trace of it.
        cause = ", out of memory maybe" if self.signal == signal.SIGKILL else ""
        return f"was killed by {name}{cause}"


class Program:
    """A running program. To be made, and released, by the main thread, which gets the signals."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        on_end: Callable[[Ended], None] = lambda _: None,
    ) -> None:
        """Start it.

        Args:
            command: name or path, and arguments.
            environment: all of it.
            on_end: called by a thread once it has ended.

        Raises:
            NotStarted: there is no such program, or it cannot be run.
        """
        self._on_end = on_end
        self._process = os.getpid()
        self._early: list[int] = []
        """Signals that came before it was there."""
        self._pid = 0
        self._ended: Ended | None = None
        self._has_ended = threading.Event()
        # What is ignored, as SIGHUP is under nohup, the program ignores too.
        ours = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
        self._before: dict[int, Any] = {number: signal.signal(number, self._forward) for number in ours}
        try:
            self._pid = os.posix_spawnp(command[0], list(command), environment, setsigdef=_SET_BY_PYTHON)
        except OSError as error:
            self.release()
            missing = isinstance(error, FileNotFoundError)
            raise NotStarted(
                f"{command[0]}: {'no such program' if missing else error.strerror}",
                NOT_FOUND if missing else CANNOT_RUN,
            ) from error
        for number in self._early:
            os.kill(self._pid, number)
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def pause(self, seconds: float) -> bool:
        """Wait for so long at most; say whether it has ended."""
        return self._has_ended.wait(seconds)

    def wait(self) -> Ended:
        """Wait for its end, and for what `on_end` does."""
        self._thread.join()
        assert self._ended is not None
        return self._ended

    def release(self) -> None:
        """Take signals as before it was started."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _wait(self) -> None:
        # It stays a zombie, and nobody else gets its number, until no signal is sent to it any more.
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        self._has_ended.set()
        _, status = os.waitpid(self._pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._ended = Ended(code, None) if code >= 0 else Ended(128 - code, -code)
        self._on_end(self._ended)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a worker of an import, forked while the program runs
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not self._pid:
            self._early.append(number)
        elif not self._has_ended.is_set() and not (number in _OF_TERMINAL and _is_in_foreground()):
            os.kill(self._pid, number)


def _is_in_foreground() -> bool:
    """Say whether Ctrl-C on a terminal reaches this process, and with it all of its group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
