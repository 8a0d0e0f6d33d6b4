"""Errors of lines that are damaged, in whatever section they stand."""

from __future__ import annotations

from ingest.errors import DumpError


def cut_in_line(file: str, line: int, section: str, text: str) -> DumpError:
    """Return the error of a file that ends in the middle of a line."""
    return DumpError(
        "truncated",
        "the file ends in the middle of a line; copy it again",
        file=file,
        line=line,
        section=section,
        text=text,
    )


def unreadable_line(file: str, line: int, section: str, text: str, *, is_last: bool = False) -> DumpError:
    """Return the error of a line that stands for a record and does not read as one.

    Args:
        file: name for messages.
        line: its number.
        section: where it stands.
        text: the line; may have its newline.
        is_last: no record follows, so that the file may end there.
    """
    return DumpError(
        "truncated" if is_last else "bad-line",
        "this line cannot be read here; is the file damaged?",
        file=file,
        line=line,
        section=section,
        text=text.removesuffix("\n"),
    )
