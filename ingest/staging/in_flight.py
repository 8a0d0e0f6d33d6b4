"""The pieces of one large dump that workers have, taken back in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from typing import Any

from ingest.staging.pieces import StagedPiece, Where, rest

Take = Callable[[StagedPiece, Where], None]
"""What is done with a piece that comes back; not kept, as whoever takes a piece holds the others."""


class InFlight:
    """Pieces that a pool scans and writes, at most `limit` at once; they come back as they were submitted."""

    def __init__(self, pool: Executor, limit: int) -> None:
        self._pool = pool
        self._limit = limit
        self._waiting: deque[tuple[Future[StagedPiece], Where]] = deque()

    def submit(self, take: Take, where: Where, scan: Callable[..., StagedPiece], *arguments: Any) -> None:
        """Have a piece scanned, and its rows written to `where`; take those that are beyond the limit."""
        self._waiting.append((self._pool.submit(scan, *arguments), where))
        self._take_until(self._limit, take)

    def wait(self, take: Take) -> None:
        """Take all pieces."""
        self._take_until(0, take)

    def abandon(self) -> None:
        """Wait for what has begun: the folder is removed after an error, and nobody may write to it then."""
        wait_for([future for future, _ in self._waiting if not future.cancel()])

    def rest(self) -> None:
        """Have the workers give back memory, while they have nothing to do."""
        for _ in range(self._limit):
            self._pool.submit(rest)

    def _take_until(self, left: int, take: Take) -> None:
        while len(self._waiting) > left:
            future, where = self._waiting[0]
            piece = future.result()
            self._waiting.popleft()
            take(piece, where)
