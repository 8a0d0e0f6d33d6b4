"""One run at a glance: its figures, what fills its peak, and what is odd about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from ingest.query.blocks import execute_with_blocks
from ingest.query.catalog import shipped
from ingest.query.cells import human_bytes
from ingest.query.result import Listed, ResultColumn, named_rows
from ingest.query.run import bind, run_query
from ingest.report.data import statement

if TYPE_CHECKING:
    import duckdb

    from ingest.query.header import Value

_WORTH: Final = 0.02
"""Share of the peak from which on bytes that could be spared are worth a line."""
_ROLE_COLUMNS: Final = (
    ResultColumn("role", "VARCHAR", rank=0),
    ResultColumn("bytes", "BIGINT", "bytes", rank=1),
    ResultColumn("percent", "DOUBLE", "share", rank=2),
    ResultColumn("values", "BIGINT", "count", rank=3),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something odd about a run.

    Attributes:
        text: what it is, with its figure.
        ask: command that shows more; None where there is none.
    """

    text: str
    ask: str | None


@dataclass(frozen=True, slots=True)
class Stack:
    """Where a buffer at the peak comes from: its Python stack, the user's innermost line first."""

    value: str
    bytes: int
    where: str


@dataclass(frozen=True, slots=True)
class Glance:
    """A run at a glance; tables without rows are empty.

    Attributes:
        facts: the row of `runs`, labels, notices and files.
        by: what `sources` adds up by: line, scope or opcode.
    """

    facts: dict[str, Any]
    roles: Listed
    by: str
    sources: Listed
    buffers: Listed
    findings: tuple[Finding, ...]
    stacks: tuple[Stack, ...]


def read_glance(connection: duckdb.DuckDBPyConnection, run: int, top: int | None) -> Glance:
    """Read all of it.

    Args:
        top: rows of each list; None for all.

    Raises:
        UsageError: there is no such run.
    """
    facts = read_facts(connection, run)
    roles = execute_with_blocks(connection, statement("roles"), {"run": run}).fetchall()
    by, sources = read_sources(connection, run, top)
    return Glance(
        facts,
        Listed(_ROLE_COLUMNS, roles),
        by,
        sources,
        ask(connection, "live_at_peak", run=str(run), top=top),
        tuple(_findings(connection, run, facts)),
        tuple(read_stacks(connection, run, top)),
    )


def read_facts(connection: duckdb.DuckDBPyConnection, run: int) -> dict[str, Any]:
    """Read the row of `runs` with labels, notices and files.

    Raises:
        UsageError: there is no such run.
    """
    cursor = connection.execute("FROM runs WHERE run_id = ?", [run])
    row = cursor.fetchone()
    if row is None:
        raise UsageError(f"there is no run {run}; `xbuf runs` lists them")
    facts = dict(zip([column[0] for column in cursor.description or []], row, strict=True))
    for name, sql in (
        ("labels", "SELECT key || '=' || value FROM run_labels WHERE run_id = ? ORDER BY key"),
        ("notices", "SELECT kind || ': ' || message FROM notices WHERE run_id = ?"),
        ("files", "SELECT role || ': ' || file_name FROM run_files WHERE run_id = ? ORDER BY ALL"),
    ):
        facts[name] = [text for (text,) in connection.execute(sql, [run]).fetchall()]
    return facts


def read_stacks(
    connection: duckdb.DuckDBPyConnection, run: int, top: int | None, value_id: int | None = None
) -> list[Stack]:
    """Read which lines of the user's program the largest buffers at the peak, or one value, come from."""
    from ingest.hlo.frames import FrameworkRule, Stacks, format_stack
    from ingest.hlo.records import SourceFrame

    buffers = execute_with_blocks(
        connection, statement("origins"), {"run": run, "value_id": value_id, "top": top}
    ).fetchall()
    if not buffers:
        return []
    frames = connection.execute(
        "SELECT frame_id, parent_frame_id, function, file, line FROM source_frames WHERE run_id = ?", [run]
    ).fetchall()
    is_framework = FrameworkRule.from_environment()
    stacks = Stacks([SourceFrame(*frame) for frame in frames], is_framework)
    found = []
    for name, size, frame_id, file, line, via in buffers:
        stack = stacks.stack(frame_id)
        own = [frame for frame in stack if not is_framework(frame.file)] or stack
        where = format_stack(own) if own else f"{file.rpartition('/')[2]}:{line}"
        # Marked as source_text() marks it in results.
        found.append(Stack(name, size, where if via == "own" else f"{where} ({via})"))
    return found


def read_sources(connection: duckdb.DuckDBPyConnection, run: int, top: int | None) -> tuple[str, Listed]:
    """Add up the peak by source line; where the dump names none by scope, else by opcode."""
    for by in ("line", "scope"):
        found = ask(connection, "memory_by_source", run=str(run), top=top, by=by)
        if any(row["owner"] is not None for row in named_rows(found)):
            return by, found
    return "opcode", ask(connection, "memory_by_opcode", run=str(run), top=top)


def _findings(connection: duckdb.DuckDBPyConnection, run: int, facts: dict[str, Any]) -> list[Finding]:
    """List what is odd, each with the query that shows more."""
    peak = facts["peak_bytes"] or facts["total_bytes"] or 0
    found = []

    def weigh(name: str, column: str, text: str, options: str = "", **given: Value) -> None:
        rows = ask(connection, name, run=str(run), top=None, **given)
        sizes = [row[column] for row in named_rows(rows) if row[column]]
        if peak and sum(sizes) >= _WORTH * peak:
            what = text.format(n=len(sizes), size=human_bytes(sum(sizes)), largest=human_bytes(max(sizes)))
            found.append(Finding(what, f"xbuf query {name} --run {run}{options}"))

    weigh("donation", "size_bytes", "parameters that could have been donated and were not: {n}, of {size}",
          " --status missed", status="missed")  # fmt: skip
    weigh("donation", "size_bytes", "parameters that were donated in vain: {n}, of {size}",
          " --status unused", status="unused")  # fmt: skip
    weigh("padding", "padding_at_peak_bytes", "{size} of the peak are padding of tiles, in {n} shapes")
    weigh("fragmentation", "unused_least_bytes", "{size} of the arenas are free when these are fullest")
    weigh("in_place", "size_bytes", "updates and copies that need a second buffer: {n}, up to {largest}",
          " --verdict copied", verdict="copied")  # fmt: skip
    for row in named_rows(ask(connection, "agreement", run=str(run), top=None)):
        if row["peak_agrees"] is False and (row["understated_percent"] or 0) >= 100 * _WORTH:
            text = f"the peak that the dump prints is {row['understated_percent']:.1f}% too low"
            found.append(Finding(text, f"xbuf query agreement --run {run}"))
    found += [Finding(text, None) for text in facts["notices"]]
    return found


def ask(connection: duckdb.DuckDBPyConnection, name: str, **given: Value) -> Listed:
    """Run a saved query; the rows are read at once, as the next statement ends an open result."""
    query = shipped().load(name)
    result = run_query(connection, query, bind(query, given))
    return Listed(result.columns, list(result.rows()))
