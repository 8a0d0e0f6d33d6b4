"""Rows made up for a test: one run, its values and whatever else a question needs."""

from __future__ import annotations

import duckdb


def insert(connection: duckdb.DuckDBPyConnection, table: str, **columns: object) -> None:
    """Insert one row."""
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join("?" for _ in columns)
    connection.execute(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', list(columns.values()))


def insert_run(
    connection: duckdb.DuckDBPyConnection, run_id: int = 1, *, import_id: int = 1, **columns: object
) -> None:
    """Insert a run."""
    filled = {"stem": "s", "dump_dir": "/d", "has_values": True, "has_ranges": False} | columns
    insert(
        connection, "runs", run_id=run_id, import_id=import_id, ingested_at="2026-01-01 00:00:00", **filled
    )


def insert_value(
    connection: duckdb.DuckDBPyConnection, value_id: int, instruction: str, **columns: object
) -> None:
    """Insert an f32[2] of run 1, unless told otherwise, at offset 0 of allocation 0."""
    filled = {
        "run_id": 1, "allocation_index": 0, "shape_index": "{}", "is_phi": False, "offset_bytes": 0,
        "size_bytes": 8, "shape": "f32[2]{0}", "dtype": "f32", "dimensions": [2],
    } | columns  # fmt: skip
    insert(connection, "values", value_id=value_id, instruction=instruction, **filled)
