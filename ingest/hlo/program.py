"""A fingerprint of an HLO module: equal for the same program, whatever its names, numbers and metadata are.

It covers every instruction of the entry computation and of what that calls, in the order in which they run:
opcode, shape with layout, attributes, constants as far as the file has them, operands by their place in the
computation and called computations by their own fingerprints; and the module's donations, replicas and
partitions. Left out are names, metadata, shardings that were carried out, frontend attributes, control
dependencies (the order has them) and the numbers of channels, of which only which are equal counts.

HLO text and protobuf say the same in different words, so their fingerprints are not comparable.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from itertools import compress, groupby
from typing import Final

from ingest.hlo.records import InstructionColumns, ModuleHeader

_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}()]|, ([A-Za-z_][\w-]*+)=', re.DOTALL)
_VOLATILE: Final = frozenset(
    {"control-predecessors", "frontend_attributes", "metadata", "origin", "original_value", "sharding"}
    | {"statistics"}
    # Computations that it calls, which count by their own fingerprints.
    | {"body", "branch_computations", "called_computations", "calls", "comparator", "condition"}
    | {"false_computation", "scatter", "select", "to_apply", "true_computation"}
)
"""Attributes that change from one compilation to the next."""
_LONGEST: Final = 200
"""Bytes of an instruction's content that are kept as they are."""
_CHANNELS: Final = frozenset({"channel_id", "all_reduce_id"})


def contents_of(content: bytes) -> bytes:
    """Return what stands for the content of an instruction: itself, or its hash where it is long."""
    return content if len(content) <= _LONGEST else hashlib.sha256(content).digest()


def program_sha256(
    columns: InstructionColumns, contents: Sequence[bytes], entry: str | None, header: ModuleHeader
) -> str:
    """Return the fingerprint of a module, hexadecimal.

    Args:
        columns: the instructions, each computation's in the order in which they run.
        contents: of each instruction what it says besides operands and calls, see `contents_of`.
        entry: name of the entry computation; without one every computation counts.
        header: what the module says of itself.
    """
    place_of = {name: row for row, name in enumerate(columns.instruction)}.get
    of_computation: dict[str, bytes] = {}
    operands, called = columns.operands, columns.called_computations
    end = 0
    for name, members in groupby(columns.computation):
        first, end = end, end + len([*members])
        own = contents[first:end]
        # An operand is known by how far back it stands; what a damaged file lacks is 0.
        links = [
            (
                length,
                [row - place_of(operand, row) for operand in made_from] if made_from else [],
                [of_computation.get(one, b"") for one in calls] if calls else (),
            )
            for row, length, made_from, calls in zip(
                range(first, end), map(len, own), operands[first:end], called[first:end], strict=True
            )
        ]
        roots = [*compress(range(end - first), columns.is_root[first:end])]
        content = b"".join(own) + repr((links, roots)).encode()
        of_computation[name] = hashlib.sha256(content).digest()
    program = [of_computation[entry]] if entry in of_computation else sorted(of_computation.values())
    facts = (
        header.num_partitions or 1,
        header.replica_count or 1,
        sorted(
            (one.output_index, one.parameter_number, one.parameter_index, one.kind) for one in header.aliases
        ),
        sorted((one.parameter_number, one.parameter_index) for one in header.donors),
    )
    return hashlib.sha256(b"".join(program) + repr(facts).encode()).hexdigest()


def attributes_without_names(text: str, channels: dict[str, int]) -> str:
    """Return the attributes of an instruction's text without what changes from one compilation to the next.

    Args:
        text: attributes, each after a comma.
        channels: numbers of channels that came before, which get numbers of their own.
    """
    kept: list[str] = []
    depth, key, since = 0, "", 0
    for match in _TOKEN.finditer(text):
        token = text[match.start()]
        if token in "{(":
            depth += 1
        elif token in "})":
            depth -= 1
        elif token == "," and depth == 0:
            kept.append(_attribute(key, text[since : match.start()], channels))
            key, since = match[1], match.end()
    kept.append(_attribute(key, text[since:], channels))
    return "".join(kept)


def _attribute(key: str, value: str, channels: dict[str, int]) -> str:
    if key in _VOLATILE:
        return ""
    if key in _CHANNELS:
        return f", {key}={channels.setdefault(value, len(channels))}"
    return f", {key}={value}" if key else value
