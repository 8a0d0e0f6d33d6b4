"""Shorten a text so that what distinguishes it from others stays.

A source line keeps its file and line, an op_name its last parts, a shape its dimensions, the name of an
instruction its number, prose its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from ingest.query.cells import display_width


class Kind(Enum):
    """What a column of texts holds; it decides what a cut keeps."""

    NAME = "name"
    PARTS = "parts"
    SHAPE = "shape"
    PROSE = "prose"
    FIXED = "fixed"


_KINDS = {
    **dict.fromkeys(("source", "owner", "op_name", "scope", "file", "source_file", "dump_dir"), Kind.PARTS),
    **dict.fromkeys(
        ("message", "text", "sources", "labels", "names", "opcodes", "run_ids", "features", "node",
         "question", "title", "comment"),
        Kind.PROSE,
    ),
    **dict.fromkeys(
        ("started_at", "ingested_at", "status", "change", "confidence", "verdict", "kind", "opcode"),
        Kind.FIXED,
    ),
}  # fmt: skip
_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}")
_NAME_LEAST = 14
_PARTS_LEAST = 28
_PROSE_LEAST = 24
_FIXED_LEAST = 24


def kind_of(name: str) -> Kind:
    """Return what a text column of that name holds."""
    if name == "shape" or name.endswith("_shape"):
        return Kind.SHAPE
    return _KINDS.get(name, Kind.NAME)


def least_width(text: str, kind: Kind) -> int:
    """Return the fewest characters in which a text still says what it must; at most its own width."""
    width = display_width(text)
    match kind:
        case Kind.SHAPE:
            return min(width, display_width(_first_elements(without_layouts(text), 0)))
        case Kind.PARTS:
            # One character for the ellipsis in front.
            return min(width, display_width(_split(text)[-1]) + 1, _PARTS_LEAST)
        case Kind.PROSE:
            return min(width, _PROSE_LEAST)
        case Kind.FIXED:
            return min(width, _FIXED_LEAST)
        case Kind.NAME:
            return min(width, _NAME_LEAST)


def shorten(text: str, kind: Kind, width: int) -> str:
    """Return a text in at most `width` characters; an ellipsis stands for what is missing.

    A shape that does not fit in `width` even with its first element alone comes out wider.
    """
    if display_width(text) <= width:
        return text
    match kind:
        case Kind.SHAPE:
            return _first_elements(without_layouts(text), width)
        case Kind.PARTS:
            return _last_parts(text, width)
        case Kind.PROSE:
            return _head(text, width - 1) + "…"
        case _:
            return _ends(text, width)


def common_parts(texts: Sequence[str]) -> str:
    """Return the leading parts that all of the texts share, with the last '/'; never a text as a whole.

    Empty where nothing but the root is shared.
    """
    split = [_split(text) for text in texts]
    shared = 0
    while all(len(parts) > shared + 1 for parts in split) and len({parts[shared] for parts in split}) == 1:
        shared += 1
    prefix = "".join(split[0][:shared]) if split else ""
    return prefix if prefix.strip("/") else ""


def without_layouts(shape: str) -> str:
    """Leave the layouts (order of dimensions, tiles, memory space) out of a shape."""
    return _LAYOUT.sub("", shape)


def _split(text: str) -> list[str]:
    """Part a text behind each '/' outside of brackets; together the parts are the text."""
    parts, start, depth = [], 0, 0
    for place, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth = max(depth - 1, 0)
        elif char == "/" and depth == 0:
            parts.append(text[start : place + 1])
            start = place + 1
    return [*parts, text[start:]]


def _last_parts(text: str, width: int) -> str:
    parts = _split(text)
    kept = ""
    while parts and display_width(kept) + display_width(parts[-1]) + 1 <= width:
        kept = parts.pop() + kept
    if kept:
        return "…" + kept
    return _ends(parts[-1], width)


def _first_elements(shape: str, width: int) -> str:
    """Cut a shape behind as many whole elements as fit, at least one."""
    if display_width(shape) <= width or not shape.startswith("("):
        return shape
    ends = [match.end() for match in re.finditer(r"\]", shape)]
    if len(ends) < 2:
        return shape
    mark = ",…)"
    fitting = [end for end in ends[:-1] if display_width(shape[:end]) + len(mark) <= width]
    return shape[: fitting[-1] if fitting else ends[0]] + mark


def _ends(text: str, width: int) -> str:
    """Cut a text in its middle; more of the end stays, where the number of an instruction is."""
    if width <= 1:
        return "…"[:width]
    head = _head(text, (width - 1) // 2)
    tail = _head(text[::-1], width - 1 - display_width(head))[::-1]
    return head + "…" + tail


def _head(text: str, width: int) -> str:
    """Return as much of the beginning as fits."""
    if text.isascii():
        return text[: max(width, 0)]
    used = 0
    for place, char in enumerate(text):
        used += display_width(char)
        if used > width:
            return text[:place]
    return text
