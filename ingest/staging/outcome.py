"""What becomes of a dump set: it is parsed, still being written, recorded already, or rejected and why."""

from __future__ import annotations

import errno
import os
import time
import traceback
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from typing import Final, TypeVar

from ingest.database.identity import holds
from ingest.display import display
from ingest.dump.content import TooMuchText
from ingest.dump.parsed import ParsedDump
from ingest.dump.sets import DumpSet
from ingest.errors import DumpError, SourceError
from ingest.hlo.kinds import OTHER
from ingest.source.local import status_of
from ingest.staging.task import Rejected, Staged, Task, Touched

_Parsed = TypeVar("_Parsed")

RECENT_SECONDS: Final = 10.0
"""A damaged set modified within this time is taken to be still being written."""


def parse_unless_unfinished(
    task: Task, result: Staged, parse: Callable[[DumpSet], _Parsed]
) -> _Parsed | None:
    """Parse a set; put a damaged one to the rejects, one that is still being written to the unfinished.

    Raises:
        TooMuchText: from `parse`.
        OSError: the staging folder cannot be written.
    """
    try:
        parsed = parse(task.dump_set)
    except DumpError as error:
        if _is_refused(error) or _is_gone(task.dump_set):
            result.rejected.append(reject(error))
            return None
        newest = max(member.mtime_ns for member in task.dump_set.members) / 1e9
        if _has_changed(task.dump_set) or abs(time.time() - newest) < RECENT_SECONDS:
            result.unfinished.append(task)
        else:
            result.rejected.append(reject(error))
        return None
    except (OSError, BrokenExecutor, TooMuchText, SourceError):
        raise
    except Exception as error:
        result.rejected.append(internal(task.dump_set, error))
        return None
    if _has_changed(task.dump_set):
        result.unfinished.append(task)
        return None
    return parsed


def is_recorded(task: Task, dump: ParsedDump, result: Staged) -> bool:
    """Say whether the database holds every member with this content; note the files' new times."""
    if not task.recorded:
        return False
    members = task.dump_set.members
    roles = {member.role for member in members}
    for recorded in reversed(task.recorded):
        if holds(recorded.sha256, roles, dump.sha256):
            result.unchanged += 1
            result.touched.append(Touched(recorded.run_id, tuple(member.as_stored() for member in members)))
            return True
    return False


def reject(error: DumpError) -> Rejected:
    """Turn an error into the columns of `rejects`, with names and text fit to show."""
    text = None if error.text is None else display(error.text[:2000])
    return Rejected(
        display(error.file),
        kind=error.kind,
        message=display(error.message),
        line=error.line,
        byte_offset=error.byte_offset,
        section=error.section,
        text=text,
    )


def internal(dump_set: DumpSet, error: Exception) -> Rejected:
    """Turn a failure of xbuf's own into a reject that asks to report it."""
    return Rejected(
        display(dump_set.path(dump_set.members[0])),
        kind="internal",
        message=display(f"xbuf failed on this dump ({_words(error)}); please report it, with the file"),
        text=_place(error),
    )


def described(error: Exception) -> str:
    """Return what went wrong in xbuf, and where."""
    return display(f"{_words(error)} ({_place(error)})")


def lost(dump_set: DumpSet) -> Rejected:
    """Return the reject of a set that its worker was lost with, also when it was alone."""
    return Rejected(
        display(os.path.join(dump_set.directory, dump_set.members[0].file_name)),
        kind="worker-lost",
        message="two processes that read it were killed or took too long, the second with nothing else to do;"
        " it is left out until its files change: --rehash tries again, where there is more memory maybe",
    )


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"


def _has_changed(dump_set: DumpSet) -> bool:
    """Return whether a member is another version than when it was found."""
    paths = dump_set.paths()
    try:
        return any(status_of(paths[member.role]) != member[2:] for member in dump_set.members)
    except OSError:
        return True


def _is_gone(dump_set: DumpSet) -> bool:
    """Return whether a member is no file any more: it was removed, or a link or a FIFO took its place."""
    for member in dump_set.members:
        with suppress(OSError):
            if status_of(dump_set.path(member)) is None:
                return True
    return False


def _is_refused(error: DumpError) -> bool:
    """Say whether waiting does not help: the system refuses to read the file, or it is another one."""
    if error.kind == OTHER:
        return True
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno not in (None, errno.ENOENT, errno.ESTALE)
