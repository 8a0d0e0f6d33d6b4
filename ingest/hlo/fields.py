"""Take single fields off the wire and turn them into Python's types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError

from ingest.hlo.wire import BYTES, LEAF_LIMIT, VARINT, Field, Wire

__all__ = ["as_index", "as_text", "message", "number", "parse", "string", "stripped", "within"]

_SIGN: Final = 1 << 63


def within(wire: Wire, field: Field) -> Iterator[Field]:
    """Walk the fields of a message field, and count it: it stands for something that is kept."""
    _require(wire, field, BYTES)
    wire.count()
    return wire.fields(field.value)


def message(wire: Wire, field: Field, class_: Any) -> Any:
    """Take a message field and parse it as a class of `ingest.hlo.messages`; it is counted.

    Raises:
        DumpError: it is larger than a message may be, cut off, or no such message.
    """
    _require(wire, field, BYTES)
    wire.count()
    return parse(wire, wire.take(field.value), class_)


def parse(wire: Wire, data: bytes, class_: Any) -> Any:
    """Parse bytes as a class of `ingest.hlo.messages`; raises DumpError if they are none."""
    try:
        return class_.FromString(data)
    except DecodeError as error:
        raise wire.error(f"a message is damaged: {error}") from error


def stripped(wire: Wire, field: Field, wanted: frozenset[int]) -> bytes:
    """Take a message field without those of its fields that are not wanted; it is counted."""
    kept = bytearray()
    for part in within(wire, field):
        if part.number in wanted:
            kept += _varint(part.number << 3 | part.wire_type)
            if part.wire_type == BYTES:
                kept += _varint(part.value)
            kept += _varint(part.value) if part.wire_type == VARINT else wire.take(part.value)
            if len(kept) > LEAF_LIMIT:
                raise wire.error(f"a message of {len(kept):,} bytes is larger than any that XLA writes")
    return bytes(kept)


def string(wire: Wire, field: Field) -> str:
    """Take a string field."""
    _require(wire, field, BYTES)
    return as_text(wire.take(field.value))


def number(wire: Wire, field: Field) -> int:
    """Return the signed number of a varint field."""
    _require(wire, field, VARINT)
    return field.value - (1 << 64) if field.value >= _SIGN else field.value


def as_text(data: bytes) -> str:
    """Decode a string; bytes that are no UTF-8 become U+FFFD."""
    return data.decode(errors="replace")


def as_index(index: Sequence[int]) -> str:
    """Return a ShapeIndex as XLA prints it."""
    return f"{{{','.join(map(str, index))}}}" if index else "{}"


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def _require(wire: Wire, field: Field, wire_type: int) -> None:
    if field.wire_type != wire_type:
        raise wire.error(f"field {field.number} has the wire type {field.wire_type}, not {wire_type}")
