"""Instructions of an HLO module as records, one by one."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

from ingest.hlo.records import InstructionColumns


class Instruction(NamedTuple):
    """A row of `InstructionColumns`."""

    computation: str
    instruction: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    op_name: str | None
    stack_frame_id: int | None
    called_computations: tuple[str, ...]
    is_root: bool
    source_file: str | None
    source_line: int | None


def instructions(columns: InstructionColumns) -> list[Instruction]:
    """Return the rows of columns."""
    assert Instruction._fields == tuple(one.name for one in fields(columns))
    return list(map(Instruction, *(getattr(columns, name) for name in Instruction._fields)))
