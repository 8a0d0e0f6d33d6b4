"""Tell what a text given as a path names: a URL, an archive, or a file or folder of this machine."""

from __future__ import annotations

import os
import re
from typing import Final

from ingest.display import display

__all__ = [
    "TAR_ENDINGS",
    "ZIP_ENDINGS",
    "is_archive",
    "is_elsewhere",
    "is_url",
    "place_of",
    "shown",
    "without_secrets",
]

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
_URL_IN_TEXT: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#]*@)?([^\s?#]*)(\S*)")


def is_url(text: str) -> bool:
    """Say whether a text is a URL rather than a path."""
    return _URL.match(text) is not None


def is_archive(name: str) -> bool:
    """Say whether a name is one of an archive."""
    return name.lower().endswith(_ENDINGS)


def is_elsewhere(text: str) -> bool:
    """Say whether a text names a URL or an archive."""
    return is_url(text) or (is_archive(text) and not os.path.isdir(text))


def without_secrets(text: str) -> str:
    """Return a text with all URLs in it fit to show: without user, query and fragment."""
    return _URL_IN_TEXT.sub(r"\1\3", text)


def shown(text: str) -> str:
    """Return a path or URL fit to show and to store."""
    return display(without_secrets(text))


def place_of(text: str) -> str:
    """Return a path or URL as `runs.dump_dir` has it, but for what `display` changes."""
    if not is_url(text):
        return os.path.realpath(text)
    from ingest.source.address import parse_url

    return parse_url(text).shown
