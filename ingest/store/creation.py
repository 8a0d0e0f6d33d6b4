"""Make a new database at head without Alembic, which takes a third of a second to import and run.

`migrations/head.sql` holds the statements that the migrations run on an empty database, one after the other.
A test compares it with what they run; `python -m ingest.store.migrate` writes it anew.
"""

from __future__ import annotations

from typing import Final

import duckdb

from ingest.resources import migrations_dir
from ingest.store.database import BLOCK_BYTES, CONFIG, STORAGE_VERSION

__all__ = ["HEAD_SQL", "NEW_FILE", "create_at_head"]

HEAD_SQL: Final = "head.sql"

NEW_FILE: Final[dict[str, str | bool | int | float | list[str]]] = {
    **CONFIG,
    "storage_compatibility_version": STORAGE_VERSION,
    "default_block_size": str(BLOCK_BYTES),
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
    statements = (migrations_dir() / HEAD_SQL).read_text(encoding="utf-8")
    with duckdb.connect(path, config=NEW_FILE) as connection:
        connection.execute(f"BEGIN;\n{statements}")
        if queries_of is not None:
            from ingest.query.install import install_in_new

            install_in_new(connection, queries_of)
        connection.execute("COMMIT")
        connection.execute("CHECKPOINT")
