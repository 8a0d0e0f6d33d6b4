"""Read archives without unpacking them to a disk: what lies in one, and the content of some of it.

An archive is read from its start to its end. What is wanted of it is kept in memory, compressed, until it was
staged (`ingest.pipeline.unpack`); so a tar archive, which has no directory, is not read anew for each file.
"""

from __future__ import annotations

import errno
import io
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import IO, Final, NamedTuple

from ingest.display import display
from ingest.source.kinds import TAR_ENDINGS, ZIP_ENDINGS
from ingest.source.limits import MAX_FILES
from ingest.source.local import open_found, source_of, status_of
from ingest.source.source import APART, OpenFile, Status, Terms, found_of
from ingest.source.streams import Stream
from ingest.source.tar import walk_tar
from ingest.source.walk import DamagedArchive, Walked, damage
from ingest.source.zip import etag_of, walk_zip

START_BYTES: Final = 512
"""Kept of each file that only its content can place."""
_BLOCK_BYTES: Final = 1 << 18
_PLAIN_BYTES: Final = 64 << 10
"""Up to this size compression saves less than it costs."""
_MOST_REPORTED: Final = 20
_DRIVE: Final = re.compile("[A-Za-z]:")


class Listed(NamedTuple):
    """A file in an archive."""

    name: str
    """Its path in the archive."""
    status: Status
    start: bytes | None
    """Its first bytes, where they were wanted."""


class Listing(NamedTuple):
    """What lies in an archive."""

    files: tuple[Listed, ...]
    """In its order."""
    problems: tuple[tuple[str, str], ...]
    """Names, fit to show, and why they are left out."""


class Packed(NamedTuple):
    """The content of a file, in memory."""

    data: bytes
    """Compressed by zstd, unless it is as long as the content."""
    size: int
    """Bytes of the content."""

    def open(self) -> IO[bytes]:
        """Return the content as a stream that can be sought forward and back to its start."""
        if len(self.data) == self.size:
            return io.BytesIO(self.data)
        return io.BufferedReader(_Restarting(self._decompressed), _BLOCK_BYTES)

    def _decompressed(self) -> Iterator[IO[bytes]]:
        import pyarrow as pa

        with pa.CompressedInputStream(pa.BufferReader(self.data), "zstd") as stream:
            yield stream


def list_archive(path: str, wants_start: Callable[[str], bool]) -> Listing:
    """List the files of an archive.

    Args:
        path: the archive.
        wants_start: says of a path in it whether the first bytes of the file are wanted.

    Raises:
        DamagedArchive: it cannot be read to its end, or has too many files.
        OSError: as `ingest.source.source.Source.open`.
    """
    found: dict[str, Listed] = {}
    problems: dict[str, str] = {}
    count = 0
    with damage():
        for walked in _walk(path):
            count += 1
            if count > MAX_FILES:
                raise DamagedArchive(f"it has more than {MAX_FILES:,} files; unpack it, and give parts of it")
            if not walked.is_file:
                continue
            name = _inside(walked.name)
            if name is None:
                problems[walked.name] = "names a place outside of the archive"
            elif walked.why_not is not None:
                problems[name] = walked.why_not
            elif name in found:
                problems[name] = "is there twice; leave one of them out of the archive"
            else:
                found[name] = _listed(name, walked, wants_start(name))
    files = tuple(one for one in found.values() if one.name not in problems)
    shown = [(display(name), display(why)) for name, why in problems.items()]
    if len(shown) > _MOST_REPORTED:
        more = len(shown) - _MOST_REPORTED
        shown[_MOST_REPORTED:] = [("", f"{more:,} more of its files are left out for reasons as those")]
    return Listing(files, tuple(shown))


def _listed(name: str, walked: Walked, wants_start: bool) -> Listed:
    """List a file; a tar archive has no sum of its content, so it is read through."""
    start = None
    status = walked.status
    if status.etag is None:
        crc = 0
        with walked.open() as stream:
            start = stream.read(START_BYTES) if wants_start else b""
            crc = zlib.crc32(start)
            while data := stream.read(_BLOCK_BYTES):
                crc = zlib.crc32(data, crc)
        status = status._replace(etag=etag_of(crc))
    elif wants_start:
        with walked.open() as stream:
            start = stream.read(START_BYTES)
    return Listed(name, status, start if wants_start else None)


def read_members(path: str, wanted: Collection[str]) -> Iterator[tuple[str, Packed]]:
    """Yield the content of files of an archive, in its order.

    Args:
        path: the archive.
        wanted: paths in it, as `list_archive` has them; what is taken out meanwhile is passed over.

    Raises:
        DamagedArchive: as `list_archive`.
        OSError: as `list_archive`.
    """
    with damage():
        for walked in _walk(path):
            name = _inside(walked.name)
            if not walked.is_file or walked.why_not is not None or name is None or name not in wanted:
                continue
            try:
                with damage(), walked.open() as stream:
                    packed = _packed(stream, walked.status.size)
            except DamagedArchive:
                continue  # whoever opens it meets that again
            yield name, packed


def _packed(stream: IO[bytes], size: int) -> Packed:
    if size <= _PLAIN_BYTES:
        data = stream.read(size)
        return Packed(data, len(data))
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    count = 0
    with pa.CompressedOutputStream(sink, "zstd") as out:
        while data := stream.read(_BLOCK_BYTES):
            out.write(data)
            count += len(data)
    return Packed(sink.getvalue().to_pybytes(), count)


class ArchiveFiles:
    """The files of an archive, read where they lie: each opening goes through the archive again."""

    is_remote = False
    rereads_ranges = False

    def __init__(self, archive: str, version: Status) -> None:
        """Name the archive, a path of any source, and the version of it that was listed."""
        self.archive = archive
        self._version = version

    def name_of(self, path: str) -> str:
        """Return the path in the archive of a file."""
        return path[len(self.archive) + 1 :]

    @property
    def terms(self) -> Terms:
        """Those of the archive's source."""
        return source_of(self.archive).terms

    @property
    def is_far(self) -> bool:
        """The archive does not lie on this machine."""
        return source_of(self.archive).is_far

    def open(self, path: str, found: Status | None) -> OpenFile:
        """Open a file.

        Raises:
            OSError: it is not there, or the archive is damaged.
        """
        try:
            with damage():
                stream = _Restarting(lambda: self._opened(self.name_of(path)))
        except DamagedArchive as error:
            raise OSError(f"cannot be read from its archive: {error}") from error
        size = stream.seek(0, io.SEEK_END) if found is None else found.size
        return OpenFile(io.BufferedReader(stream, _BLOCK_BYTES), size)

    def status(self, path: str) -> Status | None:
        """Return the version that was found, as long as the archive is the same."""
        if status_of(self.archive) != self._version:
            return None
        return found_of(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return some bytes of a file; raises as `open`."""
        with self.open(path, found_of(path)).stream as stream:
            stream.seek(offset)
            return stream.read(length)

    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        for walked in _walk(self.archive):
            if walked.is_file and walked.why_not is None and _inside(walked.name) == name:
                yield walked.open()
                return
        raise FileNotFoundError(errno.ENOENT, "is not in its archive", name)


class PackedFiles:
    """Files whose content is in memory, or why it is not there."""

    terms = APART
    is_far = is_remote = False
    rereads_ranges = False

    def __init__(self, files: Mapping[str, Packed | OSError]) -> None:
        """Take the content by path, or what whoever opens the file is to meet."""
        self._files = dict(files)

    def open(self, path: str, found: Status | None) -> OpenFile:
        """Open a file.

        Raises:
            OSError: it is not there, or what was given in place of its content.
        """
        packed = self._packed(path)
        return OpenFile(packed.open(), packed.size)

    def status(self, path: str) -> Status | None:
        """Return the version that was found: in memory nothing changes."""
        return found_of(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return some bytes of a file; raises as `open`."""
        with self._packed(path).open() as stream:
            stream.seek(offset)
            return stream.read(length)

    def _packed(self, path: str) -> Packed:
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, "is not there any more", path)
        found = self._files[path]
        if isinstance(found, OSError):
            raise found
        return found


def _walk(path: str) -> Iterator[Walked]:
    file = open_found(path)
    with file.stream:
        name = path.lower()
        if name.endswith(ZIP_ENDINGS):
            yield from walk_zip(file)
        else:
            ending = next(ending for ending in TAR_ENDINGS if name.endswith(ending))
            yield from walk_tar(file, TAR_ENDINGS[ending])


def _inside(name: str) -> str | None:
    """Return a path in an archive without detours; None where it leads out."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or ".." in parts or name.startswith("/") or "\0" in name or _DRIVE.match(name):
        return None
    return "/".join(parts)


class _Restarting(Stream):
    """A stream that goes back by starting again: by a generator that yields it open, and closes it."""

    def __init__(self, start: Callable[[], Iterator[IO[bytes]]]) -> None:
        self._start = start
        self._at = 0
        self._run = start()
        self._stream = next(self._run)

    def read_some(self, size: int) -> bytes:
        try:
            with damage():
                data = self._stream.read(size)
        except DamagedArchive as error:
            raise OSError(f"cannot be read from its archive: {error}") from error
        self._at += len(data)
        return data

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: sys.maxsize}[whence] + offset
        if place < self._at:
            self._run = self._start()
            self._stream, self._at = next(self._run), 0
        while self._at < place and self.read(min(_BLOCK_BYTES, place - self._at)):
            pass
        return self._at
