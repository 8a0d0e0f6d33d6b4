"""What DuckDB and the operating system say when they refuse a database, in words with a remedy."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import duckdb

from ingest.errors import DatabaseError, DatabaseLocked, DatabaseTooNew, NotADatabase
from ingest.source.kinds import without_secrets

# "… Conflicting lock is held in /usr/bin/duckdb (PID 812) by user ann. See also …"; what the system does not
# say is left out.
_HOLDER = re.compile(r"lock is held in (?P<command>.+?) \(PID (?P<pid>\d+)\)")
_COMMAND_CHARACTERS = 120
_COMMAND_BYTES = 4096


class _Refusal(NamedTuple):
    """A text to recognise and what it means; `{path}` and `{detail}` are filled in."""

    sign: re.Pattern[str]
    kind: type[DatabaseError]
    message: str


_REFUSALS = (
    _Refusal(
        re.compile(r"database file with version number|storage version|written by a newer", re.IGNORECASE),
        DatabaseTooNew,
        "{path}: a newer DuckDB wrote this file ({detail}); upgrade xbuf",
    ),
    _Refusal(
        re.compile(
            r"not a valid DuckDB database|Extension \"sqlite\"|not an extension|Loading external extensions",
            re.IGNORECASE,
        ),
        NotADatabase,
        "{path}: is no DuckDB database; it is left untouched: name another with --db",
    ),
    _Refusal(
        re.compile(r"Cannot open encrypted database"),
        NotADatabase,
        "{path}: is encrypted, which xbuf does not read; it is left untouched: name another with --db",
    ),
    _Refusal(
        re.compile(r"replaying WAL|WAL does not match", re.IGNORECASE),
        DatabaseError,
        "{path}: its write-ahead log {path}.wal is damaged or belongs to another database ({detail}); nothing"
        " was changed: restore both files together, or move the .wal away and lose what it holds",
    ),
    _Refusal(
        re.compile(r"No space left|File too large|quota exceeded", re.IGNORECASE),
        DatabaseError,
        "{path}: no space left to write it ({detail}); free some and run again: what was committed is safe",
    ),
    _Refusal(
        re.compile(r"Corrupt database file|Could not read enough bytes|Serialization Error", re.IGNORECASE),
        NotADatabase,
        "{path}: is damaged ({detail}); it is left untouched: restore it, or name another with --db",
    ),
    _Refusal(
        re.compile(r"Read-only file system"),
        DatabaseError,
        "{path}: its file system is read-only; name another database with --db",
    ),
    _Refusal(
        re.compile(r"Permission denied|Operation not permitted"),
        DatabaseError,
        "{path}: no permission to write the file or its folder, or to read it; check both, or name another"
        " database with --db",
    ),
    _Refusal(
        re.compile(r"No such file or directory|Not a directory"),
        DatabaseError,
        "{path}: its folder does not exist; create it, or name another database with --db",
    ),
    _Refusal(
        re.compile(r"Out of Memory", re.IGNORECASE),
        DatabaseError,
        "{path}: DuckDB ran out of memory ({detail})",
    ),
)


def explain(path: str, error: duckdb.Error | OSError | ValueError) -> DatabaseError:
    """Return the error to raise in place of one that DuckDB or the system raised for a database file.

    Use it around everything that reads or writes the file: `raise explain(path, error) from error`.
    """
    text = str(error)
    if "Could not set lock" in text:
        return _locked(path, text)
    if isinstance(error, duckdb.ConnectionException) and "different configuration" in text:
        return DatabaseLocked(path, os.getpid(), "this process, in another mode")
    if isinstance(error, UnicodeError):
        return DatabaseError(f"{path}: DuckDB opens only paths that are UTF-8; rename it, or name another")
    detail = _detail(text)
    for refusal in _REFUSALS:
        if refusal.sign.search(text):
            return refusal.kind(refusal.message.format(path=path, detail=detail))
    return DatabaseError(f"{path}: {detail}")


def _detail(text: str) -> str:
    """Return the first line without DuckDB's class name, e.g. `IO Error: `."""
    first = text.strip().partition("\n")[0]
    return re.sub(r"^(?:\w+ Error: )+", "", first).rstrip(".")


def _locked(path: str, text: str) -> DatabaseLocked:
    if not (holder := _HOLDER.search(text)):
        return DatabaseLocked(path)
    pid = int(holder["pid"])
    return DatabaseLocked(path, pid, command_line(pid) or holder["command"])


def command_line(pid: int) -> str | None:
    """Return what the process was called with, as ps shows it; DuckDB names only its program.

    None where the system does not say (no /proc, another user's process, or it has just ended).
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            data = file.read(_COMMAND_BYTES)
    except OSError:
        return None
    words = data.split(b"\0")
    if len(data) == _COMMAND_BYTES:
        words.pop()  # of half a URL nobody knows what is its password
    command = " ".join(without_secrets(os.fsdecode(word)) for word in words if word)
    return command if len(command) <= _COMMAND_CHARACTERS else command[: _COMMAND_CHARACTERS - 1] + "…"
