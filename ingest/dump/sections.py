"""Cut the text of a dump's files into sections, without holding a large file in memory.

A dump prints up to seven sections in this order; since jaxlib 0.10 they are spread over three files
(FORMAT 0.1). `cut` reads text block by block and yields pieces: each piece is a run of whole records of
one section, so that pieces can be scanned apart, also in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from ingest.dump.allocations import REUSE_HEAD
from ingest.dump.used_values import HEAD_ANYWHERE
from ingest.errors import DumpError

MAX_RECORD: Final = 64 << 20
"""Characters that one record may have; longer ones are rejected so that memory stays bounded."""


class Section(IntEnum):
    """Sections in the order in which a dump prints them."""

    ALLOCATIONS = 0
    TOTAL = 1
    VALUES = 2
    SEQUENCE = 3
    RANGES = 4
    PEAK = 5
    TREE = 6

    @property
    def label(self) -> str:
        """Name in messages and in `rejects.section`."""
        return self.name.lower()


class Piece(NamedTuple):
    """A run of whole records of one section."""

    section: Section
    text: str
    line: int
    """Line of the file at which the text starts, from 1."""
    is_last: bool = False
    """Nothing follows in the file."""


_MARKERS: Final = (
    (Section.TOTAL, "\nTotal bytes used: "),
    (Section.VALUES, "\nUsed values:\n"),
    (Section.SEQUENCE, "\nHloLiveRange (max "),
    (Section.SEQUENCE, "\nHloLiveRange not available"),
    (Section.RANGES, "\n  BufferLiveRange:\n"),
    (Section.PEAK, "\n  Live ranges at "),
    (Section.PEAK, "\n  Peak memory could not be determined"),
    (Section.TREE, "\n  Stack trace breakdown for peak usage: "),
)
_MARKERS_AFTER: Final = {
    section: tuple(marker for marker in _MARKERS if marker[0] > section) for section in Section
}
_REUSE_HEAD: Final = f"\n{REUSE_HEAD}"
_POSITIONS: Final = "\n positions:\n"
_LONGEST_MARKER: Final = max(len(marker) for _, marker in _MARKERS)


def cut(blocks: Iterable[str], start: Section) -> Iterator[Piece]:
    """Yield the pieces of one file whose text begins in section `start`.

    Args:
        blocks: the text in consecutive parts, none of them empty; where a part ends does not matter.
        start: ALLOCATIONS for a primary file, TOTAL for a values file, SEQUENCE for a live-range file.

    Raises:
        DumpError: a record is longer than MAX_RECORD.
    """
    section, line, text, searched = start, 1, "", 0
    iterator = iter(blocks)
    block = next(iterator, "")
    while block:
        following_block = next(iterator, "")  # so that a small file stays in one piece a section
        text = text + block if text else block
        start_of_piece = 0
        for at, following in _later_sections(text, section, searched):
            if following > section:
                yield _piece(section, text[start_of_piece : at + 1], line)
                line += text.count("\n", start_of_piece, at + 1)
                start_of_piece, section = at + 1, following
        text = text[start_of_piece:]
        if following_block and (end := _record_border(text, section)):
            yield _piece(section, text[:end], line)
            line += text.count("\n", 0, end)
            text = text[end:]
        searched = max(0, len(text) - _LONGEST_MARKER)
        if following_block and len(text) > MAX_RECORD:
            raise _too_long(section, text, line)
        block = following_block
    if text:  # the last block is never empty, and is not cut at a record
        yield _piece(section, text, line, is_last=True)


def _piece(section: Section, text: str, line: int, *, is_last: bool = False) -> Piece:
    """Make a piece; refuse a line that is too long."""
    if len(text) > MAX_RECORD:
        for number, one in enumerate(text.split("\n"), line):
            if len(one) > MAX_RECORD:
                raise _too_long(section, one, number)
    return Piece(section, text, line, is_last)


def _too_long(section: Section, text: str, line: int) -> DumpError:
    return DumpError(
        "line-too-long",
        f"a record of the section {section.label} is longer than {MAX_RECORD:,} characters",
        line=line,
        section=section.label,
        text=text[:2000],
    )


def _later_sections(text: str, section: Section, searched: int) -> list[tuple[int, Section]]:
    """Find where later sections start for the first time in `text`, at the line end before their heads."""
    heads: list[tuple[int, Section]] = []
    for following, marker in _MARKERS_AFTER[section]:
        if (at := text.find(marker, searched)) >= 0:
            heads.append((at, following))
    return sorted(heads)


def _record_border(text: str, section: Section) -> int:
    """Find the last place at which `text` can be cut between two records; 0 for none."""
    match section:
        case Section.ALLOCATIONS:
            border = _last_start(text, "\nallocation ")
            value = _last_start(text, "\n value: ")
            if value > border and text.rfind(_REUSE_HEAD, border, value) < 0:
                return value  # not in a list of reused values, where no value can follow
            return border
        case Section.VALUES:
            # A block starts at its `<id name>` head, which jaxlib 0.4.24-0.4.35 glue to the line before.
            end = len(text)
            while (end := text.rfind(_POSITIONS, 0, end)) > 0:
                start = text.rfind("<", text.rfind("\n", 0, end) + 1, end)
                is_head = start > 0 and HEAD_ANYWHERE.match(text, start)
                if not HEAD_ANYWHERE.search(text, 0, start):
                    return 0
                if is_head and not text.endswith("\n\n", 0, start):
                    return start
            return 0
        case Section.SEQUENCE | Section.RANGES:
            # Keep one whole line back: the newline before a marker must stay with the marker.
            end = text.rfind("\n", 0, max(text.rfind("\n"), 0)) + 1
            if text.startswith("HloLiveRange"):
                head = text.find("\n", text.find("\n") + 1) + 1  # two lines
                return end if 0 < head <= end else 0
            return end
        case _:
            return 0  # scanned whole


def _last_start(text: str, start: str) -> int:
    """Return where the last line begins that starts so; 0 if none does."""
    end = len(text)
    while (end := text.rfind(start, 0, end)) > 0:
        # Blank lines end a section: those within it stay with what follows.
        if not text.endswith("\n", 0, end):
            return end + 1
    return 0
