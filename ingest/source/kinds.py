"""Tell what a text given as a path names: a URL, an archive, or a file or folder of this machine."""

from __future__ import annotations

import os
import re
from typing import Final

from ingest.display import display

LAKE_PREFIX: Final = "lake:"
"""Start of what stands for a database and names a lake."""
ZIP_ENDINGS: Final = (".zip",)
TAR_ENDINGS: Final = {
    ".tar": "",
    ".tar.gz": "gzip",
    ".tgz": "gzip",
    ".tar.zst": "zstd",
    ".tzst": "zstd",
    ".tar.xz": "xz",
    ".txz": "xz",
}
"""Endings of names with the compression that they mean."""

_ENDINGS: Final = (*ZIP_ENDINGS, *TAR_ENDINGS)
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SCHEME: Final = r"([A-Za-z][A-Za-z0-9+.-]*://)"
_WHOLE_URL: Final = re.compile(rf"{_SCHEME}(?:[^/?#]*@)?([^?#]*).*", re.DOTALL)
_URL_IN_TEXT: Final = re.compile(rf"{_SCHEME}(?:[^\s/?#]*@)?([^\s?#]*)\S*")


def is_url(text: str) -> bool:
    """Say whether a text is a URL rather than a path."""
    return _URL.match(text) is not None


def is_lake(database: str) -> bool:
    """Say whether what stands for a database names a lake; `./lake:x` is a file."""
    return database.startswith(LAKE_PREFIX)


def is_archive(name: str) -> bool:
    """Say whether a name is one of an archive."""
    return name.lower().endswith(_ENDINGS)


def is_elsewhere(text: str) -> bool:
    """Say whether a text names a URL or an archive."""
    return is_url(text) or (is_archive(text) and not os.path.isdir(text))


def without_secrets(text: str) -> str:
    """Return a URL, or a text with URLs in it, fit to show: without user, query and fragment.

    Of a URL that cannot be taken apart, as one with a slash in its password, only the scheme is left.
    """
    whole = _WHOLE_URL.fullmatch(text)
    if whole is None:
        return _URL_IN_TEXT.sub(r"\1\2", text)
    return f"{whole[1]}{whole[2]}" if is_well_formed(text) else f"{whole[1]}..."


def is_well_formed(url: str) -> bool:
    """Say whether a URL has a host and a port; else its parts may be of something that is not to be shown."""
    from urllib.parse import urlsplit  # 3 ms

    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return "@" not in parts.fragment


def shown(text: str) -> str:
    """Return a path or URL fit to show and to store."""
    return display(without_secrets(text))
