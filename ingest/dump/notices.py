"""Collect notices without letting a file of rubbish fill the memory with them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ingest.dump.records import Notice

MAX_NOTICES: Final = 1000
"""Notices of a kind that one dump keeps; one more says that there were others."""
MAX_TEXT: Final = 2000
"""Characters that a notice keeps of the text concerned."""
TOO_MANY: Final = "too-many-notices"


class Notices(list[Notice]):
    """Notices of a dump or of a piece of it, of each kind the first ones; `note` adds to them.

    They are counted by kind: as each kind comes in the order of the text, what is kept does not depend on how
    the text was cut into pieces.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, int] = {}
        self._full: set[str] = set()

    def note(self, notice: Notice) -> None:
        """Add a notice if there is room."""
        count = self._counts.get(notice.kind, 0)
        if notice.kind != TOO_MANY and count < MAX_NOTICES:
            self._counts[notice.kind] = count + 1
            self.append(notice)
            return
        message = notice.message
        if notice.kind != TOO_MANY:
            message = f"more than {MAX_NOTICES:,} notices '{notice.kind}'; the others are left out"
        if message not in self._full:
            self._full.add(message)
            self.append(Notice(notice.file, None, TOO_MANY, message))


def note(notices: Notices, more: Iterable[Notice]) -> None:
    """Add notices as far as there is room."""
    for notice in more:
        notices.note(notice)


def unknown_line(file: str, line: int | None, text: str) -> Notice:
    """Return the notice of a line whose meaning is not known; `text` may have its newline."""
    text = text.removesuffix("\n")[:MAX_TEXT]
    return Notice(file, line, "unknown-line", "xbuf does not know this line", text)
