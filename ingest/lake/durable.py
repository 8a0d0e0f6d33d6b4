"""Have on disk what the next step counts on, for a lake in a folder, as with a database file.

Files of rows are there before the object of a batch names them, that object before the first commit, the rows
before the runs that make them count, and those before the object goes. Delta's log is written by deltalake,
which leaves it to the system when: after a power failure between its commit and the call here, the newest
entry may be empty. Delta reads that as a commit of nothing, and whoever completes the batch commits again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.database.file import sync
from ingest.lake.store import in_words

if TYPE_CHECKING:
    from ingest.lake.store import Lake

LOG: Final = "_delta_log"
"""Folder of a table's log."""


def sync_file(lake: Lake, name: str) -> None:
    """Have a file of a lake on disk, with its name.

    Args:
        lake: in a folder; nothing is done for one in a store.
        name: of the file or folder, below the root; empty for the root.

    Raises:
        DatabaseError: the system cannot write it.
    """
    if lake.is_local:
        with in_words(lake, name):
            path = lake.url(name) if name else lake.root
            sync(path)
            sync(os.path.dirname(path))


def sync_log(lake: Lake, table: str, since: int) -> None:
    """Have the log of a table on disk, from a version on, with its newest checkpoint.

    Args:
        lake: in a folder; nothing is done for one in a store.
        table: its name.
        since: the version that was read before a commit: whoever made it may not have come to this yet.

    Raises:
        DatabaseError: the system cannot write it.
    """
    if not lake.is_local:
        return
    folder = Path(lake.url(table), LOG)
    first = f"{since:020d}"
    with in_words(lake, table):
        # `_last_checkpoint` comes after all numbers.
        for name in sorted(one for one in os.listdir(folder) if one >= first):
            try:
                sync(os.fspath(folder / name))
            except FileNotFoundError:
                continue  # under a name for the time being
        sync(os.fspath(folder))
