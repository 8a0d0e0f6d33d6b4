"""Read the text of a shape: element type, dimensions, layout and what an array of it needs.

The grammar is that of FORMAT 6 with the attributes of all eras in any order. Tuples are recognised, not taken
apart: a value's shape is the tuple's table, and its leaves are values of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

_BITS_BY_NAMES: Final = {
    8: "pred s1 s2 s4 s8 u1 u2 u4 u8 f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11 f8e4m3b11fnuz f8e3m4 f8e5m2fnuz "
    "f8e4m3fnuz f8e8m0fnu f4e2m1fn f6e3m2fn f6e2m3fn",
    16: "s16 u16 f16 bf16",
    32: "s32 u32 f32",
    64: "s64 u64 f64 c64",
    128: "c128",
}
ELEMENT_BITS: Final = MappingProxyType(
    {name: bits for bits, names in _BITS_BY_NAMES.items() for name in names.split()}
)
"""Bits of one element; types narrower than a byte take a whole one unless the layout says `E(n)`."""

_DATALESS: Final = frozenset({"token", "opaque"})
_MAX_INT: Final = 2**63 - 1

_ARRAY: Final = re.compile(
    r"([a-z][a-z0-9_]*)\[([0-9<=?,]*)\](?:\{([0-9,]*)(?::(.+))?\})?", re.ASCII | re.DOTALL
)
_ATTRIBUTE: Final = re.compile(
    r"""
      (?P<tiles>T) (?P<tile>\([0-9*,]*\))+
    | SC (?:\([0-9]+:[0-9,]*\))+
    | (?P<number>[LESM]) \( (?P<value>-?[0-9]{1,18}) \)
    | D\([DCSH+~,]*\)
    | [\#*]\([a-z0-9]+\)
    | P(?=\()
    """,
    re.ASCII | re.VERBOSE,
)
_PARENTHESIS: Final = re.compile(r"[()]")


@dataclass(frozen=True, slots=True)
class Shape:
    """What the text of a shape says; None is what it does not say or what has no meaning."""

    dtype: str | None
    """As printed; `tuple` for tuples."""
    dimensions: tuple[int, ...] | None
    """() for scalars and tokens; a bound `<=N` counts as N. None for tuples and where a dimension is `?`."""
    minor_to_major: tuple[int, ...] | None
    """Layout, most minor dimension first; None if no layout is printed."""
    tiling: str | None
    """As printed, e.g. `T(8,128)(2,1)`."""
    element_bits: int | None
    """From E(n), else the type's; None for tuples, token, opaque and types that are not known."""
    memory_space: int | None
    """From S(n), 0 if not printed; None for tuples."""
    logical_bytes: int | None
    """Dimensions x element bits without tiling, rounded up to bytes; None without dimensions or bits."""
    is_tuple: bool = False
    is_known: bool = True
    """False if the text, its type or a number in it is beyond us; what it does say stands."""

    @property
    def array_type(self) -> tuple[str | None, tuple[int, ...]] | None:
        """Element type and dimensions; None for what is no array: tuples, tokens, opaque values."""
        if self.dimensions is None or self.dtype in _DATALESS:
            return None
        return self.dtype, self.dimensions


class Layout(NamedTuple):
    """Attributes of a layout that are kept."""

    tiling: str | None = None
    element_bits: int | None = None
    memory_space: int = 0


_TUPLE: Final = Shape("tuple", None, None, None, None, None, None, is_tuple=True)
_UNKNOWN: Final = Shape(None, None, None, None, None, None, None, is_known=False)


def parse_shape(text: str) -> Shape:
    """Return what the text of a shape says; a text that is no shape gives one that is not known.

    The work does not depend on the length of a tuple. A buffer, `b(f32[8]{0})`, counts as what it holds.
    """
    if text.startswith("b(") and text.endswith(")"):
        text = text[2:-1]
    if text.startswith("("):
        return _TUPLE if text.endswith(")") else _UNKNOWN
    match = _ARRAY.fullmatch(text)
    if match is None:
        return _UNKNOWN
    dtype, dims, order, attributes = match.groups()
    layout = _PLAIN if attributes is None else _read_layout(attributes)
    dimensions, dims_fit = _read_dimensions(dims)
    minor_to_major, order_fits = (None, True) if order is None else _read_integers(order)
    if layout is None:
        # The type and the dimensions come first and are beyond doubt.
        return Shape(dtype, dimensions, minor_to_major, None, None, None, None, is_known=False)
    bits = layout.element_bits or ELEMENT_BITS.get(dtype)
    logical_bytes = None
    is_known = dims_fit and order_fits and (bits is not None or dtype in _DATALESS)
    if dtype in _DATALESS:
        bits = None
    elif bits is not None and dimensions is not None:
        logical_bytes = _logical_bytes(dimensions, bits)
        is_known = is_known and logical_bytes is not None
    return Shape(
        dtype,
        dimensions,
        minor_to_major,
        layout.tiling,
        bits,
        layout.memory_space,
        logical_bytes,
        False,
        is_known,
    )


_PLAIN: Final = Layout()


def _read_layout(attributes: str) -> Layout | None:
    """Return the attributes after a layout's colon; None if one of them is not known."""
    tiling = element_bits = None
    memory_space = at = 0
    while at < len(attributes):
        match = _ATTRIBUTE.match(attributes, at)
        if match is None:
            return None
        at = match.end()
        number = match["number"]
        if number in ("E", "L") and int(match["value"]) < 1:
            return None
        if match["tiles"]:
            tiling = match[0]
        elif number == "E":
            element_bits = int(match["value"])
        elif number == "S":
            memory_space = int(match["value"])
        elif match[0] == "P":
            at = _closing(attributes, at)
            if not at:
                return None
    return Layout(tiling, element_bits, memory_space)


def _closing(text: str, start: int) -> int:
    """Return the place after the parenthesis that closes the one at `start`; 0 if none does."""
    depth = 0
    for match in _PARENTHESIS.finditer(text, start):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.end()
    return 0


def _read_dimensions(text: str) -> tuple[tuple[int, ...] | None, bool]:
    """Return the dimensions, and whether they are well-formed and fit BIGINT."""
    if "?" in text:
        return None, True
    return _read_integers(text.replace("<=", "")) if text != "<=" else (None, False)


def _read_integers(text: str) -> tuple[tuple[int, ...] | None, bool]:
    if not text:
        return (), True
    parts = text.split(",")
    if not all(part.isdecimal() and len(part) < 20 for part in parts):
        return None, False
    numbers = tuple(map(int, parts))
    return (numbers, True) if max(numbers) <= _MAX_INT else (None, False)


def _logical_bytes(dimensions: tuple[int, ...], bits: int) -> int | None:
    """Return the bytes of so many elements; None beyond BIGINT."""
    if 0 in dimensions:
        return 0
    elements = 1
    for dimension in dimensions:
        elements *= dimension
        # Stops a text of many dimensions from growing an endless number.
        if elements > _MAX_INT:
            return None
    size = -(-elements * bits // 8)
    return size if size <= _MAX_INT else None
