"""Where an import puts its runs: what a database file and a lake do each in their own way.

All else of an import is the same for both: the search, the plan, the staging, the journal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ingest.dump.sets import DumpSet, Member
    from ingest.pipeline.journal import Journal
    from ingest.pipeline.labels import Labelling
    from ingest.pipeline.recorded import Recorded
    from ingest.pipeline.summary import Progress

Reject = tuple[str, int | None, str]
"""File, line and kind."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a load writes besides what is staged.

    Attributes:
        touched: files of unchanged runs with other times: (run, file).
        labelled: directory and stem of dumps loaded before that may lack a label of the import.
        has_news: the import has something to say that is worth a write.
    """

    touched: Sequence[tuple[int, Member]] = ()
    labelled: Sequence[tuple[str, str]] = ()
    has_news: bool = False


class Records(Protocol):
    """What is recorded of dump sets."""

    @property
    def locked(self) -> bool:
        """A writer has the place, so that something older stands in for it."""

    def look(self, *, search_is_long: bool) -> None:
        """Make the place ready, before anything else is asked.

        Args:
            search_is_long: what keeps the place from being used is to be known at once.

        Raises:
            DatabaseError: it cannot be used.
        """

    def renamed(self, roots: Sequence[str]) -> Container[tuple[str, str]]:
        """Return the files below some roots that were primary files before; see `RenamedFiles`."""

    def recorded(self, sets: Sequence[DumpSet], *, rehash: bool) -> Recorded:
        """Look up dump sets; see `find_recorded`."""

    def lacks(self, places: Sequence[tuple[str, str]], labelling: Labelling) -> bool:
        """Whether a dump that was loaded before lacks a label; true while nobody can look."""

    def has_news(self, rejects: Set[Reject]) -> bool:
        """Whether it should be written down that these dumps were rejected, or saved queries changed."""


class Loading(ABC):
    """The loads of one import.

    Attributes:
        pending: journals of earlier imports, not loaded yet.
        import_id: number of this import; None until it is recorded.
        loaded: its runs that are in.
        resumed: runs of earlier imports that were loaded now.
        by_copy: the last load changed a copy of the database.
        seconds: how long the last load took.
    """

    def __init__(self) -> None:
        self.pending: list[Journal] = []
        self.import_id: int | None = None
        self.loaded = 0
        self.resumed = 0
        self.by_copy = False
        self.seconds = 0.0

    @abstractmethod
    def make_in_advance(self) -> None:
        """Make what is missing while workers read."""

    @abstractmethod
    def step(self, journal: Journal, now: bool) -> None:
        """Load what is staged so far, when it is time: one bad dump must not keep the others out."""

    @abstractmethod
    def finish(self, journal: Journal, status: str, changes: Changes) -> None:
        """Load what is staged, also by earlier imports that were cut off, and record them.

        Args:
            journal: of this import.
            status: how it ended.
            changes: what else is to be written.

        Raises:
            DatabaseLocked: another process had the place for too long, and there is something to write.
            DatabaseError: the place cannot be used.
        """


class Target(Protocol):
    """A database file, or a lake."""

    @property
    def name(self) -> str:
        """As it is shown."""

    @property
    def place(self) -> str:
        """Path on this machine after which the staging folder and the lock are named."""

    def check(self) -> None:
        """Raise DatabaseError where the place cannot be used; before anything is read."""

    def lock(self) -> AbstractContextManager[None]:
        """Keep other imports out that have the same staging folder, and tidy up after those that were killed.

        Raises:
            DatabaseLocked: another one held it for too long.
        """

    def records(self, parts: Sequence[str] = (), *, may_change: bool) -> Records:
        """Return what is recorded, in the place and in parts that are not loaded yet.

        Args:
            parts: staged and not loaded.
            may_change: bring a place of an older schema up to date; the caller has the lock.
        """

    def loading(self, report: Callable[[Progress], None]) -> Loading:
        """Return what loads."""
