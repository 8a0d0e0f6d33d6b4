"""The files of a lake in an object store, as DuckDB reads them: without its httpfs extension.

DuckDB takes a file system of fsspec. This one knows the files of a snapshot with their sizes, and no others:
it asks the store for ranges of bytes, and for nothing else. A lake of 160 files a table opens in 0.2 s of CPU
that way, and in 1.7 s as Arrow datasets of deltalake's.
"""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from fsspec import AbstractFileSystem

from ingest.lake.failures import SCHEME, gone
from ingest.lake.store import in_words
from ingest.source.streams import Seekable

if TYPE_CHECKING:
    from ingest.lake.snapshot import Snapshot

_WRITTEN: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""A file of a lake never changes."""


class StoredFiles(AbstractFileSystem):  # type: ignore[misc]
    """The files of a snapshot."""

    protocol = SCHEME
    cachable = False

    def __init__(self, snapshot: Snapshot, root: str = f"{SCHEME}:/") -> None:
        """Take the files of a snapshot.

        Args:
            root: the start of their names, with a scheme of its own.
        """
        super().__init__()
        self.protocol = root.partition("://")[0] if "://" in root else SCHEME
        self._root = f"{root}/"
        self._lake = snapshot.lake
        self._store = snapshot.lake.objects()
        self._sizes = {
            f"{table}/{file.name}": file.size for table, of in snapshot.tables.items() for file in of.files
        }

    def open(self, path: str, mode: str = "rb", **options: Any) -> _Stored:
        """Open a file to read."""
        if mode != "rb":
            raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), path)
        return _Stored(self, self._key(path), self.size(path))

    def size(self, path: str) -> int:
        """Return the bytes of a file."""
        return self._sizes[self._key(path)]

    def modified(self, path: str) -> datetime:
        """Return a moment, by which DuckDB knows that what it keeps of a file is still right."""
        return _WRITTEN

    def glob(self, path: str, **options: Any) -> list[str]:
        """Return the one file that a name stands for."""
        return [path] if self._key(path) in self._sizes else []

    def exists(self, path: str, **options: Any) -> bool:
        """Say whether a file is one of the snapshot."""
        return self._key(path) in self._sizes

    isfile = exists

    def read(self, key: str, start: int, length: int) -> bytes:
        """Return bytes of a file.

        Raises:
            DatabaseError: the store is away, or has no such file any more.
        """
        import obstore

        with in_words(self._lake, key):
            try:
                data = bytes(obstore.get_range(self._store, key, start=start, length=length))
            except FileNotFoundError:
                raise gone(self._lake, key) from None
            if len(data) != length:
                raise EOFError("closed before its end")
            return data

    def _key(self, path: str) -> str:
        return path.removeprefix(self._root)


class _Stored(Seekable):
    """A file, as far as DuckDB uses one."""

    def __init__(self, files: StoredFiles, key: str, size: int) -> None:
        super().__init__(size)
        self._files, self._key = files, key

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        length = left if size < 0 else min(size, left)
        data = self._files.read(self._key, self._at, length) if length else b""
        self._at += length
        return data
