"""One buffer of a run: where it lies, who shares its bytes, when it is live, what defines and uses it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from ingest.query.blocks import execute_with_blocks
from ingest.query.catalog import did_you_mean
from ingest.query.result import Listed, ResultColumn
from ingest.report.data import statement
from ingest.report.glance import ask, read_stacks

if TYPE_CHECKING:
    import duckdb

_NEAR: Final = 5
"""Values of each side that share its bytes: one address of a real module has 5,000 turns."""
_USES: Final = 20
_SHARING: Final = (
    ResultColumn("share_when", "VARCHAR", label="when", rank=0),
    ResultColumn("value", "VARCHAR", rank=1),
    ResultColumn("size_bytes", "BIGINT", "bytes", "size", rank=2),
    ResultColumn("offset_bytes", "BIGINT", "bytes", "offset", rank=3),
    ResultColumn("start_time", "BIGINT", "slots", "start", rank=4),
    ResultColumn("end_time", "BIGINT", "slots", "end", rank=5),
    ResultColumn("opcode", "VARCHAR"),
    ResultColumn("op_name", "VARCHAR", rank=6),
)


@dataclass(frozen=True, slots=True)
class BufferPage:
    """A buffer.

    Attributes:
        facts: names and figures of `buffer.sql`.
        sharing: values whose bytes overlap, the last before it, those live with it and the first after it.
        uses: what reads it.
        stack: its Python stack; None where the dump does not tell.
    """

    facts: dict[str, Any]
    sharing: Listed
    uses: Listed
    stack: str | None


def read_buffer(connection: duckdb.DuckDBPyConnection, run: int, value: str) -> BufferPage:
    """Read a buffer by its name, such as fusion.12{0}, or its number.

    Raises:
        UsageError: the run has no such value, or several of that name.
    """
    cursor = execute_with_blocks(connection, statement("buffer"), {"run": run, "value": value})
    names = [column[0] for column in cursor.description or []]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    if not rows:
        raise UsageError(f"run {run} has no value {value!r}{_hint(connection, run, value)}")
    if len(rows) > 1:
        numbers = ", ".join(str(row["value_id"]) for row in rows[:10])
        raise UsageError(f"run {run} has {len(rows)} values {value!r}; name one by its number: {numbers}")
    [facts] = rows
    sharing = execute_with_blocks(
        connection, statement("neighbours"), {"run": run, "value_id": facts["value_id"], "most": _NEAR}
    ).fetchall()
    # In brackets a character stands for itself.
    glob = "".join(f"[{char}]" if char in "*?[" else char for char in facts["value"])
    uses = ask(connection, "users_of", run=str(run), value=glob, top=_USES)
    uses = uses.only("user", "operand_number", "operand_index", "time", "user_opcode")
    stacks = read_stacks(connection, run, 1, facts["value_id"])
    return BufferPage(
        facts,
        Listed(_SHARING, sharing),
        replace(uses, cells=[row for row in uses.cells if row[0] is not None]),
        stacks[0].where if stacks else None,
    )


def _hint(connection: duckdb.DuckDBPyConnection, run: int, value: str) -> str:
    row = connection.execute("SELECT count(*) FROM runs WHERE run_id = ?", [run]).fetchone()
    if not row or not row[0]:
        raise UsageError(f"there is no run {run}; `xbuf runs` lists them")
    known = execute_with_blocks(
        connection,
        'SELECT value_name(instruction, shape_index) FROM "values" WHERE run_id = ? ORDER BY size_bytes DESC',
        [run],
    ).fetchall()
    return did_you_mean(value, [name for (name,) in known]) or f"; `xbuf show {run}` names the largest"
