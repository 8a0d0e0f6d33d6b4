"""What DuckDB really did for a statement, from its profile."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

Plan = Mapping[str, Any]
"""An operator and those below it, each with the rows that it put out."""


def run_profiled(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, Any], folder: Path
) -> Plan:
    """Run a statement; return its plan with the rows that each operator really put out."""
    output = folder / "profile.json"
    connection.execute("PRAGMA enable_profiling = 'json'")
    connection.execute(f"PRAGMA profiling_output = '{output}'")
    try:
        connection.execute(sql, dict(values) or None).fetchall()
    finally:
        connection.execute("PRAGMA disable_profiling")
    plan: Plan = json.loads(output.read_text())
    return plan


def scans(plan: Plan) -> Iterator[tuple[str, int]]:
    """Yield the table and the rows that were looked at of every scan of a plan."""
    if plan.get("operator_type") == "TABLE_SCAN":
        table = str(plan["extra_info"].get("Table", "")).rpartition(".")[2].strip('"')
        yield table, int(plan["operator_rows_scanned"])
    for child in plan.get("children", []):
        yield from scans(child)
