"""Commits to one table: once for each batch, or one after the other.

Delta refuses a commit where another one since the version that was read has an entry of the same application.
That is all that is needed here:

* a batch commits with an entry of its own: of two processes that complete it one succeeds, and whoever comes
  later finds the entry;
* what depends on what is there already (which runs are new; a file written anew) commits with the entry that
  all of its kind share, a counter: where somebody else was faster, it is worked out again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import duckdb

from ingest.errors import DatabaseError
from ingest.lake.create import require_head
from ingest.lake.durable import sync_log
from ingest.lake.store import Lake, in_words

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_BATCH: Final = "batch-{}"
_IN_TURN: Final = "in-turn"
_NUMBERS: Final = "batches"
_TRIALS: Final = 100
_READINGS: Final = 3
_PAUSE_SECONDS: Final = 0.02
_LONGEST_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit changes; nothing, but for its entry, by default.

    Attributes:
        added: files.
        removed: files.
        batch: the batch that the table has with it.
    """

    added: Sequence[AddAction] = ()
    removed: Sequence[RemoveAction] = field(default=())
    batch: int | None = None


def has_batch(table: DeltaTable, number: int) -> bool:
    """Return whether a table has what a batch adds to it."""
    return table.transaction_version(_BATCH.format(number)) is not None


def is_done(lake: Lake, table: DeltaTable, name: str, number: int) -> bool:
    """Return whether a table has what a batch adds to it, and see to it that it is on disk.

    Raises:
        DatabaseError: the store refuses.
    """
    if not has_batch(table, number):
        return False
    sync_log(lake, name, 0)
    return True


def add_once(lake: Lake, name: str, number: int, added: Sequence[AddAction]) -> None:
    """Add the files of a batch to a table, unless they are there.

    Raises:
        DatabaseError: the store refuses.
    """
    for trial in range(_TRIALS):
        table = lake.table(name)
        if is_done(lake, table, name, number) or _commit(lake, name, table, Change(added, batch=number)):
            return
        _pause(trial)
    raise _crowded(lake, name)


def change_in_turn(lake: Lake, name: str, work_out: Callable[[DeltaTable], Change | None]) -> None:
    """Change a table by what `work_out` says of its newest version, with no other such change in between.

    Args:
        lake: where it is.
        name: of the table.
        work_out: called again where another process was faster; None for nothing to do.

    Raises:
        DatabaseError: the store refuses.
    """
    _in_turn(lake, name, _IN_TURN, work_out)


def take_number(lake: Lake) -> int:
    """Return a batch number that nobody else has or will get.

    Raises:
        DatabaseError: the store refuses, or the lake is not of the revision of this xbuf.
    """

    def nothing(table: DeltaTable) -> Change:
        require_head(lake, table)
        return Change()

    return _in_turn(lake, "imports", _NUMBERS, nothing)


def _in_turn(lake: Lake, name: str, counter: str, work_out: Callable[[DeltaTable], Change | None]) -> int:
    for trial in range(_TRIALS):
        table = lake.table(name)
        turn = (table.transaction_version(counter) or 0) + 1
        try:
            change = work_out(table)
        except (duckdb.IOException, OSError) as error:
            # A file that this version names has gone: others wrote it anew, and a vacuum kept nothing.
            if trial == _READINGS - 1:
                with in_words(lake, name):
                    raise error
            _pause(trial)
            continue
        if change is None or _commit(lake, name, table, change, (counter, turn)):
            return turn
        _pause(trial)
    raise _crowded(lake, name)


def _commit(
    lake: Lake, name: str, table: DeltaTable, change: Change, entry: tuple[str, int] | None = None
) -> bool:
    """Commit to a table; return False where a commit in between has the same entry, or removed a file too."""
    from deltalake import CommitProperties, Transaction
    from deltalake.exceptions import CommitFailedError

    entries = [] if entry is None else [Transaction(*entry)]
    if change.batch is not None:
        entries.append(Transaction(_BATCH.format(change.batch), 0))
    with in_words(lake, name):
        try:
            table.create_write_transaction(
                [*change.added, *change.removed],
                "append",
                table.schema(),
                commit_properties=CommitProperties(app_transactions=entries),
            )
        except CommitFailedError:
            if lake.table(name).version() == table.version():
                raise  # nobody was faster: the store refuses
            return False
    sync_log(lake, name, table.version())
    return True


def _pause(trial: int) -> None:
    longest = min(_PAUSE_SECONDS * 2 ** min(trial, 10), _LONGEST_SECONDS)
    time.sleep(random.uniform(longest / 4, longest))


def _crowded(lake: Lake, name: str) -> DatabaseError:
    return DatabaseError(
        f"{lake}/{name}: {_TRIALS} commits in a row met those of other writers; run again when fewer are at"
        " work"
    )
