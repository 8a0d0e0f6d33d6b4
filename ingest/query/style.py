"""Colour and links of a terminal, where they are wanted; no text of a dump becomes a control sequence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

_SOURCE = re.compile(r"(?P<path>/.*?)(?::\d+)?(?: \(\w+\))?")


@dataclass(frozen=True, slots=True)
class Style:
    """What may be sent to the terminal besides text.

    Attributes:
        color: bold, faint and coloured text.
        links: OSC 8 links on source lines.
    """

    color: bool = False
    links: bool = False

    def heading(self, text: str) -> str:
        """Paint the head of a column."""
        return self._painted(text, "1")

    def faint(self, text: str) -> str:
        """Paint what is of little weight."""
        return self._painted(text, "2")

    def bar(self, text: str) -> str:
        """Paint the bar of a share."""
        return self._painted(text, "36")

    def source(self, text: str, source: str) -> str:
        """Make a link to the file of a source line, e.g. /home/train.py:35; a relative path has none."""
        match = _SOURCE.fullmatch(source) if self.links and text.strip() else None
        if match is None:
            return text
        # Quoted, a path is printable ASCII without a control character, so that it cannot end the sequence.
        url = "file://" + quote(match["path"], errors="surrogateescape")
        shown = text.strip()
        return text.replace(shown, f"\x1b]8;;{url}\x1b\\{shown}\x1b]8;;\x1b\\", 1)

    def _painted(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text.strip() else text


PLAIN = Style()
"""Text alone."""
