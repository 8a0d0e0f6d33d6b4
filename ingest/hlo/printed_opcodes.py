"""Opcodes as dumps print them: an asynchronous operation by the one instruction that it wraps.

Protobuf and HLO text have `async-start` of a computation that holds a `slice`; where the dump prints the
instruction of a value, it is `slice-start`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ingest.hlo.records import InstructionColumns

_ASYNC: Final = frozenset({"async-start", "async-update", "async-done"})


def printed_opcodes(rows: InstructionColumns) -> Sequence[str]:
    """Return the opcode of each instruction as a dump prints it.

    Args:
        rows: all instructions of a module, operands before their users within each computation.
    """
    starts = [row for row, opcode in enumerate(rows.opcode) if opcode in _ASYNC]
    if not starts:
        return rows.opcode
    wrapped: dict[str, str | None] = {}
    for opcode, computation in zip(rows.opcode, rows.computation, strict=True):
        if opcode != "parameter":
            wrapped[computation] = None if computation in wrapped else opcode
    printed = list(rows.opcode)
    of_chain: dict[str, str] = {}
    for row in starts:
        called, operands = rows.called_computations[row], rows.operands[row]
        own = wrapped.get(called[0]) if called else None
        name = own or (of_chain.get(operands[0]) if operands else None)
        if name is not None:
            of_chain[rows.instruction[row]] = name
            printed[row] = name + rows.opcode[row].removeprefix("async")
    return printed
