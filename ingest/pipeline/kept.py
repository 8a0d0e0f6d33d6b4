"""Facts about files, by path, kept in the staging folder from one import to the next.

Such a file saves time and may be deleted between imports: what is damaged, or of another version, counts as
not known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ingest.database.private import is_own_folder, make_private_folder, replace_text
from ingest.database.refusals import explain

_VERSION: Final = 1


class KeptFacts:
    """A JSON file of a database's staging folder.

    Attributes:
        has_news: something was put that is not written yet, and may be.
    """

    def __init__(self, staging: Path, kind: str, *, may_write: bool) -> None:
        """Name the place.

        Args:
            staging: folder of the database.
            kind: what the facts are about; the file is KIND.json.
            may_write: there may be news.
        """
        self.has_news = False
        self._staging = staging
        self._kind = kind
        self._may_write = may_write

    @cached_property
    def entries(self) -> dict[str, Any]:
        """What is known, by path, in the order in which it was found out; nothing where that is damaged."""
        if is_own_folder(self._staging):
            with suppress(OSError, ValueError, TypeError, KeyError):
                kept = json.loads(self._path.read_text(encoding="ascii"))
                if kept["version"] == _VERSION:
                    return dict(kept[self._kind])
        return {}

    def put(self, path: str, entry: Any) -> None:
        """Note what JSON can hold; the latest comes last."""
        self.entries.pop(path, None)
        self.entries[path] = entry
        self.has_news = self._may_write

    def write(self, entries: Mapping[str, Any]) -> None:
        """Replace the file, atomically.

        Args:
            entries: those to keep.

        Raises:
            DatabaseError: the staging folder cannot be written.
        """
        make_private_folder(self._staging)
        try:
            replace_text(self._path, json.dumps({"version": _VERSION, self._kind: entries}))
        except OSError as error:
            raise explain(str(self._staging), error) from error
        self.has_news = False

    @property
    def _path(self) -> Path:
        return self._staging / f"{self._kind}.json"
