"""Rules that a question has no answer: saved queries and statements that must have no rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.check.findings import Cause, Finding, Outcome
from ingest.check.measure import Measured
from ingest.check.rules import NoRows
from ingest.compare.names import source_place
from ingest.database.scope import narrowed
from ingest.display import display
from ingest.errors import UsageError
from ingest.query.blocks import create_temporary
from ingest.query.catalog import find_catalog
from ingest.query.cells import shown
from ingest.query.header import SavedQuery, Value, read_query
from ingest.query.result import Result, ResultColumn
from ingest.query.run import bind, convert, count_lacking, run_query, run_sql
from ingest.query.selection import select_runs

if TYPE_CHECKING:
    import duckdb

_CELLS: Final = 6
"""Cells of the first row that a sentence shows."""


def bind_query(rule: NoRows) -> tuple[SavedQuery, dict[str, Value]]:
    """Read the saved query of a rule, and the values of its parameters.

    Raises:
        UsageError: there is no such query or parameter, or a value does not fit.
    """
    is_path = rule.query.endswith(".sql") or "/" in rule.query
    query = read_query(Path(rule.query)) if is_path else find_catalog().load(rule.query)
    given: dict[str, Value] = {}
    for name, text in rule.parameters:
        if name in ("run", "label", "module"):
            raise UsageError(
                f"rule '{rule.title}': {name} is what the gate narrows; use the rule's module and backend"
            )
        parameter = query.parameter(name)
        given[name] = text if parameter is None else convert(parameter, text)
    return query, bind(query, given)


def find_rows(connection: duckdb.DuckDBPyConnection, rule: NoRows, covered: Sequence[Measured]) -> Finding:
    """Ask the question of a rule of the runs that it covers.

    A statement finds their numbers in the table `checked_runs`; a saved query is narrowed to them.

    Raises:
        UsageError: it does not run, or could do more than read.
    """
    if rule.sql:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE checked_runs (run_id BIGINT, module VARCHAR, backend VARCHAR)"
        )
        connection.executemany(
            "INSERT INTO checked_runs VALUES (?, ?, ?)",
            [(one.run_id, one.module, one.backend) for one in covered],
        )
        create_temporary(connection, rule.sql)
        try:
            return _finding(rule, run_sql(connection, rule.sql))
        except UsageError as error:
            raise UsageError(f"rule '{rule.title}': {error}") from error
    query, values = bind_query(rule)
    if query.parameter("run") is not None:
        values["run"] = ",".join(str(one.run_id) for one in covered)
    with narrowed(connection, select_runs(connection, query, values)):
        finding = _finding(rule, run_query(connection, query, values))
        lacking = count_lacking(connection, query, values)
    if finding.outcome is Outcome.PASSED and lacking is not None:
        reason = f"{lacking.runs} of {lacking.selected} checked runs have no {lacking.what}"
        sentence = f"rule '{rule.title}' cannot be checked: {reason}"
        return Finding(rule.title, rule.kind, Outcome.UNCHECKED, sentence)
    return finding


def _finding(rule: NoRows, result: Result) -> Finding:
    rows = result.rows()
    first = next(rows, None)
    if first is None:
        return Finding(rule.title, rule.kind, Outcome.PASSED, f"rule '{rule.title}' holds: no row")
    number = 1 + sum(1 for _ in rows)
    counted = "1 row" if number == 1 else f"{number:,} rows, the first"
    cells = [
        f"{display(column.name)} {display(shown(cell, column.unit))}"
        for column, cell in zip(result.columns, first, strict=True)
        if cell is not None
    ]
    sentence = f"rule '{rule.title}' wants no row and has {counted}: {', '.join(cells[:_CELLS])}"
    file, line = _place(result.columns, first)
    causes = () if file is None else (Cause(", ".join(cells[:1]), None, None, file, line, 1, 0),)
    return Finding(rule.title, rule.kind, Outcome.BROKEN, sentence, causes=causes)


def _place(columns: Sequence[ResultColumn], row: Sequence[Any]) -> tuple[str | None, int | None]:
    """Find the source line of a row, in the columns in which saved queries show it."""
    cells = {column.name: cell for column, cell in zip(columns, row, strict=True)}
    file, line = cells.get("source_file"), cells.get("source_line")
    if isinstance(file, str):
        return source_place(file)[0], line if isinstance(line, int) else None
    return source_place(cells.get("source"))
