"""What a module is called with: the shapes of its entry parameters, without layouts.

Two compilations of one function are paired by them. Compilers choose layouts, callers do not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from ingest.dump.headers import Header

_LAYOUT: Final = re.compile(r"\{[^{}]*\}|/\*[^*]*\*/")
"""A layout, or the comment that numbers the elements of a long tuple; as the macro shapes_only has it."""


def entry_parameters(headers: Iterable[Header]) -> list[tuple[int, str]]:
    """Return number and shape, without layouts, of the entry parameters that allocations hold whole."""
    return [
        (flags.parameter_number, without_layouts(flags.parameter_shape))
        for flags in (header.attributes for header in headers)
        if flags.parameter_number is not None
        and flags.parameter_shape_index == "{}"
        and flags.parameter_shape is not None
    ]


def parameters_digest(parameters: Iterable[tuple[int, str]]) -> int | None:
    """Return 64 bits that stand for the shapes of parameters in order of their numbers; None without any."""
    shapes = [shape for _, shape in sorted(parameters)]
    return digest(", ".join(shapes)) if shapes else None


def layout_digest(layout: str | None) -> int | None:
    """Return 64 bits that stand for the shapes of an entry_computation_layout; None for none.

    The braces around the whole would pass for those of a layout.
    """
    return None if layout is None else digest(without_layouts(layout[1:-1]))


def without_layouts(text: str) -> str:
    """Return the shapes of a text without their layouts: f32[8,4] for f32[8,4]{1,0:T(8,128)}."""
    return _LAYOUT.sub("", text)


def digest(text: str) -> int:
    """Return the first 64 bits of a text's SHA-256, signed."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)
