"""Where a result goes: stdout or a file that appears only when it is complete."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ingest.errors import OutputError, UsageError
from ingest.query.formats import FORMATS, Written, write_parquet, write_text
from ingest.query.result import Result

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".md": "markdown",
    ".parquet": "parquet",
    ".txt": "table",
    "": "table",
}

_NO_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
"""What a mistake in a path gives; all else is the file system's trouble."""


def choose_format(format_: str | None, path: Path | None) -> str:
    """Choose the format: the one asked for, else the one that the file's ending names, else a table.

    Raises:
        UsageError: Parquet without a file; a file with an ending that names no format.
    """
    chosen = format_ or (_ENDINGS.get(path.suffix.lower()) if path else "table")
    if chosen is None:
        known = ", ".join(filter(None, _ENDINGS))
        raise UsageError(f"{path}: no format has that ending; use one of {known}, or name it with --format")
    assert chosen in FORMATS
    if chosen == "parquet" and path is None:
        raise UsageError("--format parquet is binary: name a file with -o FILE")
    return chosen


def terminal_width() -> int:
    """Return the columns of the terminal: COLUMNS, else what it reports, else 80."""
    return shutil.get_terminal_size((80, 24)).columns


def write_file(
    result: Result, format_: str, path: Path, width: int | None, *, database: str | None = None
) -> Written:
    """Write a result to a file, as `_target` says.

    Args:
        database: file that must not be written over.

    Raises:
        UsageError: the path names no place for a file, or the database.
        OutputError: the file cannot be written: the disk is full, rights are missing.
    """
    with _target(path, database) as target:
        return _write(result, format_, target, width)


def write_bytes(content: bytes, path: Path, *, database: str) -> None:
    """Write a picture or a page to a file, as `_target` says; raises as `write_file` does."""
    with _target(path, database) as target:
        target.write_bytes(content)


@contextmanager
def _target(path: Path, database: str | None) -> Iterator[Path]:
    """Yield the path to write to; an earlier file of that name stays until the new one is complete.

    A device, a FIFO or a standard stream is written to as it is. A link stays, and the file that it leads to
    is replaced.
    """
    place = Path(os.path.realpath(path))
    if database is not None and _is_part_of(place, database):
        raise UsageError(f"{path}: is the database itself; write to another file")
    if _is_stream(path):  # the place of a pipe is no path
        with _explained(path):
            yield path
    else:
        with _explained(path), _replacing(place) as temporary:
            yield temporary


def _write(result: Result, format_: str, path: Path, width: int | None) -> Written:
    if format_ == "parquet":
        with path.open("wb") as sink:
            return write_parquet(result, sink)
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
        return write_text(result, format_, out, width)


def _is_part_of(place: Path, database: str) -> bool:
    """Return whether a file is the database or its log, by any of its names."""
    parts = (os.path.realpath(database), os.path.realpath(database) + ".wal")
    return str(place) in parts or any(
        os.path.exists(part) and place.exists() and place.samefile(part) for part in parts
    )


def _is_stream(path: Path) -> bool:
    """Return whether a file has readers or a writer who would not see that another took its place."""
    try:
        status = path.stat()
    except OSError:
        return False
    streams = []
    for descriptor in (1, 2):
        with suppress(OSError):
            streams.append(os.fstat(descriptor))
    return not stat.S_ISREG(status.st_mode) or any(os.path.samestat(status, stream) for stream in streams)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = UsageError if error.errno in _NO_PLACE else OutputError
        raise kind(f"{path}: cannot be written: {error.strerror}") from error


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a path next to `path` that takes its place at the end."""
    descriptor, name = tempfile.mkstemp(prefix=".xbuf-", dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
