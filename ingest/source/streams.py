"""Streams over what is no file of this machine, as far as readers of archives, DuckDB and Arrow use one."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable
from typing import Final

RANGE_BYTES: Final = 4 << 20
"""Read at once: 70 kB/s are enough to be in time."""


class Stream(io.RawIOBase):
    """A stream of bytes; a class of it says by `read_some` what the next ones are."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    @abstractmethod
    def read_some(self, size: int) -> bytes:
        """Return the next bytes, at most so many; none at the end."""

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self.read_some(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class Seekable(Stream):
    """A stream of known length, of which one may read from any place: where it is, and how it moves."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at

    def read_some(self, size: int) -> bytes:
        return self.read(size)


class Ranges(Seekable):
    """A file at a URL as a stream, read in ranges."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        """Take what reads from one place to another, and how many bytes there are."""
        super().__init__(size)
        self._read = read
        self._block = b""
        self._block_start = 0

    def read(self, size: int = -1) -> bytes:
        wanted = self._size - self._at if size < 0 else min(size, self._size - self._at)
        parts = []
        while wanted > 0:
            within = self._at - self._block_start
            if not 0 <= within < len(self._block):
                self._block_start, within = self._at, 0
                self._block = self._read(self._at, min(self._at + RANGE_BYTES, self._size))
            part = self._block[within : within + wanted]
            parts.append(part)
            self._at += len(part)
            wanted -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
