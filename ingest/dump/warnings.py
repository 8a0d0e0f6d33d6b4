"""Warn of what is unusual about a dump but no reason to reject it.

None of these occurs in the 3,008 dumps that were looked at, but for values of another color than their
allocation's: each hints at damage, or at a release that is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from ingest.dump import features
from ingest.dump.allocations import ReuseLine
from ingest.dump.notices import MAX_NOTICES
from ingest.dump.pieces import OtherColor
from ingest.dump.records import Notice
from ingest.dump.sections import Piece, Section
from ingest.liveness.measure import Liveness


def note_missing_value(key: str, file: str) -> Notice:
    """Note a live range of a value that has no allocation."""
    return Notice(file, None, "range-without-value", f"{key} has a live range but no allocation", key)


def note_overlaps(liveness: Liveness, id_of: Callable[[int], int], file: str) -> list[Notice]:
    """Note values that share bytes while both are live; `id_of` returns that of a measured interval."""
    return [
        Notice(
            file, None, "overlap", f"values {id_of(one)} and {id_of(other)} share bytes while both are live"
        )
        for one, other in liveness.overlaps[:MAX_NOTICES]
    ]


def note_colors(values: Iterable[OtherColor], reuse: Sequence[ReuseLine], file: str) -> list[Notice]:
    """Note, once an allocation, values of another color than its own, but for those that `reuse` lists."""
    listed = {(line.header, int(line.id)) for line in reuse}
    notices: dict[int, Notice] = {}
    for owner, id_, color, of_allocation in sorted(values):
        if owner not in notices and (owner, id_) not in listed:
            message = f"value {id_} has color {color}, its allocation has {of_allocation}"
            notices[owner] = Notice(file, None, "color-differs", message)
    return list(notices.values())


def note_mixed(found: set[str], file: str) -> list[Notice]:
    """Note habits of a release that a dump keeps in one place and not in another; tidy up `found`."""
    if found.isdisjoint(_MARKS):
        return []
    lacking = found.intersection(_MARKS)
    found -= lacking
    return [
        Notice(file, None, "mixed-format", f"'{feature}' holds for a part of the dump only; was it edited?")
        for feature in sorted(_MARKS[mark] for mark in lacking)
        if feature in found
    ]


_MARKS = {
    features.without(feature): feature
    for feature in (features.GLUED_NEWLINE, features.FROM_INSTRUCTION_BLANK, features.USES_NONE)
}


def note_blank_lines(text: str, following: Piece, file: str, found: Collection[str]) -> list[Notice]:
    """Note another number of blank lines between two sections than XLA prints.

    Args:
        text: the end of the section.
        following: the start of the next section; total, values or sequence.
        file: name for the notice.
        found: features of the dump.
    """
    blank = len(text) - len(text.rstrip("\n")) - 1
    usual = 2 if following.section is Section.SEQUENCE else 1
    if blank == usual or (usual == 2 and blank == 1 and features.GLUED_NEWLINE in found):
        return []
    message = f"{blank} blank lines before the section {following.section.label}; XLA prints {usual}"
    return [Notice(file, following.line, "blank-lines", message)]


_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_size(size: int) -> str:
    """Return a size as 'Total bytes used' prints it for people (FORMAT 3)."""
    if size < 1024:
        return f"{size}B"
    unit = 0
    while size >= 1 << 20:
        size //= 1024
        unit += 1
    return f"{size / 1024:.1f}KiB" if not unit else f"{size / 1024:.2f}{_UNITS[min(unit, 5)]}"
