"""A directory of one dump set that changes, and the database that it is imported into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ingest import ImportSummary, import_dumps, open_database


class Place:
    """A new directory for the files of a set, and a database."""

    def __init__(self, folder: Path, database: Path) -> None:
        self.folder = folder
        self.database = database
        self._reading: duckdb.DuckDBPyConnection | None = None
        folder.mkdir()

    def load(self, **options: Any) -> ImportSummary:
        """Import what is there."""
        self.close()
        return import_dumps(self.folder, self.database, jobs=1, **options)

    def query(self, sql: str) -> list[Any]:
        """Ask the database."""
        if self._reading is None:
            self._reading = open_database(self.database, read_only=True)
        return self._reading.execute(sql).fetchall()

    def close(self) -> None:
        """Close the connection of the questions: opening one for each takes 25 ms."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None
