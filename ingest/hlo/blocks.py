"""Read a text in blocks of whole lines, keeping only both ends of lines that are very long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ingest.dump.content import Content

BLOCK_BYTES: Final = 256 << 10
"""Bytes of a block: what is made of it stays in the processor's cache (4 MiB take 25 % longer)."""

_MAX_LINE: Final = 16 << 20
_KEPT_TAIL: Final = 64 << 10
_ELIDED: Final = b" ... "
_BOM: Final = b"\xef\xbb\xbf"


class LineBlocks:
    """Blocks of whole lines of a file, plain or compressed; figures are complete after the iteration.

    A line longer than 16 MiB (a constant printed in full) loses its middle: what an instruction's line
    says stands before the constant and in the metadata after it.

    Attributes:
        text_bytes: uncompressed bytes of the file.
        sha256: of these bytes, hexadecimal.
        shortened: lines that lost their middle.
        ends_with_newline: the file ends with a line end.
        repaired: the file has bytes that are no UTF-8 (now `\\xNN`).
    """

    def __init__(self, path: str, block_bytes: int) -> None:
        self.path = path
        self.text_bytes = 0
        self.sha256 = ""
        self.shortened = 0
        self.ends_with_newline = False
        self.repaired = False
        self._block_bytes = block_bytes
        self._crlf = False

    def __iter__(self) -> Iterator[str]:
        pending = b""
        for data in self._chunks():
            end = data.rfind(b"\n") + 1
            if not end:
                pending += data
                continue
            yield self._decode(pending + data[:end] if pending else data[:end])
            pending = data[end:]
        if pending:
            yield self._decode(pending)

    def _chunks(self) -> Iterator[bytes]:
        """Yield the file's bytes without the middle of very long lines."""
        line = 0  # bytes of the line that the last chunk left open
        tail = b""
        for data in self._read():
            first = data.find(b"\n")
            if tail:
                if first < 0:
                    tail = (tail + data)[-_KEPT_TAIL:]
                    continue
                data = _ELIDED + (tail + data[:first])[-_KEPT_TAIL:] + data[first:]
                tail = b""
                self.shortened += 1
            elif first < 0 and line + len(data) > _MAX_LINE:
                room = max(0, _MAX_LINE - line)
                tail = data[room:][-_KEPT_TAIL:]
                if room:
                    yield data[:room]
                continue
            last = data.rfind(b"\n")
            line = line + len(data) if last < 0 else len(data) - last - 1
            yield data
        if tail:
            self.shortened += 1
            yield _ELIDED + tail

    def _read(self) -> Iterator[bytes]:
        with Content(self.path) as content:
            while data := content.read(self._block_bytes):
                self.ends_with_newline = data.endswith(b"\n")
                if content.count == len(data):
                    data = data.removeprefix(_BOM)
                    end = data.find(b"\n")
                    self._crlf = end > 0 and data[end - 1] == 0x0D
                yield data
            self.text_bytes, self.sha256 = content.count, content.sha256

    def _decode(self, data: bytes) -> str:
        if self._crlf:
            data = data.replace(b"\r\n", b"\n")
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.repaired = True
            return data.decode(errors="backslashreplace")
