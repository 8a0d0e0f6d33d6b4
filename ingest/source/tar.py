"""Walk through a tar archive, plain or compressed, from its start to its end: it has no directory.

`tarfile` reads the headers, from a stream that only goes forward and refuses what no header needs: a header
may claim any size, and `tarfile` would take it all into memory. It also takes a damaged header for the end of
the archive; here an archive ends with a block of zeros, or it is cut off.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from collections.abc import Iterator
from typing import IO, Final, cast

from ingest.source.limits import may_stand_for
from ingest.source.source import OpenFile, Status
from ingest.source.streams import Stream
from ingest.source.walk import DamagedArchive, Walked

_HEADER_BYTES: Final = 1 << 20
"""Most that is read of a header; the longest path has 4,096 bytes."""
_STEP_BYTES: Final = 1 << 18
_LATEST: Final = 2**63 - 1


def walk_tar(file: OpenFile, compression: str) -> Iterator[Walked]:
    """Yield what lies in a tar archive, in order; the content of each can be read until the next.

    Raises:
        DamagedArchive: it is damaged, cut off, or stands for too much; or what `damage` names.
        OSError: it cannot be read.
    """
    forward = _Forward(_decompressed(file.stream, compression), file.size if compression else None)
    with tarfile.open(
        fileobj=cast("IO[bytes]", forward), mode="r:", encoding="utf-8", errors="surrogateescape"
    ) as archive:
        while (one := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined] # it keeps all of them
            yield _walked(one, forward)
    if not forward.last_block or forward.last_block.strip(b"\0"):
        raise DamagedArchive("there is no end of the archive where one is due")


def _walked(one: tarfile.TarInfo, forward: _Forward) -> Walked:
    time = max(-_LATEST, min(int(one.mtime * 1_000_000_000), _LATEST))
    why_not = None
    if one.issym() or one.islnk():
        why_not = f"is a link to {one.linkname} in the archive, which is not followed"
    elif one.isreg() and one.issparse():
        why_not = "is stored as a sparse file, which is not read; pack it without --sparse"
    is_file = one.isreg() or why_not is not None
    start = one.offset_data

    def opened() -> IO[bytes]:
        forward.seek(start)
        return io.BufferedReader(_Within(forward, one.size), 1 << 16)

    return Walked(one.name, is_file, why_not, Status(one.size, time), opened)


def _decompressed(stream: IO[bytes], compression: str) -> IO[bytes]:
    if compression == "gzip":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    if compression == "xz":
        return cast("IO[bytes]", lzma.LZMAFile(stream))
    if compression == "zstd":
        import pyarrow as pa

        return cast("IO[bytes]", pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd"))
    return stream


class _Forward:
    """A stream for `tarfile` that is read once, forward.

    Attributes:
        last_block: the last header that was read.
    """

    def __init__(self, stream: IO[bytes], packed: int | None) -> None:
        self._stream = stream
        self._packed = packed
        self._at = 0
        self.last_block = b""

    def tell(self) -> int:
        return self._at

    def read(self, size: int) -> bytes:
        if size > _HEADER_BYTES:
            raise DamagedArchive(f"a header claims {size:,} bytes")
        parts = []
        while size and (data := self._stream.read(size)):
            parts.append(data)
            size -= len(data)
            self._at += len(data)
        if self._packed is not None and not may_stand_for(self._packed, self._at):
            raise DamagedArchive(
                f"{self._packed:,} compressed bytes stand for more than {self._at:,}; unpack it, if that is"
                " meant"
            )
        self.last_block = data = b"".join(parts)
        return data

    def seek(self, place: int) -> None:
        """Go forward."""
        if place < self._at:
            raise DamagedArchive("a header leads backward")
        if self._packed is None:
            self._stream.seek(place)
            self._at = place
        while self._at < place and self.read(min(_STEP_BYTES, place - self._at)):
            pass


class _Within(Stream):
    """The content of one file."""

    def __init__(self, forward: _Forward, size: int) -> None:
        self._forward, self._left = forward, size

    def seekable(self) -> bool:
        return False

    def read_some(self, size: int) -> bytes:
        data = self._forward.read(min(size, self._left, _STEP_BYTES))
        if not data and self._left:
            raise DamagedArchive("it is cut off")
        self._left -= len(data)
        return data
