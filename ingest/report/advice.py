"""What could be done about the peak of a run: saved query `savings`, and what its words ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ingest.query.catalog import shipped
from ingest.query.result import named_rows
from ingest.query.run import bind, run_query
from ingest.report.glance import read_facts

if TYPE_CHECKING:
    import duckdb

MEANINGS: Final = {
    "recompute": "not used for long: compute it again (jax.checkpoint) or keep it on the host; costs time",
    "offload": "an argument not used for long: keep it on the host until it is used; costs transfers",
    "drop output": "a result that the program does not read again: do not return it if nobody needs it",
    "in parts": "short-lived and large: work on one half after the other (jax.lax.map); costs time",
    "other layout": "padded by tiles: with other dimensions as the most minor ones it would be smaller",
    "other shape": "padded by tiles in any layout: merge or reorder its small dimensions",
    "copy": "a copy, in the same memory, of what stays as it is: look for what asks for it or its layout",
    "duplicate": "made twice from the same operands: compute it once and pass it on",
    "narrower type": "converted from a narrower type: keep it narrow, convert where it is used",
    "donate": "results that could take the memory of arguments: donate these (donate_argnums)",
    "unused donation": "donated, but no result has its type and size: its memory stays taken to the end",
    "constant": "a constant of the program: pass it as an argument that programs share, or compute it",
    "pack": "bytes of an arena that are never live at once with the rest: its buffers leave holes",
    "scratch": "scratch of called computations, not part of the peak",
}
"""What each advice asks for, and what it costs."""

UNKNOWN: Final = (
    "Not known from a dump: what computing again or a transfer costs, whether work can be split, who reads a "
    "result, and how the compiler would decide anew. Steps do not add up: each is computed alone."
)


@dataclass(frozen=True, slots=True)
class Step:
    """One advice followed for all buffers of an owner.

    Attributes:
        advice: a word of MEANINGS.
        owner: source line, operation or argument; layers are folded.
        buffers: how many it concerns, count.
        saves_bytes: by how much the peak (or the total) would be lower, computed anew without them.
        percent: the same as a share of it.
        spare_bytes: what the step spares at the slot of the peak; more than it saves where another slot is
            nearly as full.
        after_bytes: the peak (or the total) after it.
        lowers: peak or total.
        largest, shape, op_name: the largest of the buffers; None for an allocation.
        reason: what in the dump shows it, of the largest.
    """

    advice: str
    owner: str
    buffers: int
    saves_bytes: int
    percent: float
    spare_bytes: int
    after_bytes: int
    lowers: str
    largest: str | None
    shape: str | None
    op_name: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What could be done about one run, the most helpful step first.

    Attributes:
        facts: the row of `runs`, as `read_facts` gives it.
        steps: those that lower the peak or the total.
        in_vain: those that spare bytes at the peak which another slot needs as much, so that nothing is won.
        more: steps that were found beyond these, count.
    """

    facts: dict[str, Any]
    steps: tuple[Step, ...]
    in_vain: tuple[Step, ...]
    more: int


def read_advice(connection: duckdb.DuckDBPyConnection, run: int, top: int | None, least: int) -> Advice:
    """Read what would lower the peak of a run.

    Args:
        top: steps to return; None for all.
        least: bytes that a step must spare at the peak to be looked at.

    Raises:
        UsageError: there is no such run.
    """
    facts = read_facts(connection, run)
    query = shipped().load("savings")
    result = run_query(connection, query, bind(query, {"run": str(run), "top": None, "least": least}))
    steps = [
        Step(**{name: cell for name, cell in row.items() if name in Step.__slots__})
        for row in named_rows(result)
    ]
    helpful = [step for step in steps if step.saves_bytes > 0]
    in_vain = [step for step in steps if step.saves_bytes <= 0]
    return Advice(
        facts, tuple(helpful[:top]), tuple(in_vain), 0 if top is None else max(len(helpful) - top, 0)
    )
