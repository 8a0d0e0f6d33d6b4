"""Names and texts of others, fit for a terminal and for the database; counts and places in words."""

from __future__ import annotations

from typing import Final

_SHORT_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def display(name: str) -> str:
    r"""Return a name or text fit for a terminal and for the database.

    Control characters, other characters that do not print and bytes that are no UTF-8 are escaped: `\n`,
    `\x1b`, `\u202e`, and `\xff` for the byte. A text without them stays as it is, backslashes too.
    """
    if name.isprintable():
        return name
    return "".join(character if character.isprintable() else _escape(character) for character in name)


def counted(number: int, what: str) -> str:
    """Count things in words: 1 run, 2,000 runs."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def place_in(file: str, line: int | None) -> str:
    """Name a place in a file: FILE:LINE, or the file where no line is known."""
    return file if line is None else f"{file}:{line}"


def _escape(character: str) -> str:
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if 0xDC80 <= code <= 0xDCFF:  # how Python holds a byte of a name that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
