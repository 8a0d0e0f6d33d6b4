"""New databases of tests, copied from the first of their kind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from ingest.database.file import CONFIG
from tests.support.once import made_once


class NewDatabases:
    """Stands in for `create_at_head`: making a database takes 0.2 s, and tests need some 600.

    Those with the saved queries list them, as installed, but lack their views and macros, unless within
    `with_macros`. DuckDB reads these whenever it opens a file, frees them when it closes it and writes them
    whenever it commits to one: half of the time of 3,000 connections.
    """

    def __init__(self, factory: pytest.TempPathFactory, create_at_head: Callable[..., None]) -> None:
        self._factory = factory
        self._create_at_head = create_at_head
        self._has_macros = False

    @contextmanager
    def with_macros(self) -> Iterator[None]:
        """Install the views and macros of the saved queries in the databases that are made within."""
        before, self._has_macros = self._has_macros, True
        try:
            yield
        finally:
            self._has_macros = before

    def create_at_head(self, path: str, *, with_queries: bool = False) -> None:
        """Copy a database; see `ingest.database.creation.create_at_head`."""

        def whole(folder: Path) -> Path:
            self._create_at_head(str(folder / "new.duckdb"), with_queries=with_queries)
            return folder / "new.duckdb"

        def without_macros(folder: Path) -> Path:
            self._create_at_head(str(folder / "new.duckdb"))
            with duckdb.connect(str(folder / "new.duckdb"), config=CONFIG) as new:
                new.execute(f"ATTACH '{self._first('whole', whole)}' AS whole (READ_ONLY)")
                new.execute("INSERT INTO saved_queries FROM whole.saved_queries")
            return folder / "new.duckdb"

        if not with_queries or self._has_macros:
            first = self._first("whole" if with_queries else "empty", whole)
        else:
            first = self._first("without-macros", without_macros)
        # Without its mode: a new file follows the umask of its test.
        shutil.copyfile(first, path)

    def _first(self, kind: str, make: Callable[[Path], Path]) -> Path:
        return made_once(self._factory, f"new-{kind}", make)
