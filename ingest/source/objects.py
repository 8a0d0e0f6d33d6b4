"""Read object stores (s3, gs, az) and web servers by obstore, which is imported when a URL is given.

Each file is read in the version that was listed (`If-Match`), and each request is tried again when it fails.
A file that fails all the same is that file's trouble as long as the store answers something else.
"""

from __future__ import annotations

import base64
import errno
import os
import random
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import unquote, urlsplit, urlunsplit

from ingest.errors import SourceError
from ingest.source.address import Address
from ingest.source.apart import late, require_own
from ingest.source.kinds import is_archive
from ingest.source.refusal import Refusal, refusal_of
from ingest.source.source import APART, OpenFile, Status, Terms, Unreachable
from ingest.source.streams import Ranges

if TYPE_CHECKING:
    from obstore.store import ObjectStore

INSTALL: Final = f"{shlex.quote(sys.executable)} -m pip install 'obstore>=0.12,<0.13'"
"""As the extra `remote` has it, and into the environment of xbuf."""
TRIALS: Final = 6
FIRST_PAUSE: Final = 0.2
"""Seconds before the second trial; each pause after it is twice as long, and up to half of it by chance."""
REQUEST_SECONDS: Final = 60
"""For one request, with its answer."""
CONNECT_SECONDS: Final = 10
AT_ONCE: Final = 16
"""Requests of one process at the same time."""
_PAGE: Final = 1000
_WEAK: Final = "W/"
"""Start of etags by which no version can be asked for: `If-Match` never matches them (RFC 9110, 13.1.1)."""
_DENIED: Final = "permission denied; look at the credentials of this process"

_T = TypeVar("_T")


def require_obstore() -> None:
    """Raise SourceError, with the line that installs it, where obstore is missing; nothing is imported."""
    from importlib.util import find_spec

    if find_spec("obstore") is None:
        raise SourceError(f"URLs are read by obstore, which is not installed: {INSTALL}")


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class AtUrl:
    """The files of a bucket, a container or a host.

    Attributes:
        address: of the place; its key has no meaning here.
        terms: of reading.
        heard: called with each answer.
    """

    address: Address = field(repr=False)
    terms: Terms = APART
    heard: Callable[[], None] = _nothing

    @property
    def is_far(self) -> bool:
        """It is read by processes of their own."""
        return self.terms.is_apart

    @property
    def is_remote(self) -> bool:
        """Every reading is a request."""
        return True

    @property
    def rereads_ranges(self) -> bool:
        """Every reading is a request."""
        return False

    def key_of(self, path: str) -> str:
        """Return the key of a file, given as it may be shown."""
        return path[len(self.address.root) + 1 :]

    def open(self, path: str, found: Status | None) -> OpenFile:
        """Open a file, of the version that was found."""
        if found is None:
            found = self.status(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        stream = Ranges(lambda start, end: self.read_version(path, found, start, end), found.size)
        return OpenFile(cast("IO[bytes]", stream), found.size)

    def status(self, path: str) -> Status | None:
        """Look a file up."""
        import obstore

        try:
            meta = self._ask_for(path, lambda store: obstore.head(store, self.key_of(path)))
        except FileNotFoundError:
            return None
        return version_of(meta)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return some bytes of a file."""
        return self.read_version(path, None, offset, offset + length)

    def read_version(self, path: str, found: Status | None, start: int, end: int) -> bytes:
        """Return the bytes from start to end of a file, of the version that was found.

        Raises:
            OSError: as `ingest.source.source.Source` says.
            SourceError: the store is away, or the time is up.
        """
        import obstore

        options: dict[str, Any] = {}
        if found is not None and found.etag is not None and not found.etag.startswith(_WEAK):
            options["if_match"] = found.etag
        is_whole = found is not None and (start, end) == (0, found.size)
        if not is_whole:
            options["range"] = (start, end)

        def read(store: ObjectStore) -> bytes:
            result = obstore.get(store, self.key_of(path), options=options)
            version = version_of(result.meta)
            if found is not None and (version.size, version.etag) != (found.size, found.etag):
                raise _Refused(Refusal("stale", "is another version than was listed"))
            data = bytes(result.bytes())
            if len(data) != end - start:
                raise _Refused(Refusal("failed", "the answer ends too early"))
            return data

        data = self._ask_for(path, read) if end > start else b""
        self.heard()
        return data

    def _ask_for(self, path: str, request: Callable[[ObjectStore], _T]) -> _T:
        """Do a request for one file; where it fails, find out whether the store is away.

        Raises:
            SourceError: it is, or it refuses now what it allowed before.
            OSError: as `_ask`.
        """
        try:
            return self._ask(path, request)
        except (Unreachable, PermissionError) as error:
            self._require_store(path, error)
            raise

    def _require_store(self, path: str, error: OSError) -> None:
        """Raise SourceError unless the store answers, asked for something that costs little."""
        try:
            self._attempt(self.address.root, partial(_look, is_web=self.address.is_web))
        except _Refused as refused:
            kind, words = refused.refusal
            if kind == "failed":
                raise SourceError(
                    f"{path}: {error.strerror}; {self.address.root} does not answer either ({words}): run"
                    " again when it does"
                ) from None
            if kind == "denied" and not self.address.is_web:
                raise SourceError(f"{path}: {_DENIED}") from None

    def _ask(self, what: str, request: Callable[[ObjectStore], _T]) -> _T:
        """Do a request, again and again while it fails.

        Raises:
            OSError: as `ingest.source.source.Source` says.
            SourceError: the time is up, or the server cannot do what all reading needs.
        """
        try:
            return self._attempt(what, request)
        except _Refused as refused:
            raise _error_of(refused.refusal, what) from None

    def _attempt(self, what: str, request: Callable[[ObjectStore], _T]) -> _T:
        store = _store(self.address, os.getpid())
        pause = FIRST_PAUSE
        for trial in range(1, TRIALS + 1):
            if self.terms.deadline is not None and time.time() > self.terms.deadline:
                raise late(what)
            try:
                return request(store)
            except Exception as error:
                refused = error if isinstance(error, _Refused) else _Refused(refusal_of(error))
            if refused.refusal.kind != "failed":
                break
            self.heard()
            if trial < TRIALS:
                time.sleep(pause * random.uniform(1, 1.5))
                pause *= 2
        raise refused from None


class Objects(NamedTuple):
    """What a URL names.

    Attributes:
        files: key and version of each; in no order.
        is_file: the URL names one file.
    """

    files: tuple[tuple[str, Status], ...]
    is_file: bool


def look_up(source: AtUrl, key: str) -> Objects:
    """Find what lies at a key: a file, or all files below it.

    Raises:
        SourceError: the store is away, refuses, or there is no such bucket.
        FileNotFoundError: there is nothing.
    """
    shown = f"{source.address.root}/{key}"
    try:
        if key and not key.endswith("/"):
            status = source.status(shown)
            if status is not None:
                return Objects((*_next_to(source, key, shown), (key, status)), True)
        if source.address.is_web:
            if key.endswith("/") or not key:
                raise SourceError(f"{shown}: a web server lists no files; name an archive, or a file")
            raise FileNotFoundError(shown)
        files = _list(source, key.rstrip("/"), shown)
    except PermissionError:
        raise SourceError(f"{shown}: {_DENIED}") from None
    except Unreachable as error:
        raise SourceError(f"{shown}: {error.strerror}; run again when it can") from None
    if not files:
        raise FileNotFoundError(shown)
    return Objects(tuple(files), False)


def _next_to(source: AtUrl, key: str, shown: str) -> list[tuple[str, Status]]:
    """List the files in the folder of a file, as far as the place lists any."""
    import obstore

    if source.address.is_web or is_archive(key):
        return []
    folder = key.rpartition("/")[0] or None
    with suppress(PermissionError):
        found = source._ask(shown, lambda store: obstore.list_with_delimiter(store, folder))
        return [(meta["path"], version_of(meta)) for meta in found["objects"]]
    return []


def start_of(
    source: AtUrl, wanted: list[tuple[str, Status]], size: int
) -> Iterator[tuple[str, bytes | OSError]]:
    """Yield key and first bytes of files, or why they cannot be read; nothing of what has just changed."""

    def start(one: tuple[str, Status]) -> tuple[str, bytes | OSError] | None:
        key, status = one
        try:
            path = f"{source.address.root}/{key}"
            return key, source.read_version(path, status, 0, min(size, status.size))
        except OSError as error:
            return None if error.errno in (errno.ENOENT, errno.ESTALE) else (key, error)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield from (found for found in threads.map(start, wanted) if found is not None)


def _list(source: AtUrl, key: str, shown: str) -> list[tuple[str, Status]]:
    """List all files below a key: the folders in it at the same time."""
    import obstore

    def below(prefix: str) -> list[tuple[str, Status]]:
        def request(store: ObjectStore) -> list[tuple[str, Status]]:
            pages = obstore.list(store, prefix or None, chunk_size=_PAGE)
            return [(meta["path"], version_of(meta)) for page in pages for meta in page]

        return source._ask(shown, request)

    try:
        top = source._ask(shown, lambda store: obstore.list_with_delimiter(store, key or None))
        files = [(meta["path"], version_of(meta)) for meta in top["objects"]]
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for found in threads.map(below, top["common_prefixes"]):
                files += found
    except FileNotFoundError:
        raise SourceError(f"{source.address.root}: there is no such bucket") from None
    return files


class _Refused(Exception):
    """A request was refused, or failed for good."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.words)
        self.refusal = refusal


def version_of(meta: Any) -> Status:
    """Return the version of a file from what obstore says of it, the same from a listing as from an answer.

    Azure lists etags without the quotes that answers have; Google and MinIO list milliseconds where answers
    have seconds.
    """
    modified: datetime = meta["last_modified"]
    since = modified - datetime(1970, 1, 1, tzinfo=UTC)
    etag: str | None = meta["e_tag"]
    if etag is not None and not etag.startswith(('"', _WEAK)):
        etag = f'"{etag}"'
    return Status(meta["size"], since // timedelta(seconds=1) * 1_000_000_000, etag)


def _look(store: ObjectStore, *, is_web: bool) -> None:
    """Ask a store for something that costs little: a page of a listing, or the root of a web server."""
    import obstore

    if is_web:
        obstore.head(store, "")
    else:
        next(iter(obstore.list(store, chunk_size=1)), None)


@cache
def _store(address: Address, _: int) -> ObjectStore:
    """Make the client of a place; in each process its own."""
    require_obstore()
    require_own()
    from obstore.store import HTTPStore, from_url

    client: dict[str, Any] = {
        "timeout": timedelta(seconds=REQUEST_SECONDS),
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        "allow_http": True,  # where the address, or the endpoint of the environment, says so
    }
    retry: Any = {"max_retries": 0}  # they are done here, where the time is known
    try:
        if address.is_web:
            parts = urlsplit(address.secret)
            if parts.username is not None:
                pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
                token = base64.b64encode(pair.encode()).decode()
                client["default_headers"] = {"Authorization": f"Basic {token}"}
            url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "/", parts.query, ""))
            return HTTPStore.from_url(url, client_options=client, retry_config=retry)
        return from_url(address.root, client_options=client, retry_config=retry)
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{address.root}: cannot be used: {type(error).__name__}") from None


def _error_of(refusal: Refusal, what: str) -> Exception:
    """Return the error of a file whose request was refused, or failed for good."""
    match refusal.kind:
        case "gone":
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), what)
        case "denied":
            return PermissionError(errno.EACCES, os.strerror(errno.EACCES), what)
        case "stale":
            return OSError(errno.ESTALE, refusal.words, what)
        case "no ranges":
            return SourceError(f"{what}: {refusal.words}; download it first")
        case "failed":
            return Unreachable(errno.EIO, f"cannot be read after {TRIALS} trials: {refusal.words}", str(what))
        case _:
            return Unreachable(errno.EIO, f"cannot be read: {refusal.words}", str(what))
