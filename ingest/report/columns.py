"""Columns of numbers and texts as bytes that a script reads without parsing.

A block is a JSON head (its length first, 4 bytes little-endian; padded with blanks) and the columns behind
it. The head describes each column by where it lies:

    numbers: {"at": byte, "count": n, "type": "u1" | "u2" | "u4" | "i4" | "f8", "delta": bool}
    texts: {"at": byte, "bytes": n, "count": n}, texts parted by line breaks, of which none holds one

Bytes of one significance lie together (all lowest bytes, then all next ones): gzip makes less of them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ingest.display import display
from ingest.report.data import Ints

_TYPES: Final = (("u1", 0, 2**8 - 1), ("u2", 0, 2**16 - 1), ("u4", 0, 2**32 - 1), ("i4", -(2**31), 2**31 - 1))


class Columns:
    """A block that is being written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def numbers(self, values: Ints | Sequence[int], *, delta: bool = False) -> dict[str, Any]:
        """Add a column of whole numbers; return its description.

        Numbers beyond 32 bits become floating point, exact up to 2**53.

        Args:
            delta: keep differences, for numbers that ascend.
        """
        array = np.asarray(values, np.int64)
        count = array.size
        if delta:
            array = np.diff(array, prepend=0)
        low, high = (int(array.min()), int(array.max())) if count else (0, 0)
        type_ = next((name for name, least, most in _TYPES if least <= low and high <= most), "f8")
        plain = array.astype(f"<{type_}")
        planes = plain.view(np.uint8).reshape(count, plain.itemsize).T
        return {"at": self._add(planes.tobytes()), "count": count, "type": type_, "delta": delta}

    def texts(self, texts: Sequence[str]) -> dict[str, Any]:
        """Add a column of texts; return its description. What does not print is escaped, line breaks too."""
        body = "\n".join(map(display, texts)).encode()
        return {"at": self._add(body), "bytes": len(body), "count": len(texts)}

    def pack(self, head: Any) -> str:
        """Return head and columns, compressed, in base64: no text of a dump can end the element it is in."""
        text = json.dumps(head, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        block = len(text).to_bytes(4, "little") + text + b"".join(self._parts)
        return base64.b64encode(gzip.compress(block, 9, mtime=0)).decode("ascii")

    def _add(self, body: bytes) -> int:
        at = self._size
        self._parts.append(body)
        self._size += len(body)
        return at
