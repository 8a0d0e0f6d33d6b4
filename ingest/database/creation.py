"""Make a new database at head without Alembic, which takes a third of a second to import and run."""

from __future__ import annotations

from typing import Final

import duckdb

from ingest.database.connect import BLOCK_BYTES, CONFIG, HEAD, STORAGE_VERSION
from ingest.database.ddl import creation

__all__ = ["NEW_FILE", "create_at_head"]

NEW_FILE: Final[dict[str, str | bool | int | float | list[str]]] = {
    **CONFIG,
    "storage_compatibility_version": STORAGE_VERSION,
    "default_block_size": str(BLOCK_BYTES),
    # A macro of 3 kB gives a second thread nothing to do, and waking it 270 times takes 30 ms of CPU.
    "threads": 1,
    # The commit writes the file, not a log of what the file then gets: 12 ms.
    "checkpoint_threshold": "1B",
}
"""Configuration of the connection that creates a file; later ones do not change what it sets."""


def create_at_head(path: str, *, queries_of: str | None = None) -> None:
    """Create a database file at head and checkpoint it.

    Args:
        path: the new file.
        queries_of: version of xbuf whose saved queries it gets at once; without, they come with the first
            load, which looks what users have made meanwhile.

    Raises:
        duckdb.Error: it cannot be written.
    """
    with duckdb.connect(path, config=NEW_FILE) as connection:
        connection.execute(f"BEGIN;\n{creation(HEAD)}")
        if queries_of is not None:
            from ingest.query.install import install_in_new

            install_in_new(connection, queries_of)
        connection.execute("COMMIT")
        connection.execute("CHECKPOINT")
