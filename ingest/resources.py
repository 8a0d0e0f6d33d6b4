"""Where the files that are no Python modules lie: migrations and saved queries.

A wheel carries them inside the package (`ingest/migrations`, `ingest/queries`). In a checkout, which an
editable install points to, they stand next to it. The package is never run from a zip.
"""

from __future__ import annotations

from pathlib import Path

from ingest.errors import XbufError

_PACKAGE = Path(__file__).resolve().parent


def migrations_dir() -> Path:
    """Return the folder of the Alembic environment."""
    return _find("migrations", "env.py")


def queries_dir() -> Path:
    """Return the folder of the saved queries (`NAME.sql`)."""
    return _find("queries", "*.sql")


def _find(name: str, member: str) -> Path:
    # The member distinguishes our folder from another project's: site-packages may hold any `migrations`.
    for directory in (_PACKAGE / name, _PACKAGE.parent / name):
        if any(directory.glob(member)):
            return directory
    raise XbufError(f"{_PACKAGE}: the installation lacks its {name}; install xbuf again")
