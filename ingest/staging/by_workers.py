"""Large files at URLs: the process that cuts a text into pieces may not read stores, so its workers do.

They read ranges ahead, many at the same time, and hand them back; then they scan the pieces.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from typing import IO, cast

from ingest.dump.sets import DumpSet
from ingest.source.objects import AtUrl
from ingest.source.source import OpenFile, Status, Terms
from ingest.source.streams import RANGE_BYTES, Ranges
from ingest.staging.at_hand import reading, still_reading


def read_by_workers(dump_set: DumpSet, pool: Executor, ahead: int) -> DumpSet:
    """Return a set whose files are read by workers.

    Args:
        dump_set: at a URL.
        pool: the workers.
        ahead: ranges of 4 MiB that are read before they are wanted.
    """
    assert isinstance(dump_set.source, AtUrl)
    return dump_set._replace(source=_ByWorkers(dump_set, dump_set.source, pool, ahead))


@dataclass(frozen=True, slots=True)
class _ByWorkers:
    """The source of such a set; what is sent to a worker has the source of the set itself."""

    dump_set: DumpSet
    source: AtUrl
    pool: Executor
    ahead: int

    def __reduce__(self) -> tuple[Callable[[AtUrl], AtUrl], tuple[AtUrl]]:
        return _itself, (self.source,)

    @property
    def terms(self) -> Terms:
        return self.source.terms

    @property
    def is_far(self) -> bool:
        return False

    @property
    def is_remote(self) -> bool:
        return False

    @property
    def rereads_ranges(self) -> bool:
        return False

    def open(self, path: str, found: Status | None) -> OpenFile:
        version = found or self.status(path)
        if version is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

        def read(start: int, end: int) -> Future[bytes]:
            return self.pool.submit(_read, self.dump_set, str(path), version, start, end)

        stream = Ranges(_Ahead(read, version.size, self.ahead), version.size)
        return OpenFile(cast("IO[bytes]", stream), version.size)

    def status(self, path: str) -> Status | None:
        return self.pool.submit(_status, self.dump_set, str(path)).result()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.pool.submit(_read, self.dump_set, str(path), None, offset, offset + length).result()


class _Ahead:
    """Ranges of a file, some of which are on their way before they are wanted."""

    def __init__(self, read: Callable[[int, int], Future[bytes]], size: int, ahead: int) -> None:
        self._read, self._size, self._ahead = read, size, ahead
        self._begun: dict[int, Future[bytes]] = {}
        """Ranges by their starts, in order."""
        self._next = 0

    def __call__(self, start: int, end: int) -> bytes:
        if start not in self._begun:
            self._begun.clear()
            self._next = start
        while len(self._begun) <= self._ahead and self._next < self._size:
            following = min(self._next + RANGE_BYTES, self._size)
            self._begun[self._next] = self._read(self._next, following)
            self._next = following
        return self._begun.pop(start).result()


def _itself(source: AtUrl) -> AtUrl:
    return source


def _read(dump_set: DumpSet, path: str, found: Status | None, start: int, end: int) -> bytes:
    with reading(dump_set):
        return _heard(dump_set).read_version(path, found, start, end)


def _status(dump_set: DumpSet, path: str) -> Status | None:
    with reading(dump_set):
        return _heard(dump_set).status(path)


def _heard(dump_set: DumpSet) -> AtUrl:
    """Return the source of a set that counts each answer as progress."""
    assert isinstance(dump_set.source, AtUrl)
    return replace(dump_set.source, heard=still_reading)
