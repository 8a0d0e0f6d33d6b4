"""Walk through a zip archive by its directory, reading nothing else."""

from __future__ import annotations

import calendar
import io
import stat
import zipfile
from collections.abc import Iterator
from typing import IO, Final, cast

from ingest.source.limits import may_stand_for
from ingest.source.source import OpenFile, Status
from ingest.source.streams import Stream
from ingest.source.walk import DamagedArchive, Walked

_DIRECTORY_BYTES: Final = 256 << 20
"""Most that is read for the directory, which `zipfile` takes into memory: some two million files."""
_ENCRYPTED: Final = 0x1
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_UNIX: Final = 3


def etag_of(crc: int) -> str:
    """Return the etag of a file in an archive: what tells its content from another of equal size and time.

    Archives that are made to be reproducible have the same time for all files.
    """
    return f"crc32:{crc:08x}"


def walk_zip(file: OpenFile) -> Iterator[Walked]:
    """Yield what lies in a zip archive, in the order of its directory.

    Raises:
        DamagedArchive: its directory is too large; or what `damage` names.
        OSError: it cannot be read.
    """
    limited = _Limited(file)
    with zipfile.ZipFile(cast("IO[bytes]", io.BufferedReader(limited, 1 << 16))) as archive:
        limited.left = None
        for one in archive.infolist():
            yield _walked(archive, one)


def _walked(archive: zipfile.ZipFile, one: zipfile.ZipInfo) -> Walked:
    why_not = None
    mode = one.external_attr >> 16 if one.create_system == _UNIX else 0
    if stat.S_ISLNK(mode):
        why_not = "is a link in the archive, which is not followed"
    elif one.flag_bits & _ENCRYPTED:
        why_not = "is encrypted; unpack the archive first"
    elif one.compress_type not in _METHODS:
        why_not = f"is compressed by method {one.compress_type}, which is not read; unpack the archive first"
    elif not may_stand_for(one.compress_size, one.file_size):
        why_not = (
            f"has {one.compress_size:,} compressed bytes that stand for {one.file_size:,}; unpack the archive"
            " first, if that is meant"
        )
    try:
        time = calendar.timegm((*one.date_time, 0, 0, 0)) * 1_000_000_000
    except (ValueError, OverflowError):
        time = 0
    is_file = not one.is_dir() and (stat.S_ISREG(mode) or not stat.S_IFMT(mode) or why_not is not None)
    status = Status(one.file_size, time, etag_of(one.CRC))
    # The original name: `ZipInfo` cuts one at a NUL.
    return Walked(one.orig_filename, is_file, why_not, status, lambda: archive.open(one))


class _Limited(Stream):
    """A file of which no more than `left` bytes are read; any number once that is None."""

    def __init__(self, file: OpenFile) -> None:
        self._stream = file.stream
        self.left: int | None = _DIRECTORY_BYTES

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def read_some(self, size: int) -> bytes:
        data = self._stream.read(size)
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                raise DamagedArchive(f"its directory has more than {_DIRECTORY_BYTES >> 20} MiB")
        return data
