"""Scan `Used values:`: where each value appears, what uses it, and its instruction (FORMAT 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import repeat
from operator import itemgetter
from typing import Final, NamedTuple

from ingest.dump import features
from ingest.dump.allocations import UsedLine
from ingest.dump.grammar import INDEX, INT, KEY, LINES, NAME
from ingest.dump.notices import Notices, note, unknown_line
from ingest.errors import DumpError

_HEAD: Final = rf"<{KEY}>\n positions:\n"
# The first position is the value's own place. Possessive: a block that does not fit must not be tried again.
_BLOCK: Final = re.compile(
    rf"^{_HEAD}(?=  \2(?(3) \3)\n)((?:  .*\n)++) uses:\n((?:  .*\n)*+)(?: from instruction:(.*)\n)?", re.M
)
HEAD_ANYWHERE: Final = re.compile(_HEAD)
"""Start of a block; at the start of a line but for jaxlib 0.4.24 to 0.4.35."""
_BODY: Final = re.compile(r"((?:  .*\n)*+)( uses:\n)?((?:  .*\n)*+)(?: from instruction:([\s\S]*))?")
_POSITION: Final = re.compile(rf"^  ({NAME})(?: ({INDEX}))?\n", re.M)
_USE: Final = re.compile(rf"^  ({NAME}), operand ({INT})(?: ({INDEX}))?\n", re.M)
_NO_USES: Final = "  (none)\n"


class UsedScan(NamedTuple):
    """Everything that a piece of `Used values:` says.

    `blocks` rows are `UsedLine` as plain tuples, ascending by id; `positions` holds
    (instruction, index) and `uses` (instruction, operand, index) of all blocks in order, and
    `position_counts`, `use_counts` how many belong to each block.
    """

    blocks: list[tuple[str, ...]]
    positions: list[tuple[str, str]]
    position_counts: list[int]
    uses: list[tuple[str, str, str]]
    use_counts: list[int]
    features: set[str]
    notices: Notices

    @property
    def texts(self) -> list[str]:
        """Instruction text of each block as printed, with its blank; '' for none."""
        return list(map(itemgetter(7), self.blocks))


def scan_used_values(text: str, line: int, file: str) -> UsedScan:
    """Scan a piece of the section.

    Args:
        text: whole blocks; the head `Used values:` may come first, blank lines may end it.
        line: line of the file at which the text starts.
        file: name for messages.

    Raises:
        DumpError: a line whose meaning is needed cannot be read.
    """
    found: set[str] = set()
    notices = Notices()
    start = len("Used values:\n") if text.startswith("Used values:\n") else 0
    line += start > 0
    body = text[start:].rstrip("\n")
    ends_in_line = text.endswith("\n")  # else the head of the next piece is glued to it
    body = body + "\n" if body and ends_in_line else body
    blocks = _BLOCK.findall(body)
    lines = 3 * len(blocks) + sum(len(row[7]) > 1 for row in blocks)
    lines += sum(sum(_newlines(map(itemgetter(place), blocks))) for place in (5, 6))
    is_plain = ends_in_line and lines == body.count("\n")
    if not is_plain:
        blocks = _resynchronise(body, line, file, found, notices)
    if blocks and blocks[-1][7]:
        # Cut off before the next block's head, or of the three line ends before HloLiveRange one is missing.
        is_glued = len(text) - len(text.rstrip("\n")) in (0, 2)
        found.add(features.GLUED_NEWLINE if is_glued else features.without(features.GLUED_NEWLINE))
        if is_glued and is_plain and len(blocks) > 1:
            found.add(features.without(features.GLUED_NEWLINE))
    return _split_blocks(blocks, body, line, file, found, notices)


def last_id(text: str) -> int | None:
    """Return the id of the last block of a piece; None if it has none."""
    end = len(text)
    while (end := text.rfind("\n positions:\n", 0, end)) > 0:
        start = text.rfind("<", text.rfind("\n", 0, end) + 1, end)
        if start >= 0 and (last := HEAD_ANYWHERE.match(text, start)):
            return int(last[1])
    return None


def _split_blocks(
    blocks: list[tuple[str, ...]], body: str, line: int, file: str, found: set[str], notices: Notices
) -> UsedScan:
    _, _, _, _, _, position_texts, use_texts, texts = zip(*blocks, strict=True) if blocks else [()] * 8
    firsts = {text[:1] for text in texts} - {""}
    if firsts:
        found.add(features.FROM_INSTRUCTION)
        if " " in firsts:
            found.add(features.FROM_INSTRUCTION_BLANK)
        if firsts != {" "}:
            found.add(features.without(features.FROM_INSTRUCTION_BLANK))
    if "" in use_texts:
        found.add(features.without(features.USES_NONE))
    if _NO_USES in use_texts:
        found.add(features.USES_NONE)
        use_texts = tuple("" if text == _NO_USES else text for text in use_texts)
    position_counts = [*_newlines(position_texts)]
    use_counts = [*_newlines(use_texts)]
    positions = _POSITION.findall("".join(position_texts))
    uses = _USE.findall("".join(use_texts))
    if len(positions) != sum(position_counts) or len(uses) != sum(use_counts):
        # Something else stands between them: keep what it says as notices, count again.
        position_texts, use_texts = zip(*_known_lines(blocks, body, line, file, notices), strict=True)
        position_counts = [*_newlines(position_texts)]
        use_counts = [*_newlines(use_texts)]
        positions = _POSITION.findall("".join(position_texts))
        uses = _USE.findall("".join(use_texts))
    return UsedScan(blocks, positions, position_counts, uses, use_counts, found, notices)


def _newlines(texts: Iterable[str]) -> Iterator[int]:
    return map(str.count, texts, repeat("\n"))


def embedded(blocks: list[tuple[str, ...]], file: str) -> UsedScan:
    """Split the positions and uses that TF 1.15 embeds in its allocations."""
    for block in map(UsedLine._make, blocks):
        _check_first_position(block, f"  {block.id} {block.phi and 'PHI '}{block.instruction}")
    return _split_blocks(sorted(blocks, key=lambda row: int(row[0])), "", 1, file, set(), Notices())


def instruction_text(raw: str) -> str | None:
    """Return the instruction text of a block's last column, None where none is printed."""
    return raw.removeprefix(" ") or None


def _known_lines(
    blocks: list[tuple[str, ...]], body: str, line: int, file: str, notices: Notices
) -> Iterator[tuple[str, str]]:
    """Yield the positions and the uses of each block without the lines that are neither; note those."""
    at = 0
    for id_, name, index, phi, color, positions, uses, _ in blocks:
        head = f"<{id_} {name}{index}{phi}{color and f' @{color}'}>\n positions:\n"
        start = body.index(head, at) + len(head)
        line, at = line + body.count("\n", at, start), start
        after = line + positions.count("\n") + 1
        yield (
            _filtered(_POSITION, positions, line, file, notices),
            _filtered(_USE, "" if uses == _NO_USES else uses, after, file, notices),
        )


def _filtered(pattern: re.Pattern[str], text: str, line: int, file: str, notices: Notices) -> str:
    kept = []
    for number, one in enumerate(LINES.findall(text), line):
        if pattern.fullmatch(one):
            kept.append(one)
        elif ", operand " in one:
            raise DumpError(
                "bad-line",
                "this use of a value cannot be read; is the file damaged?",
                file=file,
                line=number,
                section="values",
                text=one.removesuffix("\n"),
            )
        else:
            note(notices, [unknown_line(file, number, one)])
    return "".join(kept)


def _check_first_position(block: UsedLine, at: str) -> None:
    """Require a value's first position to be its own place."""
    name, index = block.instruction, block.shape_index
    if not block.positions.startswith(f"  {name} {index}\n" if index else f"  {name}\n"):
        raise DumpError(
            "value-mismatch",
            f"the first position of value {block.id} is not {name}{index}; are lines missing?",
            section="values",
            text=at,
        )


def _resynchronise(
    body: str, line: int, file: str, found: set[str], notices: Notices
) -> list[tuple[str, ...]]:
    """Read blocks whose instruction text lacks its newline or holds newlines (hazards A and B).

    A block starts wherever `<id name>`, newline, ` positions:` stands; all up to the next start is its.
    """
    heads = list(HEAD_ANYWHERE.finditer(body))
    first = heads[0].start() if heads else len(body)
    if body[:first].strip("\n"):
        raise DumpError(
            "bad-line",
            "a value's block does not start with <id name> and ' positions:'; is the file damaged?",
            file=file,
            line=line,
            section="values",
            text=body.split("\n", 1)[0],
        )
    for number in range(first):
        note(notices, [unknown_line(file, line + number, "")])
    blocks: list[tuple[str, ...]] = []
    counted = 0  # `line` is that of this place
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        end = following.start() if following else len(body)
        match = _BODY.match(body, head.end(), end)
        assert match is not None  # every part of it is optional
        positions, uses_head, uses, text = match.groups()
        if match.end() != end or not uses_head or not positions or (text is not None and not text.strip()):
            at = match.end()
            bad = body[at : body.find("\n", at, end)] if body.find("\n", at, end) >= 0 else body[at:end]
            line, counted = line + body.count("\n", counted, at), at
            is_line = body.endswith("\n", at, end) and not bad.startswith(("<", " "))
            if not uses_head or not positions or text is not None or not is_line:
                raise DumpError(
                    "bad-line",
                    f"the block of value <{head[1]} {head[2]}> cannot be read here; is the file damaged?",
                    file=file,
                    line=line,
                    section="values",
                    text=bad,
                )
            for number, other in enumerate(body[at:end].removesuffix("\n").split("\n")):
                note(notices, [unknown_line(file, line + number, other)])
        if text is not None:
            if following:
                is_glued = not text.endswith("\n")
                found.add(features.GLUED_NEWLINE if is_glued else features.without(features.GLUED_NEWLINE))
            text = text.removesuffix("\n")
            if "\n" in text:
                found.add(features.MULTILINE_INSTRUCTION)
        block = UsedLine._make((*(part or "" for part in head.groups()), positions, uses, text or ""))
        _check_first_position(block, f"<{block.id} ")
        blocks.append(block)
    return blocks
