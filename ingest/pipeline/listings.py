"""What lies in archives, kept from one import to the next: one that has not changed is not read at all.

    xbuf.duckdb.staging/
        archives.json       names, sizes, times and sums of the files in archives that were read, by path

The file may be deleted between imports.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ingest.database.private import is_own_folder, make_private_folder
from ingest.database.refusals import explain
from ingest.dump.elsewhere import Listings
from ingest.source.archive import Listed, Listing
from ingest.source.source import Status

__all__ = ["KeptListings"]

_FILE: Final = "archives.json"
_VERSION: Final = 1
_MOST: Final = 1000
"""Archives that are kept: those of the last import that read some, and the latest before."""


class KeptListings(Listings):
    """The listings of a database's staging folder."""

    def __init__(self, staging: Path, *, may_write: bool = True) -> None:
        """Name the place.

        Args:
            staging: folder of the database.
            may_write: keep what is found out.
        """
        self._staging = staging
        self._may_write = may_write
        self._has_news = False

    def get(self, archive: str, version: Status) -> Listing | None:
        """Return what lies in an archive of this version; None where that is not known."""
        entry = self._known.get(str(archive))
        if entry is not None:
            with suppress(ValueError, TypeError, KeyError):  # damaged: it is read again
                if Status(*entry["version"]) == version:
                    return _listing(entry)
        return None

    def put(self, archive: str, version: Status, listing: Listing) -> None:
        """Note what lies in an archive; `keep` writes it."""
        files = [
            [one.name, *one.status, None if one.start is None else one.start.hex()] for one in listing.files
        ]
        self._known.pop(str(archive), None)
        self._known[str(archive)] = {"version": version, "files": files, "problems": listing.problems}
        self._has_news = True

    def keep(self) -> None:
        """Write what was found out, for the next import.

        Raises:
            DatabaseError: the staging folder cannot be written.
        """
        if not (self._has_news and self._may_write):
            return
        make_private_folder(self._staging)
        latest = dict(list(self._known.items())[-_MOST:])
        unnamed = self._staging / f"{_FILE}.tmp"
        try:
            unnamed.write_text(json.dumps({"version": _VERSION, "archives": latest}), encoding="ascii")
            unnamed.replace(self._staging / _FILE)
        except OSError as error:
            raise explain(str(self._staging), error) from error
        self._has_news = False

    @cached_property
    def _known(self) -> dict[str, dict[str, Any]]:
        """What earlier imports found out; nothing where that is damaged."""
        if is_own_folder(self._staging):
            with suppress(OSError, ValueError, TypeError, KeyError):
                kept = json.loads((self._staging / _FILE).read_text(encoding="ascii"))
                if kept["version"] == _VERSION:
                    return dict(kept["archives"])
        return {}


def _listing(entry: dict[str, Any]) -> Listing:
    return Listing(
        tuple(_listed(one) for one in entry["files"]),
        tuple((str(name), str(why)) for name, why in entry["problems"]),
    )


def _listed(entry: Sequence[Any]) -> Listed:
    name, size, mtime_ns, etag, start = entry
    return Listed(
        str(name),
        Status(int(size), int(mtime_ns), None if etag is None else str(etag)),
        None if start is None else bytes.fromhex(start),
    )
