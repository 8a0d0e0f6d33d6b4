"""Read the text of a dump file: plain, gzip or zstd, whole or in blocks of whole lines.

What a copy through other systems does to a text (byte order mark, CRLF line ends, bytes that are no
UTF-8) is mended and told as a notice.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from typing import IO, Final, NamedTuple, cast

from ingest.dump.records import Notice
from ingest.dump.sections import MAX_RECORD
from ingest.errors import DumpError

BLOCK_BYTES: Final = 4 << 20
"""Bytes of a block; 8 MiB keeps a worker under 150 MB while a block's fixed cost is below 1 %."""

_BOM: Final = b"\xef\xbb\xbf"
_COMPRESSIONS: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))


class FileText(NamedTuple):
    """A file read whole."""

    text: str
    sha256: str
    """Of the uncompressed bytes, hexadecimal."""
    text_bytes: int
    notices: tuple[Notice, ...]


class BlockReader:
    """Read a file in blocks of whole lines; figures are complete when the iteration has ended.

    Attributes:
        text_bytes: uncompressed bytes read so far.
        notices: what had to be mended.
    """

    def __init__(self, path: str, block_bytes: int = BLOCK_BYTES) -> None:
        self.path = path
        self.text_bytes = 0
        self.notices: list[Notice] = []
        self._block_bytes = block_bytes
        self._hash = hashlib.sha256()
        self._crlf = False
        self._is_plain = False

    @property
    def is_verbatim(self) -> bool:
        """Tell whether the text read so far is that of the file's bytes, so that `read_range` finds it."""
        return self._is_plain and not self.notices

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes read so far, hexadecimal."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[str]:
        rest = b""
        first = True
        with open_bytes(self.path) as stream:
            self._is_plain = isinstance(stream, io.FileIO)
            while data := _read(stream, self._block_bytes, self.path):
                self._hash.update(data)
                self.text_bytes += len(data)
                if first:
                    data = self._inspect_start(data)
                    first = False
                end = data.rfind(b"\n") + 1
                if not end:
                    rest += data
                    if len(rest) > MAX_RECORD:
                        raise DumpError(
                            "line-too-long", f"a line is longer than {MAX_RECORD >> 20} MiB", file=self.path
                        )
                    continue
                whole = rest + data[:end] if rest else data[:end] if end < len(data) else data
                rest = data[end:]
                yield self._decode(whole)
        if rest:
            yield self._decode(rest)

    def _inspect_start(self, data: bytes) -> bytes:
        if data.startswith(_BOM):
            data = data[len(_BOM) :]
            self._note("byte-order-mark", "the file starts with a byte order mark")
        line_end = data.find(b"\n")
        if line_end > 0 and data[line_end - 1] == 0x0D:
            self._crlf = True
            self._note("line-ends", "lines end in CR LF; read as LF")
        return data

    def _decode(self, data: bytes) -> str:
        if self._crlf:
            data = data.replace(b"\r\n", b"\n")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if not any(notice.kind == "encoding" for notice in self.notices):
                bad = data[max(0, error.start - 40) : error.end + 40].decode(errors="backslashreplace")
                self._note("encoding", "bytes that are no UTF-8 are shown as \\xNN", bad)
            return data.decode(errors="backslashreplace")

    def _note(self, kind: str, message: str, text: str | None = None) -> None:
        self.notices.append(Notice(self.path, None, kind, message, text))


def read_text(path: str) -> FileText:
    """Read a file whole.

    Raises:
        DumpError: it cannot be read, or a compressed file is damaged.
    """
    reader = BlockReader(path)
    blocks = list(reader)
    text = blocks[0] if len(blocks) == 1 else "".join(blocks)
    return FileText(text, reader.sha256, reader.text_bytes, tuple(reader.notices))


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
        with open(part.path, "rb", buffering=0, opener=_opener) as stream:
            data = os.pread(stream.fileno(), part.length, part.offset)
    except OSError as error:
        raise DumpError("unreadable", f"cannot be read: {error.strerror}", file=part.path) from error
    if len(data) != part.length:
        raise DumpError("unreadable", "the file became shorter while it was read", file=part.path)
    return data.decode(errors="backslashreplace")


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def open_bytes(path: str) -> IO[bytes]:
    """Open a file for its uncompressed bytes; the compression is told by the content.

    Raises:
        DumpError: it cannot be opened or is no regular file.
    """
    try:
        # O_NONBLOCK: opening a FIFO that took a file's place must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise DumpError("unreadable", "not a regular file", file=path)
        stream = os.fdopen(descriptor, "rb", buffering=0)
        magic = os.pread(descriptor, 4, 0)
    except OSError as error:
        raise DumpError("unreadable", f"cannot be read: {error.strerror}", file=path) from error
    for start, name in _COMPRESSIONS:
        if magic.startswith(start):
            return _decompressed(stream, name)
    return stream


def _decompressed(stream: IO[bytes], name: str) -> IO[bytes]:
    if name == "gzip":
        return cast("IO[bytes]", _Gzip(stream))
    import pyarrow as pa

    return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), name))


class _Gzip(gzip.GzipFile):
    """A gzip stream that owns the file below it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._below = stream
        super().__init__(fileobj=stream)

    def close(self) -> None:
        super().close()
        self._below.close()


def _read(stream: IO[bytes], size: int, path: str) -> bytes:
    try:
        return stream.read(size)
    except (OSError, EOFError, ValueError) as error:
        # gzip: BadGzipFile and EOFError; pyarrow: ArrowInvalid, a ValueError; zlib.error is neither.
        raise DumpError("unreadable", f"cannot be read: {error}", file=path) from error
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise DumpError("unreadable", f"damaged gzip data: {error}", file=path) from error
        raise
