"""Damage protobufs so that they stay well formed around the damage, and readers come to see it.

A flipped byte mostly spoils a length, and the whole file with it. Here one field, however deep, is changed,
removed, repeated or replaced, and the lengths of the messages around it are put right.
"""

from __future__ import annotations

import random
from typing import Final, NamedTuple

_NUMBERS: Final = (0, 1, 2, 127, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
_TEXTS: Final = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"a\x00b",
    b"\xed\xa0\x80",
    b"\x1b[2J",
    b"'; DROP TABLE runs; --",
    b"x" * 5000,
)
_DEEPEST: Final = 12


class _Field(NamedTuple):
    number: int
    wire_type: int
    content: bytes
    """The number of a varint as it is written, else the bytes."""

    def written(self) -> bytes:
        """Return the field's bytes."""
        head = _varint(self.number << 3 | self.wire_type)
        return head + (_varint(len(self.content)) if self.wire_type == 2 else b"") + self.content


def change_message(chance: random.Random, data: bytes, donor: bytes) -> bytes:
    """Return a message with one field of it, or of a message in it, damaged."""
    return _changed(chance, data, donor, 0)


def _changed(chance: random.Random, data: bytes, donor: bytes, depth: int) -> bytes:
    fields = _fields(data)
    if not fields:
        return data + _Field(chance.randrange(1, 50), 0, _varint(chance.choice(_NUMBERS))).written()
    at = chance.randrange(len(fields))
    field = fields[at]
    below = _fields(field.content) if field.wire_type == 2 and field.content else None
    if below and depth < _DEEPEST and chance.random() < 0.85:
        given = _fields(donor) or []
        like = [one.content for one in given if (one.number, one.wire_type) == (field.number, 2)]
        content = _changed(chance, field.content, chance.choice(like) if like else donor, depth + 1)
        fields[at] = field._replace(content=content)
    else:
        fields[at : at + 1] = _in_place_of(chance, field, fields, donor)
    return b"".join(one.written() for one in fields)


def _in_place_of(chance: random.Random, field: _Field, fields: list[_Field], donor: bytes) -> list[_Field]:
    match chance.randrange(8):
        case 0:
            return []
        case 1:
            return [field] * chance.choice((2, 2, 3, 100))
        case 2:
            return [chance.choice(fields), field]
        case 3:
            return [*chance.sample(_fields(donor) or [field], 1)]
        case 4:
            return [field._replace(number=chance.choice((field.number + 1, chance.randrange(1, 50))))]
        case 5:
            return [_Field(field.number, 0, _varint(chance.choice(_NUMBERS)))]
        case 6:
            return [_Field(field.number, 2, chance.choice(_TEXTS))]
        case _:
            # A message that holds itself, over and over: what reads it step by step into itself fails.
            nested = field.content
            for _ in range(chance.choice((1, 50, 500))):
                nested = _Field(field.number, 2, nested).written()
                if len(nested) > 100_000:
                    break
            return [_Field(field.number, 2, nested)]


def _fields(data: bytes) -> list[_Field] | None:
    """Return the fields of a message; None if the bytes are none."""
    fields: list[_Field] = []
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        if tag < 8 or at < 0:
            return None
        start = at
        match tag & 7:
            case 0:
                _, at = _number(data, at)
            case 1:
                at += 8
            case 2:
                length, start = _number(data, at)
                at = start + length if start >= 0 else -1
            case 5:
                at += 4
            case _:
                return None
        if not start <= at <= len(data):
            return None
        fields.append(_Field(tag >> 3, tag & 7, data[start:at]))
    return fields


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at a place and the place after it, which is -1 if there is none."""
    number = 0
    for shift, byte in enumerate(data[at : at + 10]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return number, at + shift + 1
    return 0, -1


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
