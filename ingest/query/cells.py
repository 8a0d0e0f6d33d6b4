"""Write the cells of a result: for people, as plain text and as JSON."""

from __future__ import annotations

import datetime
import json
import math
import re
import unicodedata
from decimal import Decimal
from typing import Any

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Control characters, and those that reorder or hide text."""
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_bytes(size: int | None) -> str:
    """Return a size as people read it, in binary units: 5308448 is 5.06 MiB; a dash where it is not known."""
    if size is None:
        return "-"
    if abs(size) < 1024:
        return f"{size} B"
    value = float(size)
    for unit in _UNITS:
        value /= 1024
        if abs(value) < 1024 or unit == _UNITS[-1]:
            break
    return f"{value:.1f} {unit}" if unit == "KiB" else f"{value:.2f} {unit}"


def signed_bytes(change: int) -> str:
    """Return a change of a size with its sign: +1.50 MiB."""
    return ("+" if change > 0 else "") + human_bytes(change)


def escape(text: str) -> str:
    r"""Show control characters instead of sending them to a terminal: ESC becomes \x1b."""
    return _CONTROL.sub(_escaped, text)


def code_span(text: str) -> str:
    """Write a text of a dump as code for a cell of a Markdown table, where nothing of it is markup."""
    if not text:
        return ""
    return f"`{escape(text).replace('`', chr(0x2019)).replace('|', chr(92) + '|')}`"


def shown(value: Any, unit: str | None) -> str:
    """Write a cell for people; NULL is a dash."""
    if value is None:
        return "-"
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        if unit == "bytes":
            return human_bytes(round(value)) if math.isfinite(value) else plain(value)
        if unit in ("percent", "share"):
            return f"{value:.1f}%"
        if unit == "seconds":
            return f"{value:.1f} s"
        if unit == "ratio":
            return f"{value:.2f}x"
        if isinstance(value, float):
            return f"{value:.6g}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    return escape(plain(value))


def plain(value: Any) -> str:
    """Write a cell as text without units; NULL is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, (list, tuple, dict)):
        return json_text(json_value(value))
    return str(value)


def bar(share: float | None, width: int) -> str:
    """Draw a share from 0 to 1 in eighths of a character; what is more is drawn as 1."""
    eighths = round(min(max(share or 0.0, 0.0), 1.0) * width * 8)
    return ("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()).ljust(width)


def json_value(value: Any) -> Any:
    """Turn a cell into what JSON can hold; a number that JSON lacks (NaN, infinity) becomes null."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    return plain(value)


def json_text(value: Any) -> str:
    """Write JSON on one line, with control characters escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def display_width(text: str) -> int:
    """Count the columns that a text takes up on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    if named:
        return named
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"
