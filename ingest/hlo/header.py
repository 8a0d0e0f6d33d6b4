"""Read the first line of an HLO text and the tables of source frames that follow it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ingest.dump.instructions import unescape
from ingest.hlo.records import Alias, Donor, ModuleHeader, SourceFrame

_NAME: Final = re.compile(r"HloModule ([^\s,]+)")
# A string that nothing ends reaches to the end of the text.
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}()]|, ([A-Za-z_]\w*+)=', re.DOTALL)
_ALIAS: Final = re.compile(
    r"(\{[0-9, ]*\}): ?\(([0-9]{1,18}), ?(\{[0-9, ]*\})(?:, ?(may|must)[-_]alias)?\)", re.ASCII
)
_DONOR: Final = re.compile(r"\(([0-9]{1,18}), ?(\{[0-9, ]*\})\)", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)

_TABLES: Final = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_NAMED: Final = re.compile(r'([0-9]{1,18}) "((?:[^"\\]|\\.)*+)"', re.ASCII | re.DOTALL)
_KEYED: Final = re.compile(r"([0-9]{1,18}) \{((?:[a-z_]+=-?[0-9]{1,18}(?: |(?=\})))*+)\}", re.ASCII)

Problem = Callable[[int, str, str], None]
"""Takes the line from the start of the text (0 is its first), what is wrong, and the text concerned."""


def parse_header(text: str) -> ModuleHeader | None:
    """Return what the text of `HloModule NAME, key=value, ...` states; None if it is something else.

    Values nest and hold strings; what stands in `frontend_attributes` is the user's and is stepped over.
    """
    name = _NAME.match(text)
    if name is None:
        return None
    attributes = _attributes(text, name.end())
    aliases = attributes.get("input_output_alias", "")
    layout = attributes.get("entry_computation_layout")
    # A number of 1 is not printed. Up to TF 2.6, which prints no layout either, no number is.
    unprinted = None if layout is None else 1
    return ModuleHeader(
        name[1],
        attributes.get("is_scheduled") == "true",
        _number(attributes.get("num_partitions")) or unprinted,
        _number(attributes.get("replica_count")) or unprinted,
        layout,
        parse_aliases(aliases),
        parse_donors(attributes.get("buffer_donor", "")),
    )


def parse_aliases(text: str) -> tuple[Alias, ...]:
    """Return the pairs of `{ {0}: (0, {}, may-alias), {1}: (2, {1}) }`.

    Before 2020 the kind was not printed for the parts that may alias.
    """
    return tuple(
        Alias(
            output.replace(" ", ""),
            int(number),
            parameter.replace(" ", ""),
            "must" if kind == "must" else "may",
        )
        for output, number, parameter, kind in _ALIAS.findall(text)
    )


def parse_donors(text: str) -> tuple[Donor, ...]:
    """Return the parts of parameters in `{ (0, {}), (2, {1}) }`."""
    return tuple(Donor(int(number), index.replace(" ", "")) for number, index in _DONOR.findall(text))


def attribute(text: str, name: str) -> str | None:
    """Return one of the attributes `, key=value` of a text that starts with them; None if it lacks it."""
    return _attributes(text, 0).get(name)


def _attributes(text: str, start: int) -> dict[str, str]:
    """Return the attributes that stand outside braces, parentheses and strings."""
    found: dict[str, str] = {}
    depth, key, since = 0, None, start
    for match in _TOKEN.finditer(text, start):
        token = text[match.start()]
        if token in "{(":
            depth += 1
        elif token in "})":
            depth -= 1
        elif token == "," and depth == 0:
            if key is not None:
                found.setdefault(key, text[since : match.start()])
            key, since = match[1], match.end()
    if key is not None:
        found.setdefault(key, text[since:])
    return found


def _number(text: str | None) -> int | None:
    return int(text) if text and _NUMBER.fullmatch(text) else None


def parse_frames(text: str, problem: Problem) -> tuple[SourceFrame, ...]:
    """Return the source frames of the four tables in `text`, by ascending id.

    `parent_frame_id` is printed one too high (an outermost frame prints 1, in every release from
    jaxlib 0.8.3 to 0.11.2, where the protobuf has 0). A table with a parent that is 0 or missing
    comes from a release that prints what it means.

    Args:
        text: the lines between the header and the first computation.
        problem: called for each line that is no entry of its table; the others stand.
    """
    names: dict[str, dict[int, str]] = {"FileNames": {}, "FunctionNames": {}}
    keyed: dict[str, dict[int, dict[str, int]]] = {"FileLocations": {}, "StackFrames": {}}
    table = ""
    for number, line in enumerate(text.split("\n")):
        if not line:
            continue
        if line in _TABLES:
            table = line
        elif table in names and (match := _NAMED.fullmatch(line)):
            names[table][int(match[1])] = unescape(match[2])
        elif table in keyed and (match := _KEYED.fullmatch(line)):
            pairs = (field.split("=") for field in match[2].split())
            keyed[table][int(match[1])] = {key: int(value) for key, value in pairs}
        else:
            problem(number, f"this is no entry of the table {table or 'of frames'}", line)
    return _join(names["FileNames"], names["FunctionNames"], keyed["FileLocations"], keyed["StackFrames"])


def _join(
    files: dict[int, str],
    functions: dict[int, str],
    locations: dict[int, dict[str, int]],
    frames: dict[int, dict[str, int]],
) -> tuple[SourceFrame, ...]:
    excess = 1 if all(frame.get("parent_frame_id", 0) > 0 for frame in frames.values()) else 0
    joined = []
    for frame_id, frame in sorted(frames.items()):
        location = locations.get(frame.get("file_location_id", 0), {})
        joined.append(
            SourceFrame(
                frame_id,
                frame.get("parent_frame_id", 0) - excess or None,
                functions.get(location.get("function_name_id", 0)),
                files.get(location.get("file_name_id", 0)),
                location.get("line"),
                location.get("end_line"),
                location.get("column"),
                location.get("end_column"),
            )
        )
    return tuple(joined)
