"""Read the HLO text of a module (`STEM.txt`): header, source frames and every instruction.

The text is `HloModule NAME, ...`, since jaxlib 0.8 the tables of source frames, then the computations:
a line that ends in ` {`, instructions indented by two blanks, and a line that starts with `}`. It is read
in blocks: constants, configurations and other attributes are passed over and never kept.
"""

from __future__ import annotations

import os
import re
from typing import Final

from ingest.dump.content import Content
from ingest.dump.records import Notice
from ingest.errors import DumpError
from ingest.hlo.blocks import BLOCK_BYTES, LineBlocks
from ingest.hlo.budget import Budget
from ingest.hlo.header import parse_frames, parse_header
from ingest.hlo.instruction_lines import InstructionScanner, last_instruction
from ingest.hlo.program import program_sha256
from ingest.hlo.records import HloText, ModuleHeader, SourceFrame

KIND: Final = "hlo-text"
"""Kind of the notices and errors of this reader."""

MAX_PROBLEMS: Final = 20
"""Problems reported one by one; of the rest only the number is reported."""

_MAX_PENDING: Final = 64 << 20
_LAST_LINE: Final = 64 << 10
_HEAD: Final = r"(ENTRY )?+%?+([^\s({%]++) (?:\{|\([^\n]*+(?<= \{))\n"
_COMPUTATION: Final = re.compile(_HEAD)
_FIRST_COMPUTATION: Final = re.compile(r"\n" + _HEAD)
_END: Final = re.compile(r"\}(?: // [^\n]*|, [a-z_]+=[^\n]*)?(?:\n|\Z)")


def read_hlo_text(
    path: str | os.PathLike[str],
    *,
    budget: Budget | None = None,
    with_links: bool = False,
    block_bytes: int = BLOCK_BYTES,
) -> HloText:
    """Read an HLO text, plain, gzip or zstd.

    A damaged text gives what could be read and reports the rest in `HloText.problems`.

    Args:
        path: the file.
        budget: what it may cost; one of its own if none is given.
        with_links: also return what `ingest.hlo.text_module` needs.
        block_bytes: bytes that are read at once.

    Raises:
        DumpError: the file cannot be read, is no HLO text, or is beyond the budget.
    """
    return _Reader(os.fspath(path), budget or Budget(), block_bytes, with_links).read()


def hash_hlo_text(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 (hexadecimal) of an HLO text that is not read, as its protobuf says all of it.

    Raises:
        DumpError: the file cannot be read, is no HLO text, or is cut off.
    """
    name = os.fspath(path)
    with Content(name) as content:
        start = end = content.read(BLOCK_BYTES)
        _require_hlo_text(start.removeprefix(b"\xef\xbb\xbf")[:200].decode(errors="replace"), name)
        while data := content.read(BLOCK_BYTES):
            end = end[-_LAST_LINE:] + data
        last = end.rstrip()[-_LAST_LINE:].rpartition(b"\n")[2]
        if not last.startswith(b"}"):
            raise DumpError(KIND, "the file is cut off; copy it again", file=name)
        return content.sha256


def _require_hlo_text(start: str, path: str) -> None:
    if not "HloModule "[: len(start)] == start[:10]:
        raise DumpError(
            KIND, "the file is no HLO text: it does not start with 'HloModule'",
            file=path, line=1,
        )  # fmt: skip


class _Reader:
    """One pass over one file."""

    def __init__(self, path: str, budget: Budget, block_bytes: int, with_links: bool) -> None:
        self._path = path
        self._budget = budget
        self._blocks = LineBlocks(path, block_bytes)
        self._scanner = InstructionScanner(
            self._problem, lambda count, small: budget.spend(path, count, small), with_links=with_links
        )
        self._problems: list[Notice] = []
        self._unreported = 0
        self._header: ModuleHeader | None = None
        self._frames: tuple[SourceFrame, ...] = ()
        self._computation: str | None = None
        self._entry: str | None = None
        self._text = ""
        self._line = 1

    def read(self) -> HloText:
        waiting: list[str] = []
        length, wanted = 0, 0
        for block in self._blocks:
            waiting.append(block)
            length += len(block)
            if length >= wanted:
                self._text += "".join(waiting)
                waiting.clear()
                self._take_blocks()
                length = len(self._text)
                # What is left is looked at again when it has doubled: a part that never ends costs no more.
                wanted = 2 * length
        self._text += "".join(waiting)
        if self._header is None:
            self._take_top(final=True)
        self._take_body(len(self._text), final=True)
        self._check_end()
        assert self._header is not None
        scanner = self._scanner
        program = None
        if not self._problems:
            program = program_sha256(scanner.columns, scanner.contents, self._entry, self._header)
        return HloText(
            self._header,
            self._frames,
            scanner.columns,
            self._entry,
            program,
            tuple(self._problems),
            self._blocks.sha256,
            self._blocks.text_bytes,
            scanner.links,
        )

    def _take_blocks(self) -> None:
        """Read what is whole of the text so far."""
        if self._header is None and not self._take_top(final=False):
            return
        # What follows an instruction may still belong to it.
        cut = last_instruction(self._text)
        if cut > 0:
            self._take_body(cut, final=False)
        elif len(self._text) > _MAX_PENDING:
            self._problem(0, "64 MiB without an instruction are left out", self._text)
            self._drop(len(self._text))

    def _take_top(self, *, final: bool) -> bool:
        """Read what stands before the first computation; return whether all of it is here."""
        text = self._text
        _require_hlo_text(text, self._path)
        first = _FIRST_COMPUTATION.search(text)
        if first is None and not final and len(text) < _MAX_PENDING:
            return False
        top = text[: first.start() + 1] if first else text
        line_end = top.find("\n\n")
        line_end = len(top) if line_end < 0 else line_end
        header = parse_header(top[:line_end])
        if header is None:
            raise DumpError(KIND, "the module has no name", file=self._path, line=1, text=top[:200])
        self._header = header
        before = top.count("\n", 0, line_end)

        def problem(line: int, message: str, shown: str) -> None:
            self._report(before + line + 1, message, shown)

        self._frames = parse_frames(top[line_end:], problem)
        self._budget.spend(self._path, len(self._frames))
        self._drop(len(top))
        return True

    def _take_body(self, stop: int, *, final: bool) -> None:
        """Read the computations up to `stop`, where an instruction or the end of the file is."""
        text, at = self._text, 0
        while at < stop:
            if self._computation is None:
                at = self._enter(text, at, stop)
                continue
            end, after = self._end_of_computation(text, at, stop, final)
            if end > at:
                self._scanner.scan(self._computation, text, at, end)
            if after > end:
                self._computation = None
            at = after
        self._scanner.flush()
        self._drop(stop)

    def _enter(self, text: str, at: int, stop: int) -> int:
        """Step over a line outside a computation, or into one; return where the next line starts."""
        line_end = text.find("\n", at, stop) + 1 or stop
        match = _COMPUTATION.match(text, at, stop)
        if match:
            self._computation = match[2]
            if match[1]:
                self._entry = match[2]
        elif line_end > at + 1:
            self._problem(at, "this is outside a computation", text[at:line_end])
        return line_end

    def _end_of_computation(self, text: str, at: int, stop: int, final: bool) -> tuple[int, int]:
        """Return the ends of the computation's lines and of its closing line; `stop` twice if later.

        A configuration over several lines may hold a line `}`: the computation's is followed by an empty
        line, another computation or the end of the file.
        """
        brace = at if text.startswith("}", at) else text.find("\n}", at, stop) + 1 or stop
        while brace < stop:
            match = _END.match(text, brace, stop)
            if match:
                after = match.end()
                at_end = final and after == stop
                if at_end or text.startswith("\n", after) or _COMPUTATION.match(text, after, stop):
                    return brace, after
            brace = text.find("\n}", brace, stop) + 1 or stop
        return stop, stop

    def _check_end(self) -> None:
        whole = "the file is cut off; copy it again"
        if self._computation is not None:
            self._report(self._line, f"the computation {self._computation} does not end: {whole}", "")
        elif self._entry is None:
            self._report(self._line, f"there is no entry computation: {whole}", "")
        if self._blocks.shortened:
            self._problems.append(
                self._notice(None, f"{self._blocks.shortened} lines longer than 16 MiB were shortened", "")
            )
        if self._unreported:
            self._problems.append(self._notice(None, f"{self._unreported} more places cannot be read", ""))

    def _drop(self, length: int) -> None:
        """Forget text that is read."""
        self._line += self._text.count("\n", 0, length)
        self._text = self._text[length:]

    def _problem(self, at: int, message: str, shown: str) -> None:
        # Counting lines for each of a million problems would take hours.
        is_reported = len(self._problems) < MAX_PROBLEMS
        self._report(self._line + self._text.count("\n", 0, at) if is_reported else 0, message, shown)

    def _report(self, line: int, message: str, shown: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(self._notice(line, message, shown))
        else:
            self._unreported += 1

    def _notice(self, line: int | None, message: str, shown: str) -> Notice:
        return Notice(self._path, line, KIND, message[:2000], shown[:2000] or None)
