"""A web server on loopback that fails as it is told: for files of a folder, or in front of another server.

    python tests/support/web.py FOLDER|http://HOST:PORT [FAULT,FAULT,...] [LOG]

It prints its port. Of the requests the first meets the first fault, the second the second, and so on from the
start again: `ok`; `503`; `reset`, a connection that is reset; `cut`, half of a body; `slow`, a body in drops;
any status; `stale`, another ETag with every answer. `NAME=FAULT`, or `NAME=FAULT:3`, is what each GET, or the
first three, meet whose path holds NAME. LOG takes a line a request.
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from tests.support.waiting import HANGING_SECONDS

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
DROP_SECONDS = 0.02
_DROPS = 20


class _Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    place: str
    faults: Iterator[str]
    of_names: dict[str, list[str]]
    lock = threading.Lock()
    log: Path | None = None

    def do_GET(self) -> None:
        answer = self._forwarded() if "://" in self.place else self._of_file()
        with self.lock:
            fault = next(self.faults)
            for name, left in self.of_names.items():
                if self.command == "GET" and left and name in unquote(self.path):
                    fault = left.pop()
            if self.log is not None:
                with self.log.open("a") as log:
                    log.write(f"{self.command} {self.path} {answer.status} {len(answer.body)} {fault}\n")
        self._send(answer, fault)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _of_file(self) -> _Answer:
        path = Path(self.place + unquote(urlsplit(self.path).path))
        if not path.is_file():
            return _Answer(404, {}, b"")
        data = path.read_bytes()
        etag = f'"{hashlib.md5(data).hexdigest()}"'
        if self.headers.get("If-Match", etag) != etag:
            return _Answer(412, {}, b"")
        headers = {"ETag": etag, "Last-Modified": "Sun, 13 Sep 2020 12:26:40 GMT"}
        if found := _RANGE.fullmatch(self.headers.get("Range", "")):
            start, end = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
            headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
            return _Answer(206, headers, data[start : end + 1])
        return _Answer(200, headers, data)

    def _forwarded(self) -> _Answer:
        upstream = http.client.HTTPConnection(urlsplit(self.place).netloc, timeout=HANGING_SECONDS)
        upstream.request(self.command, self.path, headers=dict(self.headers.items()))
        got = upstream.getresponse()
        skipped = ("connection", "content-length", "transfer-encoding")
        headers = {name: value for name, value in got.getheaders() if name.lower() not in skipped}
        body = got.read()
        if self.command == "HEAD":
            headers["Content-Length"] = got.getheader("Content-Length", "0")
        upstream.close()
        return _Answer(got.status, headers, body)

    def _send(self, answer: _Answer, fault: str) -> None:
        status, headers, body = answer
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RD)
            return
        if fault.isdecimal():
            status, headers, body = int(fault), {}, b""
        if fault == "stale":
            headers["ETag"] = f'"{time.monotonic_ns()}"'
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "cut":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif fault == "slow":
            step = len(body) // _DROPS + 1
            for start in range(0, len(body), step):
                self.wfile.write(body[start : start + step])
                self.wfile.flush()
                time.sleep(DROP_SECONDS)
        else:
            self.wfile.write(body)


@contextmanager
def web_server(place: str | Path, faults: str = "ok", log: Path | None = None) -> Iterator[str]:
    """Run the server in a process of its own; its URL is `http://127.0.0.1:PORT`."""
    words = [sys.executable, __file__, str(place), faults, *([str(log)] if log else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def main() -> None:
    """Serve until killed."""
    place, faults, *log = sys.argv[1:]
    _Handler.place = place.rstrip("/")
    given = [one.partition("=") for one in faults.split(",")]
    _Handler.faults = itertools.cycle([one for one, named, _ in given if not named] or ["ok"])
    _Handler.of_names = {}
    for name, named, fault in given:
        kind, _, count = fault.partition(":")
        if named:
            _Handler.of_names[name] = [kind] * int(count or 1000)
    _Handler.log = Path(log[0]) if log else None
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
