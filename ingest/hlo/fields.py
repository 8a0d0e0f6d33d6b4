"""Take messages off the wire: small ones at once, large ones in pieces."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError

from ingest.hlo.wire import BYTES, LEAF_LIMIT, VARINT, Field, Wire

PIECE_BYTES: Final = 256 << 10
"""Messages up to this size are parsed by the protobuf library at once, which takes a quarter of the time of
walking their fields; parsing takes up to 50 times the memory."""


_SMALL_BYTES: Final = 4 << 10


def pieces(wire: Wire, field: Field, class_: Any, apart: Collection[int] = ()) -> Iterator[Any]:
    """Yield a message field as messages of a class of `ingest.hlo.messages`, which merged are the whole.

    Small messages are one piece; large ones lose the fields that the class does not declare.

    Args:
        wire: the file, at the field's content.
        field: the field.
        class_: class of the message.
        apart: numbers of message fields that may be large themselves: these are yielded as a `Field`, to be
            taken before the next piece is asked for.

    Raises:
        DumpError: it is no message, or a field that is not taken apart is larger than any that XLA writes.
    """
    _require_message(wire, field)
    if field.value <= PIECE_BYTES:
        yield parse(wire, wire.take(field.value), class_)
        return
    wanted = class_.DESCRIPTOR.fields_by_number
    piece = bytearray()
    for part in wire.fields(field.value):
        if part.number not in wanted:
            continue
        if part.number in apart and part.wire_type == BYTES and part.value > PIECE_BYTES:
            if piece:
                yield parse(wire, bytes(piece), class_)
                piece.clear()
            yield part
            continue
        piece += _written(wire, part)
        if len(piece) > PIECE_BYTES:
            yield parse(wire, bytes(piece), class_)
            piece.clear()
    if piece:
        yield parse(wire, bytes(piece), class_)


def message(wire: Wire, field: Field, class_: Any) -> Any:
    """Take a message field whole; if it is large, a hash stands for large fields that are not declared.

    Raises:
        DumpError: what is left is larger than any message that XLA writes, cut off, or no such message.
    """
    _require_message(wire, field)
    if field.value <= PIECE_BYTES:
        return parse(wire, wire.take(field.value), class_)
    wanted = class_.DESCRIPTOR.fields_by_number
    kept = bytearray()
    for part in wire.fields(field.value):
        if part.number in wanted or part.wire_type != BYTES or part.value <= _SMALL_BYTES:
            kept += _written(wire, part)
            if len(kept) > LEAF_LIMIT:
                raise wire.error(f"a message of {len(kept):,} bytes is larger than any that XLA writes")
        else:
            digest = wire.digest(part.value)
            kept += _varint(part.number << 3 | BYTES) + _varint(len(digest)) + digest
    return parse(wire, bytes(kept), class_)


def parse(wire: Wire, data: bytes, class_: Any) -> Any:
    """Parse bytes as a class of `ingest.hlo.messages`; raises DumpError if they are none."""
    try:
        return class_.FromString(data)
    except DecodeError as error:
        raise wire.error(f"a message is damaged, or the file is no HloProto: {error}") from error


def as_text(data: bytes) -> str:
    """Decode a string; bytes that are no UTF-8 become U+FFFD."""
    return data.decode(errors="replace")


def as_texts(strings: Sequence[bytes]) -> list[str]:
    """Decode many strings, as `as_text` does."""
    try:
        return [*map(bytes.decode, strings)]
    except UnicodeDecodeError:
        return [*map(as_text, strings)]


def as_index(index: Sequence[int]) -> str:
    """Return a ShapeIndex as XLA prints it."""
    return f"{{{','.join(map(str, index))}}}" if index else "{}"


def _written(wire: Wire, field: Field) -> bytes:
    """Take a field and return it as it is written."""
    tag = _varint(field.number << 3 | field.wire_type)
    if field.wire_type == VARINT:
        return tag + _varint(field.value)
    data = wire.take(field.value)
    return tag + _varint(field.value) + data if field.wire_type == BYTES else tag + data


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _require_message(wire: Wire, field: Field) -> None:
    if field.wire_type != BYTES:
        raise wire.error(f"field {field.number} has the wire type {field.wire_type}, not {BYTES}")
