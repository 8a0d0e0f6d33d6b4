"""Whether the files of a set are whole: how they begin and end, and which sections they hold.

As the rules of `ingest.dump.check`, each held in all public dumps that were looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ingest.dump import features
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Notice
from ingest.dump.sections import Section
from ingest.errors import DumpError


def check_start(text: str, role: str, file: str) -> None:
    """Require a file to begin as one of its role does, a primary file with its whole head line.

    Of a file that does not, no text is kept: whatever it holds, it was not meant to be loaded.
    """
    if role != "primary":
        body = text.lstrip("\n")
        if not any(start.startswith(body[: len(start)]) for start in _STARTS[role]):
            raise DumpError(
                "not-a-dump",
                f"the file does not begin with '{_STARTS[role][0]}'; copy it again",
                file=file,
                line=1,
            )
    elif not text.startswith("BufferAssignment:\n"):
        kind = "truncated" if "BufferAssignment:\n".startswith(text) else "not-a-dump"
        message = "the file is cut off" if text else "the file is empty"
        if kind == "not-a-dump":
            message = "the first line is not 'BufferAssignment:'; this is no buffer-assignment dump"
        raise DumpError(kind, message, file=file, line=1, section="allocations")


_STARTS: Final = {"values": ("Total bytes used:", "Used values:"), "live_range": ("HloLiveRange",)}
"""How files of the other roles begin, after blank lines; the first is what a whole one begins with."""


def check_end(text: str, file: str, line: int, section: Section, is_whole: bool) -> list[Notice]:
    """Require a file to end with a line end, and not with the blank line before another section.

    Of most sections `check_sections` knows whether another one must follow; one more blank line at the end is
    then no more than that, as of ranks that wrote one file at the same time. Allocations, and values without
    instruction texts, may end a file or be followed by a blank line and another section.

    Args:
        text: the last text of the file.
        file: name for messages.
        line: number of the line after the last newline.
        section: section in which the file ends.
        is_whole: nothing follows allocations or values in files of this kind.

    Returns:
        A notice of blank lines at the end.
    """
    if not text.endswith("\n"):
        raise DumpError(
            "truncated",
            "the file does not end with a line end: it is cut off; copy it again",
            file=file,
            line=line,
            section=section.label,
            text=text[text.rfind("\n") + 1 :][:2000],
        )
    blank = len(text) - len(without_blank_end(text))
    if not blank:
        return []
    if section in (Section.ALLOCATIONS, Section.VALUES) and not is_whole:
        raise DumpError(
            "truncated",
            "the file ends with the blank line before another section: it is cut off; copy it again",
            file=file,
            line=line - 1,
            section=(Section.TOTAL if section is Section.ALLOCATIONS else Section.SEQUENCE).label,
        )
    message = f"{blank} blank lines after the end; did several processes write this file?"
    return [Notice(file, line - blank, "blank-lines", message)]


def without_blank_end(text: str) -> str:
    """Return a file's last text without blank lines at its end."""
    return text.rstrip("\n") + "\n" if text.endswith("\n\n") else text


def misplaced(section: Section, file: str, line: int) -> DumpError:
    """Return the error of a section that is there twice, or in the wrong file of a split set."""
    return DumpError(
        "bad-line",
        f"the section {section.label} does not belong here; are files of different dumps side by side?",
        file=file,
        line=line,
        section=section.label,
    )


SECTIONS_OF = {
    "primary": {Section.ALLOCATIONS},
    "values": {Section.TOTAL, Section.VALUES},
    "live_range": {Section.SEQUENCE, Section.RANGES, Section.PEAK, Section.TREE},
}
"""What the files of a split set hold, by role."""


def check_sections(dump: ParsedDump, files: Mapping[str, str]) -> None:
    """Refuse a set whose files lack a section that must follow another one."""
    values_file = files.get("values", files["primary"])
    ranges_file = files.get("live_range", files["primary"])
    split = "values" in files or "live_range" in files
    seen, printed = dump.sections, dump.features
    # TF 2.1 to 2.10 print addresses and everything in one file; from TF 2.7 on, a size for people comes
    # with instruction texts, and live ranges follow.
    modern = not printed & {features.LOGICAL_BUFFERS, features.EMBEDDED_VALUES}
    texts = bool(printed & {features.HUMAN_TOTAL, features.FROM_INSTRUCTION})
    missing: tuple[str, str, str] | None = None
    if features.TOTAL in printed and Section.VALUES not in seen:
        missing = ("values", "Used values:", values_file)
    elif features.TOTAL not in printed and (
        "values" in files or (features.POINTER in printed and modern) or Section.VALUES in seen
    ):
        missing = ("total", "Total bytes used:", values_file)
    elif Section.SEQUENCE not in seen and ("live_range" in files or (texts and not split)):
        missing = ("sequence", "HloLiveRange", ranges_file)
    elif Section.SEQUENCE in seen and Section.VALUES not in seen and not split:
        missing = ("values", "Used values:", values_file)
    elif features.LIVE_RANGE not in printed and Section.RANGES in seen:
        missing = ("sequence", "HloLiveRange (max N):", ranges_file)
    elif Section.RANGES not in seen and (features.LIVE_RANGE in printed or Section.PEAK in seen):
        missing = ("ranges", "BufferLiveRange:", ranges_file)
    elif (features.LIVE_RANGE in printed and Section.PEAK not in seen) or (
        features.PEAK not in printed and Section.TREE in seen
    ):
        missing = ("peak", "Live ranges at N (peak):", ranges_file)
    elif "live_range" in files and features.PEAK in printed and Section.TREE not in seen:
        missing = ("tree", "Stack trace breakdown for peak usage:", ranges_file)
    if missing:
        section, head, file = missing
        raise DumpError(
            "truncated",
            f"'{head}' is missing: the file is cut off; copy it again",
            file=file,
            section=section,
        )


def check_last_allocation(index: int, size: int | None, has_values: bool) -> None:
    """Refuse a primary file that is cut off after a header line.

    An allocation that is not empty has values, in 2,961 dumps. Where a total is printed, that shows more.

    Args:
        index: number of the last allocation.
        size: its bytes, None where there is none.
        has_values: it has value lines.
    """
    if size is None or (size and not has_values):
        raise DumpError(
            "truncated",
            "no value follows the last allocation: the file is cut off; copy it again",
            section="allocations",
            text=f"allocation {index}: " if size else "BufferAssignment:",
        )


def check_sequence_length(printed: int, slots: int, file: str) -> None:
    """Require `max N` to be the length of the instruction sequence."""
    if printed != slots:
        raise DumpError(
            "sequence-length",
            f"'max {printed}' but the instruction sequence has {slots} slots; are lines missing?",
            file=file,
            section="sequence",
            text="HloLiveRange (max ",
        )
