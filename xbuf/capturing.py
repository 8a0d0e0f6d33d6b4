"""Capture what JAX compiles while a block or a function runs, from memory."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ContextDecorator
from typing import Any, Final, TextIO

from ingest.arguments import Labels, as_labels
from ingest.display import counted
from ingest.errors import DumpError, UsageError
from ingest.launch.overview import overview_text, read_overview
from ingest.query.output import terminal_width
from xbuf.database import Database, RejectedWarning
from xbuf.programs import Program, import_programs, read_program
from xbuf.run import Run

__all__ = ["Capture", "capture"]

_COMPILED: Final = "/jax/core/compile/backend_compile_duration"
"""What JAX records when a program has been compiled, or come from its compilation cache."""

_active: list[Capture] = []
_is_listening = False
_lock = threading.RLock()


class Capture(ContextDecorator):
    """The programs that JAX compiles in blocks and functions; made by `capture`.

    Attributes:
        programs: what was captured, in the order in which it was compiled.
    """

    def __init__(self, *, labels: Labels = ()) -> None:
        """Make one; see `capture`."""
        self.programs: list[Program] = []
        self._labels = labels
        self._depth = 0
        self._seen: dict[int, Any] = {}
        """Executables by their identity, which they keep as long as they are held here."""
        self._missed: list[str] = []
        self._imported: tuple[int, Database, list[Run]] | None = None

    def __enter__(self) -> Capture:
        """Begin to capture.

        Raises:
            UsageError: JAX is not installed, or too old.
        """
        global _is_listening
        try:
            import jax.monitoring
            from jax.extend.backend import backends
        except ImportError as error:
            raise UsageError(f"xbuf.capture needs JAX, 0.4.38 or newer: {error}") from error
        with _lock:
            if not self._depth:
                self._seen = {id(executable): executable for executable in _live_executables(backends())}
                _active.append(self)
            self._depth += 1
            if not _is_listening:
                # JAX has no way to take a listener off that is older than 2025; this one costs nothing.
                jax.monitoring.register_event_duration_secs_listener(_hear)
                _is_listening = True
        return self

    def __exit__(self, *error: object) -> None:
        """End: what was compiled is kept, also where the block raises.

        Warns:
            RejectedWarning: a program could not be captured.
        """
        with _lock:
            self._depth -= 1
            if self._depth:
                return
            self._look()
            _active.remove(self)
            self._seen.clear()
            missed, self._missed = self._missed, []
        if missed:
            more = f", and {len(missed) - 1:,} more" if len(missed) > 1 else ""
            warnings.warn(f"not captured: {missed[0]}{more}", RejectedWarning, stacklevel=2)

    @property
    def runs(self) -> list[Run]:
        """What was captured, as runs of `database`; empty where nothing was compiled."""
        return self._import()[1] if self.programs else []

    @property
    def database(self) -> Database:
        """A temporary database of what was captured.

        Raises:
            UsageError: nothing was compiled.
        """
        return self._import()[0]

    def save(self, database: str | os.PathLike[str], *, labels: Labels = ()) -> list[Run]:
        """Load what was captured into a database that stays; return the runs there.

        Raises:
            UsageError: nothing was compiled.
            DatabaseError: the database cannot be used.
        """
        self._check()
        return import_programs(self.programs, database=database, labels=labels or self._labels)

    def show(self, *, top: int | None = 5, file: TextIO | None = None) -> None:
        """Print the largest programs, and the line of source that holds most of each peak.

        Args:
            top: how many; None for all.
            file: where to; None for stdout.
        """
        out = file or sys.stdout
        if not self.programs:
            out.write("nothing was compiled\n")
            return
        database, runs = self._import()
        overview = read_overview(database.connection, [run.id for run in runs], top, advise=True)
        for line in overview_text(overview, terminal_width(), os.getcwd()):
            out.write(line + "\n")

    def __repr__(self) -> str:
        return f"<xbuf.capture: {counted(len(self.programs), 'program')}>"

    def _repr_html_(self) -> str:
        """Return the list of runs, for notebooks."""
        return self.database._repr_html_() if self.programs else "<p>nothing was compiled</p>"

    def _check(self) -> None:
        if not self.programs:
            raise UsageError("nothing was compiled while it was captured; what was compiled before stays so")

    def _import(self) -> tuple[Database, list[Run]]:
        """Import the programs, anew where there are more than the last time."""
        self._check()
        count = len(self.programs)
        if self._imported is None or self._imported[0] != count:
            runs = import_programs(self.programs[:count], labels=self._labels)
            self._imported = count, runs[0].database, runs
        return self._imported[1:]

    def _look(self) -> None:
        """Take the programs that are new."""
        from jax.extend.backend import backends

        for executable in _live_executables(backends()):
            if id(executable) in self._seen:
                continue
            self._seen[id(executable)] = executable
            try:
                self.programs.append(read_program(executable))
            except DumpError as error:
                self._missed.append(str(error))
            except Exception as error:  # the user's program must not fail for it
                self._missed.append(f"{type(error).__name__}: {error}")


def capture(*, labels: Labels = ()) -> Capture:
    """Capture the programs that JAX compiles: as a context manager, or as a decorator::

        with xbuf.capture() as captured:
            train_step(state, batch)
        captured.show()

        memory = xbuf.capture()

        @memory
        def train(): ...

    Programs are taken from JAX's memory as they are compiled, by any thread, from all backends: nothing is
    dumped, and XLA_FLAGS, which XLA reads once a process, are left alone. What was compiled before is not
    compiled again, and so not captured. Programs stay loaded until the block ends. JAX's backends are
    started, so `jax.distributed.initialize` must come before.

    Args:
        labels: put on the runs.

    Raises:
        TypeError: labels are something else.
    """
    return Capture(labels=as_labels(labels))


def _hear(event: str, duration: float, **_: Any) -> None:
    """Look for what JAX has just compiled."""
    if event == _COMPILED:
        with _lock:
            for one in _active:
                one._look()


def _live_executables(backends: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the programs that JAX has loaded, of all its backends, in the order of their making."""
    for client in backends.values():
        yield from reversed(client.live_executables())
