"""Say in words why a file of a lake could not be read, which DuckDB finds out in the middle of a query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ingest.errors import DatabaseError
from ingest.lake.store import Lake

if TYPE_CHECKING:
    import duckdb

SCHEME: Final = "xbuflake"
"""Files in stores are SCHEME://TABLE/FILE to DuckDB."""
_OURS: Final = re.compile(r"(?:DatabaseError|NotADatabase): (.*)")
"""An exception of Python's passes through DuckDB as a text."""
_GONE: Final = re.compile(r"No files found|No such file")


def gone(lake: Lake, name: str) -> DatabaseError:
    """Return the error for a file that is there no more."""
    return DatabaseError(
        f"{lake}/{name}: is gone: a vacuum removed it meanwhile, so run again; or see xbuf lake verify {lake}"
    )


def failure_of(lake: Lake, error: duckdb.Error) -> DatabaseError | None:
    """Return the error to raise in place of one of DuckDB's about a file of a lake; None for any other."""
    text = str(error)
    first = text.partition("\n")[0]
    if ours := _OURS.match(first):
        return DatabaseError(ours[1])
    if f"{SCHEME}://" not in text and lake.root not in text:
        return None
    name = re.search(r"/(\w+/[\w.+=-]+\.parquet)", text)
    file = name[1] if name else "a file"
    if _GONE.search(text):
        return gone(lake, file)
    reason = re.sub(r"^(?:[\w ]+ Error: )+", "", first)
    return DatabaseError(
        f"{lake}/{file}: cannot be read ({reason}); xbuf lake verify {lake} looks at all files"
    )
