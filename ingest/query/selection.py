"""Which runs a query looks at, found before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ingest.query.blocks import execute_with_blocks
from ingest.query.comparison import SIDES, is_comparison
from ingest.query.header import NARROWING, SavedQuery, Value

if TYPE_CHECKING:
    import duckdb

__all__ = ["select_runs"]

_NAMES = tuple(parameter.name for parameter in NARROWING)


def select_runs(
    connection: duckdb.DuckDBPyConnection, query: SavedQuery, values: Mapping[str, Value]
) -> tuple[int, ...] | None:
    """Return the numbers of the runs that the answer depends on; None where it can be any.

    Args:
        connection: a database at head.
        values: a value for each parameter.
    """
    if not query.reads_selected:
        return None
    given = {name: values.get(name) for name in _NAMES}
    sides = {name: values.get(name) for name in SIDES}
    if is_comparison(query) and None not in sides.values():
        sql = "FROM compared_runs($before, $after, $run, $label, $module) WHERE is_before OR is_after"
        given |= sides
    elif any(value is not None for value in given.values()):
        sql = "FROM selected_runs($run, $label, $module)"
    else:
        return None
    return tuple(run for (run,) in execute_with_blocks(connection, f"SELECT run_id {sql}", given).fetchall())
