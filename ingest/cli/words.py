"""The log of an import for people: its events, in words on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ingest.cli.streams import say
from ingest.display import place_in
from ingest.errors import ExitCode

if TYPE_CHECKING:
    from ingest.events import Event


class Words:
    """The log for people: what was not loaded, reported after the progress bar, and what is waited for."""

    def __init__(self, quiet: bool, fail_if_empty: bool) -> None:
        self._quiet = quiet
        self._says_empty = fail_if_empty or not quiet
        self._rest: list[str] = []
        self._loaded = self._kept = 0

    def __call__(self, event: Event) -> None:
        from ingest.events import (
            ImportFailed,
            LeftOut,
            Loaded,
            NothingFound,
            SetRejected,
            SourceAway,
            StagedApart,
            Unfinished,
            WaitingForLock,
            WaitingForWorkers,
        )

        match event:
            case SetRejected(file, line, _, message):
                self._rest.append(f"rejected: {place_in(file, line)}: {message}")
            case StagedApart(dumps, message):
                self._rest.append(
                    f"warning: xbuf failed on {dumps:,} dumps together and took each by itself, which is slow"
                    f" ({message}); please report it"
                )
            case Unfinished(dump):
                self._rest.append(f"unfinished: {dump}: still being written; left for the next import")
            case LeftOut(path, message) if not self._quiet:
                self._rest.append(f"left out: {path}: {message}")
            case NothingFound(sources, message) if self._says_empty:
                self._rest.append(f"{', '.join(sources)}: {message}")
            case Loaded(runs, resumed):
                self._loaded += runs + resumed
            case ImportFailed(kept=kept, exit_code=code):
                self._kept = kept
                if kept and code != ExitCode.INTERRUPTED:
                    self._rest.append(self.what_is_kept())
            case SourceAway(message) if not self._quiet:
                say(f"waiting: {message}")
            case WaitingForLock(database, pid, command, seconds) if not self._quiet:
                holder = f"process {pid} ({command})" if pid else "another process"
                say(f"waiting up to {seconds:g} s for {holder}, which holds {database}")
            case WaitingForWorkers(scheduler) if not self._quiet:
                say(f"waiting for workers: the cluster of {scheduler} has none")

    def what_is_kept(self) -> str:
        """Say what an import that ended early has loaded, or has left for the next one."""
        if self._kept:
            dumps = "1 dump is" if self._kept == 1 else f"{self._kept:,} dumps are"
            return f"{dumps} read and kept: the next import loads what was read"
        if self._loaded:
            return "1 dump was loaded" if self._loaded == 1 else f"{self._loaded:,} dumps were loaded"
        return "nothing was loaded"

    def say_rest(self) -> None:
        """Say what has been kept back."""
        for line in self._rest:
            say(line)
        self._rest.clear()
