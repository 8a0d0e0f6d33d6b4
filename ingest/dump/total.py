"""Scan the short sections: the total, and the line that stands where a dump has no live ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ingest.dump import features
from ingest.dump.grammar import INT, KNOWN_START, LINES
from ingest.dump.live_range import WHY_UNAVAILABLE
from ingest.dump.notices import MAX_TEXT, note, unknown_line
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Notice
from ingest.dump.sections import Piece
from ingest.dump.warnings import human_size
from ingest.errors import DumpError

_TOTAL: Final = re.compile(rf"Total bytes used: ({INT})(?: \(([^)\n]*)\))?\n")


def scan_unavailable(dump: ParsedDump, piece: Piece, file: str) -> None:
    """Take the line that stands where a dump has no live ranges; note what else stands there."""
    text, line = piece.text, piece.line
    dump.features.add(features.LIVE_RANGE_UNAVAILABLE)
    first, *others = LINES.findall(text)
    if first != WHY_UNAVAILABLE:
        message = "XLA says in other words than usual why there are no live ranges"
        note(dump.notices, [Notice(file, line, "live-range-unavailable", message, first[:MAX_TEXT])])
    note_lines(dump, others, line + 1, file)


def note_lines(dump: ParsedDump, lines: Sequence[str], first: int, file: str) -> None:
    """Note lines whose meaning is not known; `first` is the number of the first one."""
    note(dump.notices, (unknown_line(file, number, line) for number, line in enumerate(lines, first)))


def scan_total(dump: ParsedDump, text: str, line: int, file: str) -> None:
    body = text.lstrip("\n")
    blank = len(text) - len(body)
    if blank != (line == 1):
        # A values file starts with a blank line; elsewhere it belongs to the section before.
        message = f"{blank} blank lines before the total; XLA prints one"
        note(dump.notices, [Notice(file, line, "blank-lines", message)])
    match = _TOTAL.match(body)
    if match is None:
        if body:
            raise _bad_total(body, line + blank, file)
        return
    dump.total = int(match[1])
    dump.features.add(features.TOTAL)
    if match[2] is not None:
        dump.features.add(features.HUMAN_TOTAL)
        if match[2] != human_size(dump.total):
            message = f"'Total bytes used' is {human_size(dump.total)} for people, not {match[2]}"
            note(dump.notices, [Notice(file, line + blank, "total-text", message[:MAX_TEXT])])
    for number, other in enumerate(LINES.findall(body.rstrip("\n"), match.end()), line + blank + 1):
        if KNOWN_START.match(other):
            raise _bad_total(other, number, file)
        note(dump.notices, [unknown_line(file, number, other)])


def _bad_total(text: str, line: int, file: str) -> DumpError:
    return DumpError(
        "bad-line",
        "expected 'Total bytes used: N', once; is the file damaged?",
        file=file,
        line=line,
        section="total",
        text=text[: text.find("\n")] if "\n" in text else text,
    )
