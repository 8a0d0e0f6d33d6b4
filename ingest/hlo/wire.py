"""Walk a protobuf in its wire format as a stream, so that memory stays bounded whatever it holds.

A module's protobuf may hold gigabytes of constants. Large messages are walked, and what is wanted of them
is taken (`ingest.hlo.fields`); the rest is read and forgotten. Lengths are checked against the message
around them before anything is read, and a compressed file ends at a limit (a few KB of gzip can stand for
terabytes).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import IO, Final, NamedTuple

from ingest.dump.content import Content, FilePart
from ingest.errors import DumpError
from ingest.hlo.budget import Budget

KIND: Final = "hlo-proto"
"""Kind of the errors of this reader."""

MAX_BYTES: Final = 2**31 - 1
"""Largest uncompressed protobuf; the format's own limit."""

LEAF_LIMIT: Final = 4 << 20
"""Largest message parsed at once, a schedule of 400,000 instructions; takes up to 50 times the memory."""

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5

_BLOCK: Final = 1 << 18
_MAX_VARINT: Final = 2**64 - 1


class Field(NamedTuple):
    """Head of a field: `value` is the number of a varint, else the length in bytes of what follows."""

    number: int
    wire_type: int
    value: int


class Wire:
    """A protobuf file, read once from its start.

    Attributes:
        path: the file, for messages.
    """

    def __init__(
        self,
        path: str,
        budget: Budget,
        max_bytes: int = MAX_BYTES,
        *,
        part: FilePart | None = None,
        skips_unread: bool = False,
    ) -> None:
        """Open a file.

        Args:
            path: the file.
            budget: what its records may cost.
            max_bytes: most bytes, uncompressed.
            part: the message is this part of the file; None for the whole.
            skips_unread: what is stepped over is not read where that can be avoided; `finish` has no hash.
        """
        self.path = path
        self._budget = budget
        self._skips_unread = skips_unread
        self._content = Content(path, max_bytes, part)
        self._block = b""
        self._before = 0
        """Bytes before the block."""
        self._at = 0
        """Place in the block."""
        self._copy: IO[bytes] | None = None
        """Takes what is read or stepped over, from `_copied` in the block on."""
        self._copied = 0

    @property
    def rereads_ranges(self) -> bool:
        """Parts of the file can be read again at no cost."""
        return self._content.rereads_ranges

    @property
    def position(self) -> int:
        """Uncompressed bytes read so far."""
        return self._before + self._at

    def close(self) -> None:
        """Close the file."""
        self._content.close()

    def finish(self) -> tuple[str, int]:
        """Return SHA-256 (hexadecimal) and number of the uncompressed bytes of the whole file."""
        self._content.finish()
        return self._content.sha256, self._content.count

    def fields(self, length: int | None = None) -> Iterator[Field]:
        """Yield the fields of the message that starts here; without a length it ends with the file.

        What the caller does not take of a field is stepped over.

        Raises:
            DumpError: the bytes are no message, or end within one.
        """
        end = None if length is None else self.position + length
        while end is None or self.position < end:
            tag = self._varint(start_of_field=end is None)
            if tag < 0:
                return
            number, wire_type = tag >> 3, tag & 7
            if wire_type in (VARINT, BYTES):
                value = self._varint()
            elif wire_type in (FIXED64, FIXED32):
                value = 8 if wire_type == FIXED64 else 4
            else:
                raise self.error(f"field {number} has the wire type {wire_type}, which XLA does not write")
            after = self.position if wire_type == VARINT else self.position + value
            if number == 0 or (end is not None and after > end):
                raise self.error("a field reaches beyond its message")
            yield Field(number, wire_type, value)
            if self.position < after:
                self._skip(after - self.position)

    def take(self, length: int) -> bytes:
        """Return the next bytes.

        Raises:
            DumpError: there are more of them than LEAF_LIMIT, or fewer in the file.
        """
        if length > LEAF_LIMIT:
            raise self.error(f"a message of {length:,} bytes is larger than any that XLA writes")
        data = self._read(length)
        if len(data) < length:
            raise self.error("the file ends within a message: it is cut off; copy it again")
        return data

    def digest(self, length: int) -> bytes:
        """Return the SHA-256 of the next bytes, however many they are."""
        found = hashlib.sha256()
        while length:
            data = self._read(min(length, _BLOCK))
            if not data:
                raise self.error("the file ends within a message: it is cut off; copy it again")
            found.update(data)
            length -= len(data)
        return found.digest()

    def begin_copy(self, to: IO[bytes]) -> None:
        """Write from here on what is read or stepped over to a file, too."""
        self._copy, self._copied = to, self._at

    def end_copy(self) -> None:
        """Write what was read since `begin_copy` and is not written yet."""
        if self._copy is not None:
            self._copy.write(self._block[self._copied : self._at])
        self._copy = None

    def step_to(self, position: int) -> None:
        """Step over what lies before a place; raises as `take`."""
        if position > self.position:
            self._skip(position - self.position)

    def count(self, records: int = 1, small: int = 0) -> None:
        """Count what stays in memory; see `Budget.spend`, and raises as that."""
        self._budget.spend(self.path, records, small)

    def error(self, message: str) -> DumpError:
        """Return an error that names the file and the place."""
        return DumpError(KIND, message, file=self.path, byte_offset=self.position)

    def _varint(self, start_of_field: bool = False) -> int:
        """Return the next varint; -1 at the end of the file if a field may start here."""
        value = shift = 0
        while True:
            if self._at == len(self._block) and not self._next_block():
                if start_of_field and not shift:
                    return -1
                raise self.error("the file ends within a message: it is cut off; copy it again")
            code = self._block[self._at]
            self._at += 1
            if code < 0x80:
                return (value | code << shift) & _MAX_VARINT
            value |= (code & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise self.error("a number has more than 64 bits")

    def _read(self, length: int) -> bytes:
        """Return so many bytes, or those that are left."""
        data = self._block[self._at : self._at + length]
        self._at += len(data)
        if len(data) == length:
            return data
        parts = [data]
        missing = length - len(data)
        while missing and self._next_block():
            data = self._block[:missing]
            self._at = len(data)
            missing -= len(data)
            parts.append(data)
        return b"".join(parts)

    def _next_block(self) -> bool:
        """Go on with the next block; return whether there is one."""
        if self._copy is not None:
            self._copy.write(self._block[self._copied :])
            self._copied = 0
        self._before += len(self._block)
        self._block, self._at = self._content.read(_BLOCK), 0
        return bool(self._block)

    def _skip(self, length: int) -> None:
        while length > (there := len(self._block) - self._at):
            length -= there
            if self._skips_unread and self._copy is None and length > _BLOCK:
                # All but the last byte: the next block has that, or the file is cut off.
                self._before += len(self._block) + length - 1
                self._block, self._at = b"", 0
                self._content.skip(length - 1)
                length = 1
            if not self._next_block():
                raise self.error("the file ends within a message: it is cut off; copy it again")
        self._at += length
