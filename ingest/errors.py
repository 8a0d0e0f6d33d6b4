"""Every error that xbuf raises on purpose, and the exit code that each one means.

XbufError                    3
├── UsageError               2   the command line asks for something impossible
├── SourceError              3   what a URL names cannot be read
├── SchedulerError           3   the cluster that stages dumps cannot be used
├── OutputError              3   stdout or the file of -o cannot be written: the disk is full, say
├── DatabaseError            3   the database cannot be used
│   ├── DatabaseLocked       3   another process holds it
│   ├── DatabaseTooNew       3   written by a newer xbuf
│   └── NotADatabase         3   the file is something else
└── DumpError                1   one dump was rejected; the others load
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "DatabaseError",
    "DatabaseLocked",
    "DatabaseTooNew",
    "DumpError",
    "ExitCode",
    "NotADatabase",
    "OutputError",
    "SchedulerError",
    "SourceError",
    "UsageError",
    "XbufError",
]


class ExitCode(IntEnum):
    """What the exit code of every command means."""

    OK = 0
    REJECTS = 1
    BROKEN = 1
    """`xbuf check`: a rule is broken; another name for 1, trouble in the data."""
    USAGE = 2
    DATABASE = 3
    UNCHECKED = 4
    """`xbuf check`: no rule is broken, and not all could be checked."""
    INTERRUPTED = 130


class XbufError(Exception):
    """Base of all errors; str() is one line for people, with the remedy."""

    exit_code: ExitCode = ExitCode.DATABASE


class UsageError(XbufError):
    """The command line asks for something impossible."""

    exit_code = ExitCode.USAGE


class SourceError(XbufError):
    """What a URL names cannot be read: the store is away or refuses, or what reads it is not installed."""


class SchedulerError(XbufError):
    """The cluster that stages dumps cannot be used: it is away, or other than the import needs it."""


class OutputError(XbufError):
    """An answer cannot be written where it is to go: the disk is full, stdout closed, a right missing."""


class DatabaseError(XbufError):
    """The database cannot be used."""


class DatabaseLocked(DatabaseError):
    """Another process holds the database.

    Attributes:
        path: the database file.
        pid: process id of the holder, if DuckDB names it.
        command: program of the holder, if DuckDB names it.
    """

    def __init__(self, path: str, pid: int | None = None, command: str | None = None) -> None:
        self.path, self.pid, self.command = path, pid, command
        holder = f"process {pid} ({command})" if pid else "another process"
        super().__init__(f"{path}: {holder} holds the database; close it or wait, then run again")

    def __reduce__(self) -> tuple[type[DatabaseLocked], tuple[str, int | None, str | None]]:
        """Travel between processes by what it is made of: its text alone would be taken for the path."""
        return type(self), (self.path, self.pid, self.command)


class DatabaseTooNew(DatabaseError):
    """The database was written by a newer xbuf."""


class NotADatabase(DatabaseError):
    """The file at the database path is no DuckDB database."""


class DumpError(XbufError):
    """One dump cannot be loaded.

    Attributes:
        file: file at fault.
        line: line in it, from 1, if one line is at fault.
        byte_offset: where that line starts, bytes from 0.
        section: allocations, values, sequence, ranges, peak or tree.
        kind: which rule failed, one word.
        message: what failed and what to do.
        text: the text concerned.
    """

    exit_code = ExitCode.REJECTS

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        file: str = "",
        line: int | None = None,
        byte_offset: int | None = None,
        section: str | None = None,
        text: str | None = None,
    ) -> None:
        self.kind, self.message = kind, message
        self.file, self.line, self.byte_offset = file, line, byte_offset
        self.section, self.text = section, text
        super().__init__(kind, message)

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.message}" if where else self.message
