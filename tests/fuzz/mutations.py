"""Damage dumps at random, the way disks, copies, editors and attackers do."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

Texts = dict[str, bytes]
"""The bytes of the files of a set by role."""

NUMBERS: Final = (
    b"0",
    b"-1",
    b"1",
    b"00",
    b"2147483648",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"-9223372036854775809",
    b"1" + b"0" * 40,
    b"9" * 5000,
    b"1e9",
    b"0x10",
    b"\xd9\xa1\xd9\xa2",  # Arabic-Indic digits, which int() reads
    b"\xc2\xb2",  # superscript two, which is a digit and no decimal
)
PIECES: Final = (
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\x00",
    b"\x1b[31m",
    b"\xff",
    b"\xed\xa0\x80",  # a lone surrogate, as some encoders write it
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",  # right-to-left override
    b"\xe2\x80\xa8",  # line separator
    b"\xf4\x90\x80\x80",
    b"\x0b",
    b"\x0c",
    b"\xc2\x85",
    b"\t",
    b" ",
    b"  ",
    b"    ",
    b"{",
    b"}",
    b"{}",
    b"(",
    b")",
    b"((((",
    b"|",
    b"<",
    b">",
    b"<1 a @0>",
    b", ",
    b":",
    b'"',
    b"\\",
    b"'; DROP TABLE runs; --",
    b"=cmd()",
    b"BufferAssignment:\n",
    b"\nallocation 0: size 0:\n",
    b"\n value: <1 a @0> (size=0,offset=0): ()\n",
    b" reused by buffers of a different color:\n",
    b"\nTotal bytes used: 0\n",
    b"\nUsed values:\n",
    b"\n positions:\n",
    b"\n uses:\n",
    b"  (none)\n",
    b" from instruction: ",
    b"\n\nHloLiveRange (max 1):\n",
    b"  InstructionSequence:\n",
    b"  BufferLiveRange:\n",
    b"  Live ranges at 0 (peak):\n",
    b"  Peak memory could not be determined due to unbounded dynamic shape.\n",
    b"  Stack trace breakdown for peak usage: 0 bytes\n",
    b" (0.0%, total: 0 bytes, current: 0 bytes, remaining: 0 bytes)\n",
    "      ├── ".encode(),
    "      └── ".encode(),
    "│   ".encode(),
    b", positions:\n",
    b"](#1 @0) [0,4]: f32[]\n",
    b"(" * 2000,
    b"x" * 70_000,
)
_NUMBER: Final = re.compile(rb"-?[0-9]+")
_NAME: Final = re.compile(rb"[A-Za-z_][A-Za-z0-9_.-]+")
_CONTROL_NAMES: Final = (b"\x1b]0;x\x07", b"a\x00b", b"\xe2\x80\xaeabc", b"a\x7fb", b"a\x85b", b"%s%n{}")


def mutate(chance: random.Random, texts: Mapping[str, bytes], others: Sequence[Mapping[str, bytes]]) -> Texts:
    """Return a damaged copy of a set; `others` are sets to take pieces from."""
    damaged = dict(texts)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        if chance.random() < 0.02:
            damaged = chance.choice(_OF_SETS)(chance, damaged, others)
            continue
        role = chance.choice(tuple(damaged))
        other = chance.choice(others)
        donor = other.get(role) or other["primary"]
        damaged[role] = change_text(chance, damaged[role], donor)
    return damaged


def change_text(chance: random.Random, text: bytes, donor: bytes) -> bytes:
    """Return the bytes of a file, text or not, damaged in one way; `donor` is a file to take pieces from."""
    return chance.choice(_OF_TEXTS)(chance, text, donor)


def _flip_bit(chance: random.Random, text: bytes, _: bytes) -> bytes:
    if not text:
        return text
    at = chance.randrange(len(text))
    return text[:at] + bytes((text[at] ^ (1 << chance.randrange(8)),)) + text[at + 1 :]


def _set_byte(chance: random.Random, text: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + bytes((chance.randrange(256),)) + text[at + 1 :]


def _remove_bytes(chance: random.Random, text: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(text) + 1)
    return text[:at] + text[at + chance.choice((1, 1, 1, 2, 3, 5, 8, 40)) :]


def _repeat_bytes(chance: random.Random, text: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(text) + 1)
    piece = text[at : at + chance.choice((1, 1, 2, 3, 8, 40, 200))]
    return text[:at] + piece * chance.choice((2, 2, 3, 50)) + text[at + len(piece) :]


def _insert_piece(chance: random.Random, text: bytes, _: bytes) -> bytes:
    at = chance.randrange(len(text) + 1)
    if chance.random() < 0.5:
        at = text.find(b"\n", at) + 1
    return text[:at] + chance.choice(PIECES) + text[at:]


def _cut(chance: random.Random, text: bytes, _: bytes) -> bytes:
    return text[: chance.randrange(len(text) + 1)]


def _cut_at_line(chance: random.Random, text: bytes, _: bytes) -> bytes:
    return text[: text.find(b"\n", chance.randrange(len(text) + 1)) + 1]


def _change_number(chance: random.Random, text: bytes, _: bytes) -> bytes:
    places = [match.span() for match in _NUMBER.finditer(text)]
    if not places:
        return text
    start, end = chance.choice(places)
    number = chance.choice(NUMBERS)
    if chance.random() < 0.3:
        number = str(int(text[start:end][:4000]) + chance.choice((-1, 1, 2**62))).encode()
    return text[:start] + number + text[end:]


def _change_name(chance: random.Random, text: bytes, _: bytes) -> bytes:
    places = [match.span() for match in _NAME.finditer(text)]
    if not places:
        return text
    start, end = chance.choice(places)
    name = chance.choice(_CONTROL_NAMES)
    if chance.random() < 0.5:
        return text.replace(text[start:end], name)
    return text[:start] + name + text[end:]


def _move_lines(chance: random.Random, text: bytes, donor: bytes) -> bytes:
    lines = text.split(b"\n")
    at = chance.randrange(len(lines))
    count = chance.choice((1, 1, 1, 2, 3, 10))
    to = chance.randrange(len(lines))
    taken = lines[at : at + count]
    match chance.randrange(5):
        case 0:
            del lines[at : at + count]
        case 1:
            lines[at:at] = taken
        case 2:
            lines[to:to] = taken
        case 3:
            lines[at], lines[to] = lines[to], lines[at]
        case _:
            given = donor.split(b"\n")
            start = chance.randrange(len(given))
            lines[at:at] = given[start : start + count]
    return b"\n".join(lines)


def _splice(chance: random.Random, text: bytes, donor: bytes) -> bytes:
    at, start = chance.randrange(len(text) + 1), chance.randrange(len(donor) + 1)
    if chance.random() < 0.7:
        at, start = text.find(b"\n", at) + 1, donor.find(b"\n", start) + 1
    return text[:at] + donor[start:]


def _change_line_ends(chance: random.Random, text: bytes, _: bytes) -> bytes:
    return text.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b"\n\r")))


def _mark_order(chance: random.Random, text: bytes, _: bytes) -> bytes:
    return chance.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd")) + text


def _remove_member(chance: random.Random, texts: Texts, _: Sequence[Mapping[str, bytes]]) -> Texts:
    role = chance.choice(tuple(texts))
    return {one: text for one, text in texts.items() if one != role or one == "primary"}


def _empty_member(chance: random.Random, texts: Texts, _: Sequence[Mapping[str, bytes]]) -> Texts:
    return texts | {chance.choice(tuple(texts)): b""}


def _swap_members(chance: random.Random, texts: Texts, _: Sequence[Mapping[str, bytes]]) -> Texts:
    one, other = chance.choice(tuple(texts)), chance.choice(tuple(texts))
    return texts | {one: texts[other], other: texts[one]}


def _foreign_member(chance: random.Random, texts: Texts, others: Sequence[Mapping[str, bytes]]) -> Texts:
    other = chance.choice(others)
    role = chance.choice(tuple(other))
    return texts | {role: other[role]}


_OF_TEXTS: Final[tuple[Callable[[random.Random, bytes, bytes], bytes], ...]] = (
    _flip_bit,
    _set_byte,
    _remove_bytes,
    _repeat_bytes,
    _insert_piece,
    _insert_piece,
    _cut,
    _cut_at_line,
    _change_number,
    _change_number,
    _change_name,
    _move_lines,
    _move_lines,
    _move_lines,
    _splice,
    _change_line_ends,
    _mark_order,
)
_OF_SETS: Final[tuple[Callable[[random.Random, Texts, Sequence[Mapping[str, bytes]]], Texts], ...]] = (
    _remove_member,
    _empty_member,
    _swap_members,
    _foreign_member,
)
