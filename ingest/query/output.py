"""Where a result goes: stdout or a file that appears only when it is complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ingest.errors import UsageError
from ingest.query.formats import FORMATS, Written, write_parquet, write_text
from ingest.query.run import Result

__all__ = ["choose_format", "terminal_width", "write_file"]

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".md": "markdown",
    ".parquet": "parquet",
}


def choose_format(format_: str | None, path: Path | None) -> str:
    """Choose the format: the one asked for, else the one that the file's ending names, else a table.

    Raises:
        UsageError: Parquet without a file.
    """
    chosen = format_ or (_ENDINGS.get(path.suffix.lower(), "table") if path else "table")
    assert chosen in FORMATS
    if chosen == "parquet" and path is None:
        raise UsageError("--format parquet is binary: name a file with -o FILE")
    return chosen


def terminal_width() -> int:
    """Return the columns of the terminal: COLUMNS, else what it tells, else 80."""
    return shutil.get_terminal_size((80, 24)).columns


def write_file(result: Result, format_: str, path: Path, width: int | None) -> Written:
    """Write a result to a file; an earlier file of that name stays until the new one is complete.

    Raises:
        UsageError: the file cannot be written.
    """
    with _replacing(path) as temporary:
        if format_ == "parquet":
            return write_parquet(result, temporary)
        with _open(temporary) as out:
            return write_text(result, format_, out, width)


def _open(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", errors="backslashreplace", newline="")


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` that takes its place at the end."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=".xbuf-", dir=path.parent)
        os.close(descriptor)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
