"""Which runs a query looks at, found before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ingest.query.blocks import execute_with_blocks
from ingest.query.comparison import SIDES, is_comparison
from ingest.query.header import NARROWING, SavedQuery, Value

if TYPE_CHECKING:
    import duckdb

_NAMES = tuple(parameter.name for parameter in NARROWING)


def select_runs(
    connection: duckdb.DuckDBPyConnection, query: SavedQuery, values: Mapping[str, Value]
) -> tuple[int, ...] | None:
    """Return the numbers of the runs that a query is about; None where that can be any.

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


def read_runs(
    connection: duckdb.DuckDBPyConnection,
    query: SavedQuery,
    values: Mapping[str, Value],
    selected: tuple[int, ...] | None,
) -> tuple[int, ...] | None:
    """Return the numbers of the runs that the rows of the answer depend on; None where that can be any.

    Args:
        connection: as for `select_runs`.
        values: as for `select_runs`.
        selected: what `select_runs` found.
    """
    most = values.get(query.highest)
    if most is None:
        return selected
    sql = (
        "SELECT run_id FROM selected_runs($run, $label, $module)"
        " WHERE peak_bytes > 0 ORDER BY peak_bytes DESC, run_id LIMIT $most"
    )
    given = {**{name: values.get(name) for name in _NAMES}, "most": most}
    return tuple(run for (run,) in execute_with_blocks(connection, sql, given).fetchall())
