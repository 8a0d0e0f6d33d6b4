"""How a buffer is named in a sentence: instruction, source line, operation and shape."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from ingest.display import display, place_in

_SOURCE: Final = re.compile(r"(.+?)(?::(\d+))?(?: \(\w+\))?")
"""As source_text() writes it."""


def named(
    value: str, number: int, file: str | None, line: int | None, op_name: str | None, shape: str | None
) -> str:
    """Name buffers that were folded into one: fusion.18 and 3 alike of train.py:52 (jvp()/dot, f32[8])."""
    others = "" if number == 1 else f" and {number - 1:,} alike"
    at = "" if file is None else f" of {place_in(file, line)}"
    about = ", ".join(text for text in (op_name, shape) if text)
    return f"{value}{others}{at}" + (f" ({about})" if about else "")


def source_place(source: object) -> tuple[str | None, int | None]:
    """Take apart what source_text() wrote: file, relative if below the working directory, and line."""
    found = _SOURCE.fullmatch(display(source)) if isinstance(source, str) else None
    if found is None:
        return None, None
    return relative(found[1]), int(found[2]) if found[2] else None


def relative(file: str) -> str:
    """Name a source file as a checkout has it."""
    try:
        return str(Path(file).relative_to(os.getcwd()))
    except ValueError:
        return file
