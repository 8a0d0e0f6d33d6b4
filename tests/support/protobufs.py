"""Protobufs written by hand, field by field: also such as no library would write."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """Encode a number."""
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def field(number: int, value: int | bytes | str) -> bytes:
    """Encode a field: a number, or a message or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data
