"""What archives have in common: what one meets on the way through them."""

from __future__ import annotations

import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Final, NamedTuple

from ingest.source.source import Status

_DAMAGE: Final = (
    EOFError,
    NotImplementedError,
    ValueError,  # pyarrow's ArrowInvalid is one
    gzip.BadGzipFile,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the libraries raise where an archive is damaged or cut off."""


class DamagedArchive(Exception):
    """An archive that cannot be read to its end; str() says why."""


@contextmanager
def damage() -> Iterator[None]:
    """Turn what the libraries raise into DamagedArchive."""
    try:
        yield
    except _DAMAGE as error:
        raise DamagedArchive(str(error) or type(error).__name__) from error


class Walked(NamedTuple):
    """Something in an archive."""

    name: str
    """As the archive has it."""
    is_file: bool
    why_not: str | None
    """Why a file, or what stands in the place of one, is not read."""
    status: Status
    """Its etag is the CRC of the content where the archive has one."""
    open: Callable[[], IO[bytes]]
    """Open the content; good until the next one is met."""
