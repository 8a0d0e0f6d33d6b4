"""Loops: as which value a part of the state goes in, and as which it comes out.

The result of a loop merges values (a phi), and what the loop is entered with uses it as its operand.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from ingest.dump.used_values import UsedScan
from ingest.liveness.addresses import Loop
from ingest.staging.batch import Printed

Part = tuple[str, str]
"""Instruction and shape index of a loop's result, or of its operand."""


def loop_results(lines: Printed, opcodes: Sequence[str | None], values: Sequence[int]) -> dict[Part, int]:
    """Return which values are parts of loops' results.

    Args:
        lines: what the value lines print.
        opcodes: of their instructions.
        values: how each of them is named in the answer, by its id or its row.
    """
    if not any(lines.phis):
        return {}
    columns = zip(*lines[1:4], opcodes, values, strict=True)
    return {
        (name, index or "{}"): value
        for name, index, phi, opcode, value in columns
        if phi and opcode == "while"
    }


def first_operands(
    used: UsedScan, values: Sequence[int], instructions: Container[str] | None
) -> Iterator[tuple[Part, int]]:
    """Yield which part of the first operand of an instruction a value is.

    Args:
        used: what uses the values.
        values: how each of them is named in the answer, by its id or its row.
        instructions: those of interest; None for all.
    """
    uses = iter(used.uses)
    for value, count in zip(values, used.use_counts, strict=True):
        for _ in range(count):
            instruction, operand, index = next(uses)
            if operand == "0" and (instructions is None or instruction in instructions):
                yield (instruction, index or "{}"), value


def loops_of(results: Mapping[Part, int], operands: Iterable[tuple[Part, int]]) -> list[Loop]:
    """Return the parts of loops.

    Args:
        results: row of the value of each part of a loop's result.
        operands: parts of first operands, with the rows of their values.
    """
    return [Loop(row, results[part]) for part, row in operands if part in results]
