"""Read the head and the metadata of an instruction's text.

The text (FORMAT 4.1) is `%NAME = SHAPE OPCODE(operands), attributes`. Shapes, operands and configurations
of 100 KB occur, so they are stepped over by searches and not taken apart.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Instruction(NamedTuple):
    """What an instruction's text says of where it comes from; None is what it does not say."""

    name: str | None = None
    opcode: str | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    stack_frame_id: int | None = None


# Possessive throughout: a text that does not fit must fail in linear time.
_HEAD: Final = re.compile(
    r"\s*+(?:ROOT )?+%?+([^\s=]++) = (?:[^\s(][^\s]*+ )?+(?:([a-z][\w-]*+)\()?+", re.ASCII
)
_OPCODE: Final = re.compile(r"([a-z][\w-]*+)\(", re.ASCII)
_PARENTHESIS: Final = re.compile(r"[()]")

_METADATA: Final = ", metadata={"
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TEXT: Final = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
# The fields in the order in which the releases print them; rarer ones are read one by one.
_FIELDS: Final = re.compile(
    rf"(?:op_type={_STRING} ?)?+(?:op_name={_TEXT} ?)?+(?:source_file={_TEXT} ?)?+"
    r"(?:source_line=(-?[0-9]{1,18}) ?)?+(?:source_end_line=[0-9]++ ?)?+(?:source_column=[0-9]++ ?)?+"
    rf"(?:source_end_column=[0-9]++ ?)?+(?:deduplicated_name={_STRING} ?)?+(?:scheduling_name={_STRING} ?)?+"
    r"(?:stack_frame_id=(-?[0-9]{1,18}))?+\}",
    re.DOTALL,
)
_FIELD: Final = re.compile(rf"\s*+(\w++)=(?:{_TEXT}|(\{{)|([^\s{{}}\"]*+))", re.ASCII | re.DOTALL)
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)
# A string that nothing ends reaches to the end of the text.
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}]|, metadata=\{', re.DOTALL)
_BRACE: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}]', re.DOTALL)

_ESCAPE: Final = re.compile(rb"\\([0-3][0-7]{2}|[\\\"'ntr])")
_ESCAPED: Final = {b"\\": b"\\", b'"': b'"', b"'": b"'", b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def parse_instruction(text: str) -> Instruction:
    """Return what an instruction's text says; never raises, whatever the text is."""
    head = _HEAD.match(text)
    if head is None:
        return _NOTHING
    name, opcode = head.groups()
    end = head.end()
    if opcode is None:
        opcode, end = _opcode_after_shape(text, text.index(" = ") + 3)
    at = text.find(_METADATA, end)
    if at < 0:
        return Instruction(name, opcode)
    if text.find('"', end, at) >= 0 or text.count("{", end, at) != text.count("}", end, at):
        at = _top_level_metadata(text, end)
        if at < 0:
            return Instruction(name, opcode)
    at += len(_METADATA)
    fields = _FIELDS.match(text, at)
    if fields is None:
        return _read_fields(name, opcode, text, at)
    op_name, source_file, line, frame = fields.groups()
    if op_name and "\\" in op_name:
        op_name = unescape(op_name)
    if source_file and "\\" in source_file:
        source_file = unescape(source_file)
    return Instruction(
        name,
        opcode,
        op_name or None,
        source_file or None,
        int(line) if line else None,
        int(frame) if frame else None,
    )


def unescape(text: str) -> str:
    r"""Undo the C escapes that XLA prints in strings; bytes that are no UTF-8 become U+FFFD.

    What is no escape of XLA's (`\x41`, `\q`) stays as it is.
    """
    if "\\" not in text:
        return text
    data = text.encode(errors="surrogatepass")
    return _ESCAPE.sub(_unescaped, data).decode(errors="replace")


_NOTHING: Final = Instruction()


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return _ESCAPED[code] if len(code) == 1 else bytes((int(code, 8),))


def _opcode_after_shape(text: str, start: int) -> tuple[str | None, int]:
    """Return the opcode after the shape at `start` and the place after its parenthesis."""
    if text.startswith("(", start) or text.startswith("b(", start):
        # Inside a tuple a parenthesis is never followed by a blank: elements are parted by ", ".
        end = text.find(") ", start) + 1
    else:
        # An array whose layout holds a physical shape that is a tuple: blanks inside.
        end = _end_of_shape(text, start)
    match = _OPCODE.match(text, end + 1) if end > 0 else None
    return (match[1], match.end()) if match else (None, start)


def _end_of_shape(text: str, start: int) -> int:
    depth, at = 0, start
    for match in _PARENTHESIS.finditer(text, start):
        if depth == 0 and (blank := text.find(" ", at, match.start())) >= 0:
            return blank
        depth += 1 if match[0] == "(" else -1
        at = match.end()
    return -1


def _top_level_metadata(text: str, start: int) -> int:
    """Return where `, metadata={` stands outside strings and braces; -1 if nowhere.

    What looks like metadata within a string or a configuration is not the instruction's.
    """
    depth = 0
    for match in _TOKEN.finditer(text, start):
        first = text[match.start()]
        if first == "{":
            depth += 1
        elif first == "}":
            depth -= 1
        elif first == ",":
            if depth == 0:
                return match.start()
            depth += 1
    return -1


def _read_fields(name: str | None, opcode: str | None, text: str, at: int) -> Instruction:
    """Read metadata whose fields are others or in another order than usual, one by one."""
    texts: dict[str, str] = {}
    while field := _FIELD.match(text, at):
        key, string, brace, plain = field.groups()
        at = field.end()
        if brace:
            at = _after_brace(text, at)
        else:
            texts.setdefault(key, plain if string is None else unescape(string))
    return Instruction(
        name,
        opcode,
        texts.get("op_name") or None,
        texts.get("source_file") or None,
        _integer(texts.get("source_line")),
        _integer(texts.get("stack_frame_id")),
    )


def _after_brace(text: str, start: int) -> int:
    """Return the place after the brace that closes one opened before `start`."""
    depth = 1
    for match in _BRACE.finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if not depth:
                return match.end()
    return len(text)


def _integer(text: str | None) -> int | None:
    return int(text) if text and _NUMBER.fullmatch(text) else None
