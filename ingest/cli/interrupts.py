"""Ctrl-C: however and wherever it strikes, the program ends with 130 and one line.

A `KeyboardInterrupt` does not always arrive as one: DuckDB raises `RuntimeError: Query interrupted`, an
import that is closing files may finish all the same, and a callback swallows it with a traceback. So the
signal itself is remembered. A second one ends the process at once, as a kill does, which loses nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_AGAIN = 0.05
"""Seconds between two interruptions of a query."""


class Interrupts:
    """Whether Ctrl-C was pressed since `watch`.

    Attributes:
        happened: it was.
    """

    def __init__(self) -> None:
        self.happened = False
        self._process = os.getpid()
        self._watching = False

    def watch(self) -> None:
        """Raise `KeyboardInterrupt` at the first Ctrl-C from now on."""
        self._watching = True
        sys.unraisablehook = self._unraisable
        signal.signal(signal.SIGINT, self._strike)

    def ignore(self) -> None:
        """From now on only remember: all that is left is to report the end."""
        self._watching = False

    def _strike(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            return  # a worker that was forked a moment ago; Ctrl-C is for the parent
        if self.happened and self._watching:
            os.write(2, b"interrupted again: ended at once; the next import goes on with what was read\n")
            os._exit(130)
        self.happened = True
        if self._watching:
            raise KeyboardInterrupt

    def _unraisable(self, unraisable: sys.UnraisableHookArgs) -> None:
        if not (self.happened and issubclass(unraisable.exc_type, KeyboardInterrupt)):
            sys.__unraisablehook__(unraisable)


@contextmanager
def reading(database: str, *, unsafe: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database to read; Ctrl-C ends what it is computing.

    Python runs no handler while DuckDB computes the next rows, and closing the connection waits for them. So
    a thread hears of the signal and stops the query.

    Raises what `ingest.lake.reading.open_to_read` raises.
    """
    from ingest.lake.reading import in_words_of, open_to_read

    with in_words_of(database), open_to_read(database, unsafe=unsafe) as connection:
        if threading.current_thread() is not threading.main_thread():
            yield connection  # a thread gets no signals
            return
        heard, struck = os.pipe()
        os.set_blocking(struck, False)
        before = signal.set_wakeup_fd(struck, warn_on_full_buffer=False)
        thread = threading.Thread(target=_stop, args=(heard, connection), daemon=True)
        thread.start()
        try:
            yield connection
        finally:
            # Of a query that Ctrl-C broke off DuckDB's threads go on, and closing would wait for them.
            connection.interrupt()
            signal.set_wakeup_fd(before)
            os.close(struck)
            thread.join()
            os.close(heard)


def _stop(heard: int, connection: duckdb.DuckDBPyConnection) -> None:
    """Interrupt from the first byte on until the pipe is closed: DuckDB forgets what comes too early."""
    import select  # the help needs none

    if os.read(heard, 1):
        while not select.select([heard], [], [], _AGAIN)[0] or os.read(heard, 1):
            connection.interrupt()


@contextmanager
def stopping(notice: str) -> Iterator[Callable[[float], bool]]:
    """Let the first SIGINT or SIGTERM end what waits, and not the program; the next one acts as before.

    Yields a function that waits up to so many seconds, and returns True once there was such a signal.

    Args:
        notice: written to stderr at the signal.
    """
    import select  # the help needs none

    numbers = (signal.SIGINT, signal.SIGTERM)
    heard, struck = os.pipe()
    process = os.getpid()

    def strike(number: int, frame: FrameType | None) -> None:
        if os.getpid() != process:
            return  # a worker that was forked a moment ago
        for one, handler in before.items():
            signal.signal(one, handler)
        os.write(struck, b".")
        os.write(2, notice.encode())

    def wait(seconds: float) -> bool:
        # Not an Event, whose lock the main thread may hold when the handler would set it.
        return bool(select.select([heard], [], [], seconds)[0])

    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, strike)
    try:
        yield wait
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(heard)
        os.close(struck)
