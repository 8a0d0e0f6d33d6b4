"""Read the instructions of a computation's text into columns.

One regular expression takes a line apart into name, shape, opcode, operands, attributes and metadata. What
it does not fit (a text over several lines, FORMAT 4.4, parentheses deeper than five, strings before the
metadata) is read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from sys import intern
from typing import Final

from ingest.dump.instructions import parse_instruction, unescape
from ingest.hlo.header import attribute, parse_aliases
from ingest.hlo.program import attributes_without_names, contents_of
from ingest.hlo.records import InPlace, InstructionColumns, Links

_START: Final = re.compile(r"^  (?:ROOT )?%?[^\s=]+ = ", re.MULTILINE)
_FLAT: Final = r"[^()\n]"
_NESTED: Final = rf"(?:{_FLAT}++|\((?:{_FLAT}++|\((?:{_FLAT}++|\((?:{_FLAT}++|\({_FLAT}*+\))*+\))*+\))*+\))*+"
# A shape ends at the first blank that no comma precedes. Possessive throughout: a line that does not fit
# fails in linear time.
_HEAD: Final = r"^  (ROOT )?+%?+([^\s=]++) = ((?:[^ \n]*+(?<=,) )*+[^ \n]++) ([a-z][\w-]*+)\("
_STRING: Final = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_TEXT: Final = r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"'
# Metadata in the order in which the releases print it; any other order is left to parse_instruction.
_METADATA: Final = (
    rf", metadata=\{{(?:op_type={_STRING} ?)?+(?:op_name={_TEXT} ?)?+"
    rf"(?:source_file={_TEXT} ?+(?:source_line=([0-9]{{1,18}})(?![0-9]) ?)?+)?+"
    rf"(?:(?:source_|dedup|sched)\w++=(?:[0-9]++|{_STRING}) ?)*+"
    r"(?:stack_frame_id=([0-9]{1,18}))?+\}"
)
_ATTRIBUTES: Final = rf"((?:[^,\"\n]++|,(?! (?:metadata|backend_config)=))*+)(?:{_METADATA})?+"
_LINE: Final = re.compile(rf"{_HEAD}({_NESTED})\){_ATTRIBUTES}([^\n]*+)\n", re.MULTILINE | re.ASCII)
_RECORD: Final = re.compile(_HEAD, re.ASCII)
_REST: Final = re.compile(rf"{_ATTRIBUTES}(.*+)", re.ASCII | re.DOTALL)
_PARENTHESIS: Final = re.compile(r"[()]")

# `%x#1` is element 1 of the tuple x: since jaxlib 0.11 the text leaves out most get-tuple-elements.
_PERCENT: Final = re.compile(r"%([^\s,(){}#]+)")
_ELEMENT: Final = re.compile(r"#[0-9#]+")
_OPERAND_ELEMENT: Final = re.compile(r"%[^\s,(){}#]+((?:#[0-9]+)*+)", re.ASCII)
_TUPLE_INDEX: Final = re.compile(r", index=([0-9]{1,9})(?![0-9])", re.ASCII)
_IN_PLACE: Final = "output_to_operand_aliasing"
_INDEX_COMMENT: Final = re.compile(r"/\*index=[0-9]+\*/")
_LITERAL: Final = frozenset({"constant", "parameter", "iota"})
"""Opcodes in whose parentheses stand no operands."""

_CALLED: Final = re.compile(
    r", (?:calls|to_apply|body|condition|true_computation|false_computation|select|scatter|comparator"
    r"|branch_computations|called_computations)=(?:\{([^{}\n]*+)\}|%?+([^\s,{}=\"]++)(?=[,\s]|\Z))"
)
_VARIES: Final = re.compile(
    r", (?:control-predecessors|frontend_attributes|metadata|origin|original_value|sharding|statistics"
    r"|channel_id|all_reduce_id)="
)
_UNREAD: Final = ('"', "\n", ", metadata=")
"""Starts of what _ATTRIBUTES leaves where it did not come to the metadata or does not know its order."""

# A string that nothing ends reaches to the end: each quote is looked at once.
_STRINGS: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)

_BATCH: Final = 500
"""Instructions that are taken into the columns at once: many, for calls cost; few, for they stay in cache."""

Problem = Callable[[int, str, str], None]
"""Takes the place in the text, what is wrong, and the text concerned."""

Row = tuple[str, ...]
"""Groups of _LINE: root mark, name, shape, opcode, operands, attributes before the metadata, op_name,
source file, source line, stack frame, attributes after the metadata."""


def last_instruction(text: str) -> int:
    """Return where the last line that begins an instruction starts; -1 if there is none."""
    end = len(text)
    while (at := text.rfind("\n  ", 0, end)) >= 0:
        if _START.match(text, at + 1):
            return at + 1
        end = at
    return 0 if _START.match(text) else -1


class _Shapes(dict[str, str]):
    def __missing__(self, shape: str) -> str:
        self[shape] = shape
        return shape


class _Texts(dict[str, str | None]):
    def __missing__(self, escaped: str) -> str:
        text = self[escaped] = unescape(escaped)
        return text


class _Numbers(dict[str, int | None]):
    def __missing__(self, digits: str) -> int:
        number = self[digits] = int(digits)
        return number


class InstructionScanner:
    """Scan instruction lines into `columns`, which are complete after `flush`.

    `contents` runs parallel: what each instruction is, for `ingest.hlo.program`.
    """

    def __init__(
        self, problem: Problem, spend: Callable[[int, int], None], *, with_links: bool = False
    ) -> None:
        """Take what is called for each problem, and for the records and small parts that are kept.

        With `with_links`, `links` is filled too.
        """
        self.columns = InstructionColumns()
        self.links = Links() if with_links else None
        self._spend = spend
        self.contents: list[bytes] = []
        self._channels: dict[str, int] = {}
        self._problem = problem
        self._rows: list[Row] = []
        # The same shapes, op_names, files and numbers come again and again: equal ones share their memory,
        # and what is known costs a look-up without a call.
        self._shapes = _Shapes()
        self._texts = _Texts({"": None})
        self._numbers = _Numbers({"": None})

    def scan(self, computation: str, text: str, start: int, end: int) -> None:
        """Scan the whole lines of `text` from `start` to `end`, all of one computation."""
        rows: list[Row] = _LINE.findall(text, start, end)
        if len(rows) != text.count("\n", start, end):
            rows = self._scan_records(text, start, end)
        self._rows += rows
        self.columns.computation += [computation] * len(rows)
        if len(self._rows) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Take what is scanned into the columns; many lines at once, as each call has its cost."""
        if not self._rows:
            return
        roots, names, shapes, opcodes, operands, heads, op_names, files, lines, frames, tails = zip(
            *self._rows, strict=True
        )
        self._rows = []
        columns, first = self.columns, len(self.columns)
        columns.instruction += names
        columns.opcode += map(intern, opcodes)
        columns.shape += map(self._shapes.__getitem__, shapes)
        columns.operands += [
            ()
            if not text or opcode in _LITERAL
            else tuple(text[1:].split(", %"))
            if text[0] == "%" and "/" not in text and "#" not in text
            else _operands(text)
            for opcode, text in zip(opcodes, operands, strict=True)
        ]
        self._spend(len(names), sum(map(len, columns.operands[first:])))
        columns.is_root += map(bool, roots)
        columns.op_name += map(self._texts.__getitem__, op_names)
        columns.source_file += map(self._texts.__getitem__, files)
        columns.source_line += map(self._numbers.__getitem__, lines)
        columns.stack_frame_id += map(self._numbers.__getitem__, frames)
        columns.called_computations += [_called(head) if "=" in head else () for head in heads]
        self._repair(first, heads, tails)
        if self.links is not None:
            self._link(self.links, first, opcodes, operands, heads, tails)
        self.contents += [
            # Of most instructions nothing more is said than operands, calls and metadata.
            contents_of(f"{opcode} {shape}  ".encode(errors="replace"))
            if not (head or tail or opcode in _LITERAL or "#" in text)
            else self._content(opcode, shape, text, head, tail)
            for opcode, shape, text, head, tail in zip(opcodes, shapes, operands, heads, tails, strict=True)
        ]

    def _link(
        self,
        links: Links,
        first: int,
        opcodes: Sequence[str],
        operands: Sequence[str],
        heads: Sequence[str],
        tails: Sequence[str],
    ) -> None:
        """Take what leads from these instructions to others."""
        for row, (opcode, text) in enumerate(zip(opcodes, operands, strict=True), first):
            if opcode == "parameter":
                if text.isdecimal() and len(text) < 10 and (number := int(text)):
                    links.numbers[row] = number
            elif opcode == "get-tuple-element":
                found = _TUPLE_INDEX.search(heads[row - first])
                if found and (number := int(found[1])):
                    links.numbers[row] = number
            if "#" in text and opcode not in _LITERAL:
                elements = _elements(text)
                if any(elements) and len(elements) == len(self.columns.operands[row]):
                    self._spend(0, sum(map(len, elements)))
                    links.elements[row] = elements
        for row, (head, tail) in enumerate(zip(heads, tails, strict=True), first):
            if _IN_PLACE in head or _IN_PLACE in tail:
                pairs = parse_aliases(attribute(head + tail, _IN_PLACE) or "")
                self._spend(len(pairs), 0)
                links.in_place[row] = tuple(
                    InPlace(one.parameter_number, _index(one.parameter_index), _index(one.output_index))
                    for one in pairs
                )

    def _content(self, opcode: str, shape: str, operands: str, head: str, tail: str) -> bytes:
        """Return what an instruction is, names and numbers aside."""
        if opcode not in _LITERAL:
            # Of an element `%x#1` the index stays: which tuple it is of, the operands say.
            elements = "#" in operands
            operands = ",".join(one.partition("#")[2] for one in operands.split(",")) if elements else ""
        if not head and not tail:
            attributes = ""
        elif '"' in head or _VARIES.search(head) or _VARIES.search(tail):
            attributes = attributes_without_names(head + tail, self._channels)
        else:
            attributes = (_CALLED.sub("", head) if "=" in head else "") + tail
        return contents_of(f"{opcode} {shape} {operands} {attributes}".encode(errors="replace"))

    def _repair(self, first: int, heads: Sequence[str], tails: Sequence[str]) -> None:
        """Read the attributes again of instructions whose metadata may stand elsewhere.

        A string before the metadata may hold what looks like it; rare fields stand among the usual ones.
        """
        unread = [
            row
            for row, (head, tail) in enumerate(zip(heads, tails, strict=True))
            if (tail and tail.startswith(_UNREAD)) or ("{" in head and head.count("{") != head.count("}"))
        ]
        columns = self.columns
        for row in unread:
            text = heads[row] + tails[row]
            parsed = parse_instruction("a = s[] b()" + text)
            columns.op_name[first + row] = parsed.op_name
            columns.source_file[first + row] = parsed.source_file
            columns.source_line[first + row] = parsed.source_line
            columns.stack_frame_id[first + row] = parsed.stack_frame_id
            columns.called_computations[first + row] = _called(text)

    def _scan_records(self, text: str, start: int, end: int) -> list[Row]:
        """Take lines apart that do not all hold one instruction each."""
        rows: list[Row] = []
        starts = [match.start() for match in _START.finditer(text, start, end)]
        stop = starts[0] if starts else end
        if text[start:stop].strip():
            self._problem(start, "this is no instruction", text[start:stop])
        for at, stop in zip(starts, [*starts[1:], end], strict=False):
            row = _take_apart(text[at:stop].rstrip("\n"))
            if row is None:
                self._problem(at, "this instruction cannot be read", text[at:stop])
            else:
                rows.append(row)
        return rows


def _take_apart(record: str) -> Row | None:
    """Return the row of one instruction's text, whatever its lines and parentheses."""
    head = _RECORD.match(record)
    if head is None:
        return None
    depth = 1
    for match in _PARENTHESIS.finditer(record, head.end()):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            rest = _REST.match(record, match.end())
            assert rest is not None  # it matches anything
            operands = record[head.end() : match.start()]
            return (*head.groups(default=""), operands, *rest.groups(default=""))
    return None


def _operands(text: str) -> tuple[str, ...]:
    if "%" in text:
        return tuple(_PERCENT.findall(text))
    if "/*" in text:
        text = _INDEX_COMMENT.sub("", text)
    if "[" in text or "(" in text:
        # Shapes before names without `%`: XLA's parser reads that, no release prints it.
        return tuple(part.rpartition(" ")[2] for part in _split_top_level(text))
    return tuple(_ELEMENT.sub("", text).split(", "))


def _elements(text: str) -> tuple[tuple[int, ...], ...]:
    """Return for each operand which part it is of the instruction named; () for the whole."""
    if "%" in text:
        parts = _OPERAND_ELEMENT.findall(text)
    else:
        parts = [part.partition("#")[2] for part in _INDEX_COMMENT.sub("", text).split(", ")]
    return tuple(
        tuple(int(number) for number in part.split("#") if number.isdecimal() and len(number) < 10)
        for part in parts
    )


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.strip("{}").split(",") if number)


def _split_top_level(text: str) -> list[str]:
    parts, depth, since = [], 0, 0
    for at, character in enumerate(text):
        if character in "({[":
            depth += 1
        elif character in ")}]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[since:at].strip())
            since = at + 1
    return [*parts, text[since:].strip()]


def _called(attributes: str) -> tuple[str, ...]:
    """Return the computations that attributes name, in their order."""
    if '"' in attributes:
        attributes = _STRINGS.sub('""', attributes)
    attributes = attributes.partition(", backend_config=")[0]
    names: list[str] = []
    for several, one in _CALLED.findall(attributes):
        if one:
            names.append(one)
        else:
            names += (name.strip().removeprefix("%") for name in several.split(",") if name.strip())
    return tuple(names)
