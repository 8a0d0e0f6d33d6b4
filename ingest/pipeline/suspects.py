"""Dumps that a worker, or a whole import, was lost with: they are tried last, alone, and then rejected.

A file in the staging folder keeps them from one import to the next. A set whose files have changed since is a
new one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.database.private import replace_text
from ingest.staging.at_hand import place_of
from ingest.staging.task import Task

if TYPE_CHECKING:
    from ingest.dump.sets import DumpSet

_FILE: Final = "suspects.json"
TRIALS: Final = 2
"""Losses after which a set is rejected without being read: the second was alone."""

_Files = list[list[str | int | None]]


class Suspects:
    """The sets that something was lost with, and how often."""

    def __init__(self, staging: Path) -> None:
        self._path = staging / _FILE
        self._sets: dict[str, tuple[int, _Files | None]] = {}
        try:
            for place, (losses, files) in json.loads(self._path.read_text(encoding="ascii")).items():
                self._sets[str(place)] = int(losses), files
        except (OSError, ValueError, TypeError, AttributeError):
            self._sets = {}  # none, or damaged: they will be found out again

    def died_with(self, places: Iterable[str]) -> None:
        """Note sets that were at hand when an import was killed."""
        for place in places:
            losses, files = self._sets.get(place, (0, None))
            self._sets[place] = losses + 1, files
        self._write()

    def lost(self, dump_set: DumpSet) -> None:
        """Note a set that a worker was lost with."""
        losses = self.losses(dump_set)
        self._sets[place_of(dump_set)] = losses + 1, _files(dump_set)
        self._write()

    def read(self, dump_set: DumpSet) -> None:
        """Forget a set that was read, or found to be no dump."""
        if self._sets.pop(place_of(dump_set), None):
            self._write()

    def losses(self, dump_set: DumpSet) -> int:
        """Return how often something was lost with a set as it is now."""
        losses, files = self._sets.get(place_of(dump_set), (0, None))
        return losses if files in (None, _files(dump_set)) else 0

    def part(self, tasks: Sequence[Task], *, rehash: bool) -> tuple[list[Task], list[Task], list[Task]]:
        """Part tasks into those without a suspicion, those to be tried alone, and those to be rejected.

        Args:
            tasks: all.
            rehash: give every set one more trial.
        """
        if not self._sets:
            return list(tasks), [], []
        plain: list[Task] = []
        alone: list[Task] = []
        hopeless: list[Task] = []
        for task in tasks:
            losses = self.losses(task.dump_set)
            if losses:
                # Those of a killed import are known by their place alone until they are found again.
                self._sets[place_of(task.dump_set)] = losses, _files(task.dump_set)
            (plain if not losses else alone if losses < TRIALS or rehash else hopeless).append(task)
        self._write()
        return plain, alone, hopeless

    def _write(self) -> None:
        """Replace the file, atomically; without suspects there is none.

        Raises:
            OSError: it cannot be written.
        """
        if not self._sets:
            self._path.unlink(missing_ok=True)
            return
        replace_text(self._path, json.dumps(self._sets))


def _files(dump_set: DumpSet) -> _Files:
    return [[*member] for member in dump_set.members]
