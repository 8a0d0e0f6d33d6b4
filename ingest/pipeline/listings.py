"""What lies in archives, kept from one import to the next: one that has not changed is not read at all.

    xbuf.duckdb.staging/
        archives.json       names, sizes, times and sums of the files in archives that were read, by path

The file may be deleted between imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ingest.dump.elsewhere import Listings
from ingest.pipeline.kept import KeptFacts
from ingest.source.archive import Listed, Listing
from ingest.source.source import Status

_MOST: Final = 1000
"""Archives that are kept: those of the last import that read some, and the latest before."""


class KeptListings(Listings):
    """The listings of a database's staging folder."""

    def __init__(self, staging: Path, *, may_write: bool = True, others: Listings | None = None) -> None:
        """Name the place.

        Args:
            staging: folder of the database.
            may_write: keep what is found out.
            others: where else to look for what lies in an archive.
        """
        self._kept = KeptFacts(staging, "archives", may_write=may_write)
        self._others = others or Listings()

    def get(self, archive: str, version: Status) -> Listing | None:
        """Return what lies in an archive of this version; None where that is not known."""
        entry = self._kept.entries.get(str(archive))
        if entry is not None:
            with suppress(ValueError, TypeError, KeyError):  # damaged: it is read again
                if Status(*entry["version"]) == version:
                    return _listing(entry)
        listing = self._others.get(archive, version)
        if listing is not None:
            self.put(archive, version, listing)
        return listing

    def put(self, archive: str, version: Status, listing: Listing) -> None:
        """Note what lies in an archive; `keep` writes it."""
        files = [
            [one.name, *one.status, None if one.start is None else one.start.hex()] for one in listing.files
        ]
        self._kept.put(str(archive), {"version": version, "files": files, "problems": listing.problems})

    def keep(self) -> None:
        """Write what was found out, for the next import.

        Raises:
            DatabaseError: the staging folder cannot be written.
        """
        if self._kept.has_news:
            self._kept.write(dict(list(self._kept.entries.items())[-_MOST:]))


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
