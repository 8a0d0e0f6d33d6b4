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
from typing import Final

from ingest.hlo.records import InstructionColumns, ModuleHeader

__all__ = ["attributes_without_names", "program_sha256"]

_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}()]|, ([A-Za-z_][\w-]*+)=', re.DOTALL)
_VOLATILE: Final = frozenset(
    {"control-predecessors", "frontend_attributes", "metadata", "origin", "original_value", "sharding"}
    | {"statistics"}
    # Computations that it calls, which count by their own fingerprints.
    | {"body", "branch_computations", "called_computations", "calls", "comparator", "condition"}
    | {"false_computation", "scatter", "select", "to_apply", "true_computation"}
)
"""Attributes that change from one compilation to the next."""
_CHANNELS: Final = frozenset({"channel_id", "all_reduce_id"})


def program_sha256(
    columns: InstructionColumns, digests: Sequence[bytes], entry: str | None, header: ModuleHeader
) -> str:
    """Return the fingerprint of a module, hexadecimal.

    Args:
        columns: the instructions, each computation's in the order in which they run.
        digests: of each instruction a hash of all that it says besides operands and called computations.
        entry: name of the entry computation; without one every computation counts.
        header: what the module says of itself.
    """
    row_of = {name: row for row, name in enumerate(columns.instruction)}
    of_computation: dict[str, bytes] = {}
    names, first = columns.computation, 0
    while first < len(names):
        name, end = names[first], first + 1
        while end < len(names) and names[end] == name:
            end += 1
        content = bytearray()
        for row in range(first, end):
            # An operand is told by how far back it stands; what a damaged file lacks is 0.
            places = [row - row_of.get(operand, row) for operand in columns.operands[row]]
            called = [of_computation.get(one, b"") for one in columns.called_computations[row]]
            content += digests[row] + b"%d%s" % (columns.is_root[row], repr((places, called)).encode())
        of_computation[name] = hashlib.sha256(content).digest()
        first = end
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
