"""A lake as the place where an import puts its runs.

Its staging folder lies on this machine: what was read and not committed yet is gone on with from there.
Imports into one lake may run at the same time on one machine; each then has a folder of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from ingest.database.import_lock import OnWait, import_lock
from ingest.database.private import make_private_folder
from ingest.database.refusals import explain
from ingest.errors import DatabaseLocked
from ingest.lake.store import Lake, parse_lake, require_libraries
from ingest.pipeline.journal import is_journal, staging_folder
from ingest.pipeline.lake_loading import LakeLoading
from ingest.pipeline.lake_records import Apart, LakeRecords
from ingest.pipeline.summary import Progress
from ingest.source.kinds import LAKE_PREFIX, is_url, shown

_MOST: Final = 64
"""Imports of one machine into one lake at the same time; another one waits."""


class LakeTarget:
    """A lake; see `ingest.pipeline.target.Target`."""

    def __init__(
        self,
        url: str,
        staging: str | os.PathLike[str] | None,
        sources: Sequence[str],
        wait_seconds: float,
        on_wait: OnWait,
        *,
        may_fork: bool,
    ) -> None:
        """Name the lake.

        Args:
            url: path or URL.
            staging: folder for what is read and not committed yet; by default one in the user's cache.
            sources: what is imported, as it may be stored.
            wait_seconds: how long to wait for another import with the same staging folder.
            on_wait: called when waiting begins.
            may_fork: False where this process must not be forked.
        """
        self._url = url
        self._folder = Path(_cache() if staging is None else os.path.abspath(staging))
        self._number = 1
        self._sources = sources
        self._wait_seconds = wait_seconds
        self._on_wait = on_wait
        self._may_fork = may_fork

    @property
    def name(self) -> str:
        """The path or URL, as it may be shown."""
        name = self._url.removeprefix(LAKE_PREFIX)
        return shown(name if is_url(name) else os.path.realpath(name))

    @property
    def place(self) -> str:
        """Path on this machine after which the staging folder and the lock are named."""
        return self._place(self._number)

    def check(self) -> None:
        """Refuse what can be no lake."""
        require_libraries()
        parse_lake(self._url)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Take a staging folder that no other import has, with all that dead ones have left in others."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise explain(str(self._folder), error) from error
        with ExitStack() as stack:
            for number in range(1, _MOST + 1):
                self._number = number
                wait = self._wait_seconds if number == _MOST else 0.0
                try:
                    stack.enter_context(import_lock(self.place, wait_seconds=wait, on_wait=self._on_wait))
                    break
                except DatabaseLocked:
                    if number == _MOST:
                        raise
            self._take_over()
            yield

    def records(self, parts: Sequence[str] = (), *, may_change: bool) -> LakeRecords:
        """Return what is recorded."""
        return LakeRecords(self._apart(), parts, self._sources, may_change=may_change)

    def loading(self, report: Callable[[Progress], None]) -> LakeLoading:
        """Return what loads."""
        return LakeLoading(self._apart(), self.place, report)

    def _apart(self) -> Apart:
        return Apart(parse_lake(self._url), may_fork=self._may_fork)

    def _place(self, number: int) -> str:
        first = str(self._folder / _file_name(parse_lake(self._url)))
        return first if number == 1 else f"{first}-{number}"

    def _take_over(self) -> None:
        """Take the journals out of the staging folders that no import has now."""
        mine = staging_folder(self.place)
        for other in self._folder.glob(f"{Path(self._place(1)).name}*{mine.suffix}"):
            if other == mine:
                continue
            with suppress(DatabaseLocked), import_lock(str(other.with_suffix(""))):
                for journal in filter(is_journal, other.iterdir()):
                    make_private_folder(mine)
                    journal.rename(mine / journal.name)


def _cache() -> str:
    """Return the folder that staging folders of lakes are made in."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "xbuf", "lakes")


def _file_name(lake: Lake) -> str:
    """Return a file name that stands for a lake, and shows which."""
    digest = hashlib.sha256(os.fsencode(lake.root)).hexdigest()[:16]
    last = re.sub(r"[^\w-]", "_", os.path.basename(lake.root))[:40]
    return f"{last}-{digest}"
