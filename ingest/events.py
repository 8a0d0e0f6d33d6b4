"""What happens during an import, one event at a time: what a log of a scheduled import is made of."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import NamedTuple

__all__ = [
    "Event",
    "ImportFailed",
    "ImportFinished",
    "ImportStarted",
    "LeftOut",
    "Loaded",
    "NothingFound",
    "Planned",
    "Published",
    "SetRejected",
    "SourceAway",
    "StagedApart",
    "Unfinished",
    "WaitingForLock",
    "WaitingForWorkers",
    "as_json_line",
]


class ImportStarted(NamedTuple):
    """The import begins to search."""

    database: str
    sources: tuple[str, ...]
    version: str


class WaitingForLock(NamedTuple):
    """Another process has the database, or is importing into it; None where the system does not say who."""

    database: str
    pid: int | None
    command: str | None
    wait_seconds: float


class SourceAway(NamedTuple):
    """A watch could not look at a URL, and looks again."""

    message: str


class WaitingForWorkers(NamedTuple):
    """The cluster has no workers: none has joined it yet, or all are lost."""

    scheduler: str


class Planned(NamedTuple):
    """The search is done.

    Attributes:
        found: dump sets found, and what could not be looked at.
        to_read: those of them that are not known to be unchanged.
        pending: imports before this one whose work is still to be loaded or recorded.
        known_from: 'database', or 'staging' where a writer has the database and what the last import wrote
            down has to do.
    """

    found: int
    to_read: int
    pending: int
    known_from: str


class LeftOut(NamedTuple):
    """A directory is not searched: a link leads out of the directories given, or it is the kernel's."""

    path: str
    message: str


class NothingFound(NamedTuple):
    """The search has found no dump; `message` says what it looked for, and how XLA is made to write it."""

    sources: tuple[str, ...]
    message: str


class SetRejected(NamedTuple):
    """A dump set cannot be loaded."""

    file: str
    line: int | None
    kind: str
    message: str


class StagedApart(NamedTuple):
    """Dump sets were staged one by one, as together they could not be: slower, and a fault of xbuf's.

    Attributes:
        dumps: how many.
        message: what went wrong, and where.
    """

    dumps: int
    message: str


class Unfinished(NamedTuple):
    """A dump set is still being written; it is left for the next import."""

    dump: str


class Loaded(NamedTuple):
    """What was read is in the database.

    Attributes:
        runs: runs of this import.
        resumed: runs that earlier, cut off imports had read.
        by_copy: readers had the database open; they see the new runs when they open it again.
        seconds: how long the database was closed to others, or being copied.
    """

    runs: int
    resumed: int
    rows: int
    by_copy: bool
    seconds: float


class Published(NamedTuple):
    """The snapshot for readers is in place; `file_bytes` is its size."""

    path: str
    file_bytes: int
    seconds: float


class ImportFinished(NamedTuple):
    """The import has ended; `import_id` is None while it is recorded in the staging folder only."""

    status: str
    import_id: int | None
    found: int
    loaded: int
    unchanged: int
    rejected: int
    unfinished: int
    seconds: float


class ImportFailed(NamedTuple):
    """The import has ended without the database; `kept` dump sets are read and wait for the next one."""

    status: str
    kept: int
    message: str
    exit_code: int


Event = (
    ImportStarted
    | WaitingForLock
    | SourceAway
    | WaitingForWorkers
    | Planned
    | LeftOut
    | NothingFound
    | SetRejected
    | StagedApart
    | Unfinished
    | Loaded
    | Published
    | ImportFinished
    | ImportFailed
)


def as_json_line(event: Event) -> str:
    """Return an event as one line of JSON: `time` (UTC), `event` (e.g. set-rejected) and its fields."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "-", type(event).__name__).lower()
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = {"time": now, "event": name}
    return json.dumps({**fields, **event._asdict()})
