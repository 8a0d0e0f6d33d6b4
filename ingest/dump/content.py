"""Read the text of a dump file: plain, gzip or zstd, whole or in blocks of whole lines.

What a copy through other systems does to a text (byte order mark, CRLF line ends, bytes that are no
UTF-8) is repaired and reported as a notice.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Final, NamedTuple, cast

from ingest.dump.records import Notice
from ingest.dump.sections import MAX_RECORD
from ingest.errors import DumpError
from ingest.source.limits import BOMB_BYTES, BOMB_TIMES
from ingest.source.local import open_found, source_of
from ingest.source.source import OpenFile, PathIn, Unreachable, why_unreadable

BLOCK_BYTES: Final = 4 << 20
"""Bytes of a block; a worker takes 70 MB for a block with many rows."""

_BOM: Final = b"\xef\xbb\xbf"
_MAGIC_BYTES: Final = 4
_FINISH_BYTES: Final = 1 << 18
_COMPRESSIONS: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))


class FilePart(NamedTuple):
    """A part of a file's uncompressed bytes.

    Attributes:
        copy: a file that holds them uncompressed, which is read in its place.
        offset: where they start, in the copy if there is one.
    """

    offset: int
    length: int
    copy: str | None = None


class Content:
    """Uncompressed bytes of a file, plain, gzip or zstd: limited, counted and hashed while read.

    Every reader of dumps and of sidecar files reads through this, so that each has the same limits: a plain
    file ends where it ended when it was opened (it may grow faster than it is read), a compressed one at the
    expansion that BOMB_BYTES and BOMB_TIMES allow. It is a context manager.

    Attributes:
        path: the file, for messages.
        is_plain: the file is not compressed.
        rereads_ranges: parts of it can be read again at no cost.
        count: uncompressed bytes read so far.
    """

    def __init__(self, path: str, max_bytes: int = sys.maxsize, part: FilePart | None = None) -> None:
        """Open a file; the compression is recognised by the content.

        Args:
            path: the file.
            max_bytes: most bytes, uncompressed.
            part: only these of the uncompressed bytes; None for all.

        Raises:
            DumpError: it cannot be opened, is no regular file, or ends before the part does.
        """
        self.path = path
        self.count = 0
        self._at = 0
        """Uncompressed bytes of the file that were read or stepped over."""
        self._hash = hashlib.sha256()
        self._max_bytes = max_bytes
        raw, self._size = _open((part and part.copy) or path)
        self._stream: IO[bytes] = raw
        try:
            compression = _compression(self._read(_MAGIC_BYTES))
            raw.seek(0)
        except BaseException:
            raw.close()
            raise
        self.is_plain = compression is None
        self.rereads_ranges = self.is_plain and source_of(path).rereads_ranges
        if compression:
            self._stream = _decompressed(raw, compression)
        self._left = sys.maxsize if part is None else part.length
        """Bytes until the end of the part."""
        if part is not None:
            self.skip(part.offset)

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes read so far, hexadecimal."""
        return self._hash.hexdigest()

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; none at the end, and there only.

        Raises:
            DumpError: they cannot be read, compressed data is damaged, or there are more than allowed.
        """
        if self.is_plain:
            size = min(size, self._left, self._size - self._at)
            if size <= 0:
                return b""
        else:
            size = min(size, self._left)
        data = self._read(size)
        self._hash.update(data)
        self._passed(len(data))
        self.count += len(data)
        self._left -= len(data)
        if self.count > self._max_bytes:
            raise DumpError(
                "unreadable", f"there are more than {self._max_bytes:,} bytes uncompressed", file=self.path
            )
        return data

    def skip(self, size: int) -> None:
        """Step over bytes, unread and unhashed where the file is plain; raises as `read`."""
        if self.is_plain:
            size = min(size, self._size - self._at)
            self._stream.seek(size, os.SEEK_CUR)
            self._passed(size)
            return
        while size and (data := self._read(min(size, _FINISH_BYTES))):
            size -= len(data)
            self._passed(len(data))

    def _passed(self, count: int) -> None:
        """Count bytes of the file, and end where a compressed one has more than allowed."""
        self._at += count
        if not self.is_plain and self._at > max(BOMB_BYTES, BOMB_TIMES * self._size):
            raise DumpError(
                "unreadable",
                f"{self._size:,} compressed bytes stand for more than {BOMB_TIMES} times as many;"
                " decompress it first, if that is meant",
                file=self.path,
            )

    def finish(self) -> None:
        """Read what is left, so that `sha256` and `count` are those of the whole file; raises as `read`."""
        while self.read(_FINISH_BYTES):
            pass

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _read(self, size: int) -> bytes:
        try:
            return self._stream.read(size) if size > 0 else b""
        except (OSError, EOFError, ValueError, zlib.error) as error:
            # gzip: BadGzipFile, EOFError and zlib.error; pyarrow: ArrowInvalid, a ValueError.
            message = f"cannot be read: {error}; copy the file again"
            if isinstance(error, OSError) and error.errno is not None and isinstance(self.path, PathIn):
                message = why_unreadable(error)
            raise DumpError("unreadable", message, file=self.path) from error


def is_unreachable(error: DumpError) -> bool:
    """Say whether a file was not read for a reason that another import may not meet."""
    return isinstance(error.__cause__, Unreachable)


class BlockReader:
    """Read a file in blocks of whole lines; figures are complete when the iteration has ended.

    Where it has more than `max_bytes` of text, the iteration ends with TooMuchText.

    Attributes:
        notices: what had to be changed to read it.
    """

    def __init__(self, path: str, block_bytes: int = BLOCK_BYTES, max_bytes: int | None = None) -> None:
        self.path = path
        self.notices: list[Notice] = []
        self._block_bytes = block_bytes
        self._max_bytes = max_bytes
        self._content: Content | None = None
        self._crlf = False

    @property
    def text_bytes(self) -> int:
        """Uncompressed bytes read so far."""
        return self._content.count if self._content else 0

    @property
    def is_verbatim(self) -> bool:
        """Whether the text read so far is that of the file's bytes, so that `read_range` finds it cheaply."""
        content = self._content
        return content is not None and content.rereads_ranges and not self.notices

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes read so far, hexadecimal."""
        return self._content.sha256 if self._content else hashlib.sha256().hexdigest()

    def __iter__(self) -> Iterator[str]:
        rest: list[bytes] = []
        is_first = True
        with Content(self.path) as content:
            self._content = content
            while data := content.read(self._block_bytes):
                if self._max_bytes is not None and content.count > self._max_bytes:
                    raise TooMuchText
                if content.count == len(data):
                    data = self._inspect_start(data)
                end = data.rfind(b"\n") + 1
                if not end:
                    self._require_short(rest, data)
                    rest.append(data)
                    continue
                tail = data[end:]
                if tail:
                    data = data[:end]
                whole = b"".join((*rest, data)) if rest else data
                rest = [tail] if tail else []
                if is_first:
                    self._inspect_line_end(whole)
                    is_first = False
                yield self._decode(whole)
        if rest:
            yield self._decode(b"".join(rest))

    def _require_short(self, rest: list[bytes], more: bytes) -> None:
        """Refuse a line that would fill the memory."""
        length = sum(map(len, rest)) + len(more)
        if length > MAX_RECORD:
            raise DumpError(
                "line-too-long",
                f"a line is longer than {MAX_RECORD:,} bytes",
                file=self.path,
                byte_offset=self.text_bytes - length,
            )

    def _inspect_start(self, data: bytes) -> bytes:
        if data.startswith(_BOM):
            data = data[len(_BOM) :]
            self._note("byte-order-mark", "the file starts with a byte order mark")
        return data

    def _inspect_line_end(self, data: bytes) -> None:
        line_end = data.find(b"\n")
        if line_end > 0 and data[line_end - 1] == 0x0D:
            self._crlf = True
            self._note("line-ends", "lines end in CR LF; read as LF")

    def _decode(self, data: bytes) -> str:
        if b"\r" in data:
            if self._crlf:
                data = data.replace(b"\r\n", b"\n")
            elif b"\r\n" in data and not any(notice.kind == "mixed-line-ends" for notice in self.notices):
                self._note("mixed-line-ends", "the first line ends in LF, another in CR LF; kept as it is")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if not any(notice.kind == "encoding" for notice in self.notices):
                start = max(data.rfind(b"\n", 0, error.start) + 1, error.start - 40)
                bad = data[start : error.end + 40].split(b"\n", 1)[0].decode(errors="backslashreplace")
                self._note("encoding", "bytes that are no UTF-8 are shown as \\xNN", bad)
            return data.decode(errors="backslashreplace")

    def _note(self, kind: str, message: str, text: str | None = None) -> None:
        self.notices.append(Notice(self.path, None, kind, message, text))


class TooMuchText(Exception):
    """A text is longer than the caller wants to hold."""


class FileRange(NamedTuple):
    """A part of a file that `BlockReader` found to be verbatim."""

    path: str
    offset: int
    """Bytes from the start of the file."""
    length: int
    """Bytes."""


def read_range(part: FileRange) -> str:
    """Read a part of a file again.

    Raises:
        DumpError: it cannot be read, or is not there any more.
    """
    try:
        data = source_of(part.path).read_range(part.path, part.offset, part.length)
    except OSError as error:
        raise DumpError("unreadable", why_unreadable(error), file=part.path) from error
    if len(data) != part.length:
        raise DumpError("unreadable", "the file became shorter while it was read", file=part.path)
    return data.decode(errors="backslashreplace")


def _open(path: str) -> OpenFile:
    """Open a file for its bytes."""
    try:
        return open_found(path)
    except OSError as error:
        raise DumpError("unreadable", why_unreadable(error), file=path) from error
    except ValueError as error:  # a NUL in the name
        raise DumpError("unreadable", f"cannot be read: {error}", file=path) from error


def _compression(start: bytes) -> str | None:
    """Return the compression of a file that starts so."""
    for magic, name in _COMPRESSIONS:
        if start.startswith(magic):
            return name
    return None


def _decompressed(stream: IO[bytes], name: str) -> IO[bytes]:
    if name == "gzip":
        return cast("IO[bytes]", _Gzip(stream))
    import pyarrow as pa  # 110 ms

    return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), name))


class _Gzip(gzip.GzipFile):
    """A gzip stream that owns the file below it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._below = stream
        super().__init__(fileobj=stream)

    def close(self) -> None:
        super().close()
        self._below.close()
