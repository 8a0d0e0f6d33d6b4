"""Remove the files of a lake that do not count: replaced ones, and those of writers that died.

A writer that sleeps for longer than files are kept must not make a removed file count when it wakes up. So
before anything is removed, its way is blocked, whatever the clocks say: a batch without object gets one that
says so, and a change of rows meets the turn that is taken here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ingest.errors import UsageError
from ingest.lake.batch import abandon, read_batch
from ingest.lake.commit import complete_all
from ingest.lake.create import open_imports
from ingest.lake.files import number_of
from ingest.lake.layout import LAKE_TABLES
from ingest.lake.store import Lake, in_words
from ingest.lake.transactions import Change, change_in_turn, has_batch

KEEP_HOURS: Final = 168
"""A reader that began earlier finds its files gone."""


class Vacuumed(NamedTuple):
    """What a vacuum removed, or would."""

    files: int
    bytes: int


def vacuum_lake(lake: Lake, *, keep_hours: int = KEEP_HOURS, dry_run: bool = False) -> Vacuumed:
    """Remove files that have not counted for long.

    Args:
        lake: at head.
        keep_hours: files that counted, or were written, within so many hours stay.
        dry_run: only count them.

    Raises:
        DatabaseError: the store refuses.
        UsageError: a negative time.
    """
    if keep_hours < 0:
        raise UsageError("files cannot be kept for less than 0 hours")
    open_imports(lake)
    if not dry_run:
        complete_all(lake)
    files = size = 0
    for name in LAKE_TABLES:
        removable = _over(lake, _old(lake, name, keep_hours), dry_run=dry_run)
        if removable and not dry_run:
            change_in_turn(lake, name, lambda table: Change())
        sizes = _remove(lake, name, removable, dry_run=dry_run)
        files += len(sizes)
        size += sum(sizes)
    return Vacuumed(files, size)


def _old(lake: Lake, name: str, keep_hours: int) -> list[str]:
    """Return the files of a table that do not count and are old enough."""
    with in_words(lake, name):
        found = lake.table(name).vacuum(
            retention_hours=keep_hours, dry_run=True, enforce_retention_duration=False, full=True
        )
    return [path for path in found if path.endswith(".parquet")]


def _over(lake: Lake, paths: Sequence[str], *, dry_run: bool) -> list[str]:
    """Return the files, of some that do not count, whose batches are over; one without object is given up."""
    if not paths:
        return []
    imports = lake.table("imports")
    numbers = {number for path in paths if (number := number_of(path)) is not None}
    waiting = {
        number
        for number in numbers
        if not has_batch(imports, number)
        and (read_batch(lake, number) is not None if dry_run else not abandon(lake, number))
    }
    return [path for path in paths if number_of(path) not in waiting]


def _remove(lake: Lake, name: str, paths: Sequence[str], *, dry_run: bool) -> list[int]:
    """Remove files; return their sizes. One that counts now stays."""
    import obstore

    counts = {uri.rpartition("/")[2] for uri in lake.table(name).file_uris()}
    store = lake.objects()
    sizes = []
    with in_words(lake, name):
        for path in paths:
            if path in counts:
                continue
            key = f"{name}/{path}"
            try:
                sizes.append(int(obstore.head(store, key)["size"]))
                if not dry_run:
                    obstore.delete(store, key)
            except FileNotFoundError:
                continue  # another vacuum was faster
    return sizes
