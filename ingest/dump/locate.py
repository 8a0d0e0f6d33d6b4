"""Find the place of what is wrong with a dump: file, line and byte offset.

The parser does not keep count of lines while all is well; for the rare dump that is rejected the files are
read once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingest.dump.content import BLOCK_BYTES, BlockReader, Content
from ingest.dump.notices import MAX_TEXT
from ingest.errors import DumpError


def locate(error: DumpError, files: Sequence[str]) -> None:
    """Fill in the file, the line and the byte offset of an error that only names the text at fault.

    Reads the files again; a rejected dump is rare. What cannot be read any more stays untold.
    """
    error.message = _shortened(error.message)
    if error.text is not None:
        error.text = error.text[:MAX_TEXT]
    try:
        if error.line is None and error.text:
            _find_text(error, files)
        if not error.file:
            error.file = files[0]
        if error.line is not None and error.byte_offset is None:
            error.byte_offset = _offset_of_line(error.file, error.line)
    except DumpError:
        # Gone, or one line of it fills the memory: the error is reported without its place.
        error.line = None
    if not error.file:
        error.file = files[0]


def _shortened(message: str) -> str:
    """Return a message without the middle of a name that goes on for pages."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    half = _LONGEST_MESSAGE // 2
    return f"{message[:half]} ... {message[-half:]}"


_LONGEST_MESSAGE = 800


def _find_text(error: DumpError, files: Sequence[str]) -> None:
    """Find the line that begins with the error's text, in the file that it names or in all."""
    assert error.text
    for file in [error.file] if error.file else files:
        line = 1
        for block in BlockReader(file):
            at = 0 if block.startswith(error.text) else _start_of_line(block, error.text)
            if at >= 0:
                error.file, error.line = file, line + block.count("\n", 0, at)
                end = block.find("\n", at)
                error.text = block[at : end if end >= 0 else len(block)][:MAX_TEXT]
                return
            line += block.count("\n")


def _start_of_line(block: str, text: str) -> int:
    """Return the start of the first line that begins with `text`, or that means the same; -1 if none does."""
    at = block.find("\n" + text)
    if at >= 0:
        return at + 1
    if text.startswith("<"):
        # Without its newline the line before is glued to it (jaxlib 0.4.24 to 0.4.35).
        at = block.find(text)
    elif text.startswith(" value: <"):
        number = text[len(" value: <") :].split(" ", 1)[0]
        at = max(block.find(f"](#{number} "), block.find(f"](#{number})"))  # TF 1.14
        at = at if at >= 0 else block.find(f"\n  {number} ") + 1 or -1  # TF 1.15
    return block.rfind("\n", 0, at) + 1 if at >= 0 else -1


def _offset_of_line(file: str, line: int) -> int | None:
    """Return where a line starts in the uncompressed bytes; None if the file is shorter by now."""
    offset = 0
    line -= 1
    with Content(file) as content:
        while line and (data := content.read(BLOCK_BYTES)):
            ends = data.count(b"\n")
            if ends < line:
                line -= ends
                offset += len(data)
                continue
            at = -1
            for _ in range(line):
                at = data.find(b"\n", at + 1)
            return offset + at + 1
    return None if line else 0
