"""stdout and stderr that take any text, and whose failures have a name.

stdout carries results only. Nothing fails for the encoding of a terminal: what it lacks is written as JSON
escapes it, which any JSON may hold.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Final

from ingest.errors import OutputError

_LACKING: Final = "xbuf.lacking"


class StdoutError(OutputError):
    """stdout cannot be written: the disk is full, or it is closed."""


def prepare_streams() -> None:
    """Make the standard streams take any text, and keep files of ours off the numbers of closed ones."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The database would get this number. Opened for reading, so that writing to it is an error.
            os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for the whole process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    codecs.register_error(_LACKING, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_LACKING)


def echo(text: str = "") -> None:
    """Print a line of the result.

    Raises:
        StdoutError: stdout cannot be written.
        BrokenPipeError: its reader has gone.
    """
    with writing_stdout():
        sys.stdout.write(text + "\n")


def flush_stdout() -> None:
    """Write out what is buffered; raises as `echo` does."""
    with writing_stdout():
        sys.stdout.flush()


@contextmanager
def writing_stdout() -> Iterator[None]:
    """Name failures of stdout.

    Raises:
        StdoutError: stdout cannot be written.
        BrokenPipeError: its reader has gone.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StdoutError(f"stdout cannot be written: {error.strerror}") from error


def abandon_stdout() -> None:
    """Keep the interpreter from writing out at its end what could not be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Print a line for people on stderr.

    Control characters are escaped: a message may quote a dump, or the command line of another process. Where
    stderr cannot be written either, nobody is left to hear of it; the exit code stands.
    """
    from ingest.query.cells import escape

    with suppress(OSError):
        sys.stderr.write(escape(text) + "\n")
        sys.stderr.flush()


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Write what an encoding lacks: an ellipsis as three dots, all else as JSON escapes it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join("..." if char == "…" else _json_escape(char) for char in text), error.end


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
