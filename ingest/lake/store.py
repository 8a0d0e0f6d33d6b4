"""Where a lake lies: a folder or a place in an object store, opened by deltalake and obstore.

Both are imported when a lake is used, and both keep threads: a process that has opened a lake must not be
forked (`ingest.source.apart`). Credentials are those of the environment. No message has a word of the
libraries' own, which quote requests with their signatures.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from ingest.display import display
from ingest.errors import DatabaseError, NotADatabase, UsageError, XbufError
from ingest.source.address import parse_url
from ingest.source.apart import require_own
from ingest.source.kinds import LAKE_PREFIX, is_url
from ingest.source.refusal import refusal_of

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from obstore.store import ObjectStore

# deltalake takes its level from here when it is imported. Else it writes to stderr what a store answered each
# time, in lines of a thousand characters; what it comes to is in our own message.
os.environ.setdefault("RUST_LOG", "off")

INSTALL: Final = (
    f"{shlex.quote(sys.executable)} -m pip install"
    " 'deltalake>=1.6.6,<2' 'fsspec>=2025.2' 'obstore>=0.12,<0.13'"
)
"""As the extra `lake` has it, and into the environment of xbuf."""

REQUEST_SECONDS: Final = 60
CONNECT_SECONDS: Final = 5
RETRIES: Final = 4
RETRY_SECONDS: Final = 60
"""For one request with all its retries."""


@dataclass(frozen=True, slots=True)
class Lake:
    """A place for a lake.

    Attributes:
        root: absolute path of a folder, or URL without a slash at its end; fit to show and to store.
        is_local: it is a folder.
    """

    root: str
    is_local: bool

    def __str__(self) -> str:
        return display(self.root)

    def url(self, name: str) -> str:
        """Return the path or URL of a table or file, by its name below the root."""
        return f"{self.root}/{name}"

    @property
    def storage_options(self) -> dict[str, str]:
        """What deltalake is given besides the environment."""
        if self.is_local:
            return {}
        return {
            "timeout": f"{REQUEST_SECONDS}s",
            "connect_timeout": f"{CONNECT_SECONDS}s",
            "max_retries": str(RETRIES),
            "retry_timeout": f"{RETRY_SECONDS}s",
            "allow_http": "true",  # where the endpoint of the environment says so
        }

    def is_table(self, place: str) -> bool:
        """Return whether there is a Delta table, whoever made it, at a path or URL.

        Raises what deltalake raises: see `in_words`.
        """
        require_libraries()
        require_own()
        from deltalake import DeltaTable

        return bool(DeltaTable.is_deltatable(place, self.storage_options))

    def table(self, name: str) -> DeltaTable:
        """Open a table at its newest version.

        Raises:
            DatabaseError: the store is away or refuses, or there is no such table.
        """
        require_libraries()
        require_own()
        from deltalake import DeltaTable

        with in_words(self, name):
            return DeltaTable(self.url(name), storage_options=self.storage_options)

    def objects(self) -> ObjectStore:
        """Open the store at the root, for files by their names below it.

        A folder is made when it is not there.

        Raises:
            DatabaseError: it cannot be used.
        """
        require_libraries()
        require_own()
        from obstore.store import LocalStore, from_url

        with in_words(self):
            if self.is_local:
                return LocalStore(self.root, mkdir=True)
            client: Any = {
                "timeout": timedelta(seconds=REQUEST_SECONDS),
                "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                "allow_http": True,
            }
            retry: Any = {
                "max_retries": RETRIES,
                "retry_timeout": timedelta(seconds=RETRY_SECONDS),
            }
            return from_url(self.root, client_options=client, retry_config=retry)

    def put_new(self, name: str, content: bytes) -> bool:
        """Put an object unless there is one of that name; return whether this put it.

        Raises:
            DatabaseError: the store refuses.
        """
        with self._at(name):
            import obstore
            from obstore.exceptions import AlreadyExistsError

            try:
                obstore.put(self.objects(), name, content, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def read(self, name: str) -> bytes | None:
        """Return the content of an object; None where there is none.

        Raises:
            DatabaseError: the store refuses.
        """
        with self._at(name):
            import obstore

            try:
                return bytes(obstore.get(self.objects(), name).bytes())
            except FileNotFoundError:
                return None

    def remove(self, name: str) -> None:
        """Remove an object; somebody else may have done it.

        Raises:
            DatabaseError: the store refuses.
        """
        with self._at(name), suppress(FileNotFoundError):
            import obstore

            obstore.delete(self.objects(), name)

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the objects of a folder, "" for the root, with their bytes.

        Raises:
            DatabaseError: the store refuses.
        """
        with in_words(self, folder):
            import obstore

            found = obstore.list_with_delimiter(self.objects(), folder)["objects"]
            return {meta["path"].rpartition("/")[2]: int(meta["size"]) for meta in found}

    def _at(self, name: str) -> AbstractContextManager[None]:
        return in_words(self, name.rpartition("/")[0])


def parse_lake(text: str) -> Lake:
    """Return the place that a path or URL names; `lake:` before it is passed over.

    Raises:
        DatabaseError: it names none, or carries credentials.
    """
    name = text.removeprefix(LAKE_PREFIX)
    if not name:
        raise DatabaseError("a lake is named by a folder or by s3://, gs:// or az:// BUCKET/PATH")
    if name.startswith("file://"):
        name = unquote(urlsplit(name).path)
    if not is_url(name):
        return Lake(os.path.realpath(name), True)
    try:
        address = parse_url(name)
    except UsageError as error:
        raise DatabaseError(str(error)) from None
    if address.is_web:
        raise DatabaseError(f"{address.shown}: a lake lies in a folder, or at s3://, gs:// or az://")
    if address.has_more:
        raise DatabaseError(
            f"{address.shown}: a lake's URL has no user, password or query, which would be stored with it;"
            " give credentials by the environment (AWS_ACCESS_KEY_ID and the like)"
        )
    return Lake(address.shown, False)


def require_libraries() -> None:
    """Raise DatabaseError, with the line that installs them, where a library of the extra is missing."""
    from importlib.util import find_spec

    missing = [name for name in ("deltalake", "fsspec", "obstore") if find_spec(name) is None]
    if missing:
        raise DatabaseError(f"a lake needs {', '.join(missing)}, not installed here: {INSTALL}")


@contextmanager
def in_words(lake: Lake, table: str = "") -> Iterator[None]:
    """Raise what deltalake and obstore raise as a DatabaseError with a remedy.

    Args:
        lake: the place.
        table: the one concerned, or another folder; empty for the whole.
    """
    try:
        yield
    except (XbufError, AssertionError, AttributeError, LookupError, NameError, TypeError):
        raise
    except Exception as error:
        raise _explained(lake, table, error) from None


def _explained(lake: Lake, table: str, error: Exception) -> DatabaseError:
    """Say in words of our own why a lake cannot be used."""
    shown = f"{lake}/{table}" if table else str(lake)
    kind, words = refusal_of(error)
    text = str(error).lower()
    if kind == "denied":
        whose = "the owner and mode of the folder" if lake.is_local else "the credentials of this process"
        return DatabaseError(f"{shown}: {words}; look at {whose}")
    if "nosuchbucket" in text or "no such bucket" in text:
        return DatabaseError(f"{shown}: there is no such bucket; make it, or name another")
    if kind == "gone":
        return NotADatabase(
            f"{shown}: there is no such table or file; make the lake: xbuf lake create {lake}"
        )
    log = f"{shown}/_delta_log"
    if "invalid checkpoint" in text:
        return DatabaseError(
            f"{shown}: its log names a checkpoint that is gone or cut off; remove {log}/_last_checkpoint,"
            " without which the log is read from its start"
        )
    if "json error" in text:
        return DatabaseError(
            f"{shown}: an entry of its log is damaged; bring it back from a copy of {log}: a backup, or an"
            " older version of the object where the store keeps them"
        )
    if type(error).__name__ in ("DeltaProtocolError", "SchemaMismatchError"):
        return NotADatabase(f"{shown}: is a Delta table that this xbuf cannot use; name another place")
    return DatabaseError(f"{shown}: {words}; nothing is half visible: run again when it can be used")
