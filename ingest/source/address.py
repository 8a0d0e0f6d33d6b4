"""URLs that name dumps, and what of them may be shown and stored: nothing that opens a door.

User and password, the query (a signature is one) and the fragment are for the request alone.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from ingest.display import display
from ingest.errors import UsageError
from ingest.source.kinds import is_url, is_well_formed, without_secrets

_STORES: Final = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "az",
    "abfs": "az",
    "http": "http",
    "https": "https",
}
"""Schemes by what stands in their place."""


class Address(NamedTuple):
    """A URL in its parts."""

    scheme: str
    """s3, gs, az, http or https."""
    place: str
    """Bucket, container or host."""
    key: str
    """Path within it, without a slash at its start; one at its end is kept."""
    secret: str
    """The URL of the place with all that opens it; empty where the environment has that."""
    has_more: bool = False
    """There was a user, a query or a fragment, which is in none of the others but `secret`."""

    @property
    def is_web(self) -> bool:
        """It is on a web server, which lists nothing."""
        return self.scheme in ("http", "https")

    @property
    def root(self) -> str:
        """URL of the place, as it may be shown."""
        return f"{self.scheme}://{self.place}"

    @property
    def shown(self) -> str:
        """The URL, as it may be shown and stored."""
        return f"{self.root}/{self.key}".rstrip("/")

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def parse_url(url: str) -> Address:
    """Take a URL apart.

    Raises:
        UsageError: it names nothing that dumps are read from.
    """
    shown = display(without_secrets(url))
    if not is_well_formed(url):
        raise UsageError(
            f"{shown}: is no URL: its port is no number; in a password, / is written %2F, # %23, ? %3F, @ %40"
        )
    parts = urlsplit(url)
    host = parts.hostname or ""
    place = host if parts.port is None else f"{host}:{parts.port}"
    scheme = _STORES.get(parts.scheme.lower())
    if scheme is None:
        raise UsageError(
            f"{shown}: dumps are read from s3://, gs://, az://, https:// and http://, and from paths"
        )
    user, _, after = parts.netloc.rpartition("@")
    is_web = scheme in ("http", "https")
    if not is_web:
        # A bucket is no host: its case counts. abfs://CONTAINER@ACCOUNT: the account is the environment's.
        is_container = parts.scheme.lower() == "abfs" and user and ":" not in user
        place, user = (user, "") if is_container else (after, user)
    if not place:
        raise UsageError(f"{shown}: names no bucket or host")
    key = (unquote(parts.path) if is_web else parts.path).removeprefix("/")
    secret = urlunsplit((scheme, parts.netloc, "", parts.query, "")) if is_web else ""
    return Address(scheme, place, key, secret, bool(user or parts.query or parts.fragment))


def place_of(text: str) -> str:
    """Return a path or URL as `runs.dump_dir` has it, but for what `display` changes."""
    return parse_url(text).shown if is_url(text) else os.path.realpath(text)
