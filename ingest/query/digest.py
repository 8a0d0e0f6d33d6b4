"""Read which version of the saved queries a database holds.

Apart from their installation, so that an import that finds them installed need not import what reads and
writes queries: 15 ms.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.resources import queries_dir
from ingest.version import VERSION

if TYPE_CHECKING:
    import duckdb


def shipped_digest() -> str:
    """Return the SHA-256 of everything that an installation is made of, as it was when first asked for."""
    return _digest(VERSION, queries_dir())


def installed_digest(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return the digest of the installation in a database; None without one."""
    rows = connection.execute("SELECT min(sha256), max(sha256) FROM saved_queries").fetchall()
    [(least, greatest)] = rows
    return str(least) if least is not None and least == greatest else None


@cache
def _digest(version: str, folder: Path) -> str:
    digest = hashlib.sha256(version.encode())
    for path in sorted(folder.rglob("*.sql")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
