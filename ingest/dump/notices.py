"""Collect notices without letting a file of rubbish fill the memory with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ingest.dump.records import Notice

MAX_NOTICES: Final = 1000
"""Notices that one dump keeps; one more tells that there were others."""
MAX_TEXT: Final = 2000
"""Characters that a notice keeps of the text concerned."""
TOO_MANY: Final = "too-many-notices"


def note(notices: list[Notice], more: Iterable[Notice]) -> None:
    """Add notices as far as there is room."""
    for notice in more:
        if len(notices) < MAX_NOTICES:
            notices.append(notice)
            continue
        if len(notices) == MAX_NOTICES:
            message = f"more than {MAX_NOTICES:,} notices; the others are not told, is the file damaged?"
            notices.append(Notice(notice.file, None, TOO_MANY, message))
        return


def unknown_line(file: str, line: int | None, text: str) -> Notice:
    """Tell of a line whose meaning is not known; `text` may have its newline."""
    text = text.removesuffix("\n")[:MAX_TEXT]
    return Notice(file, line, "unknown-line", "xbuf does not know this line", text)
