"""Say what a query that compares two sides of runs has compared, and which side is empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ingest.display import counted
from ingest.query.header import SavedQuery, Value

if TYPE_CHECKING:
    import duckdb

_SIDE: Final = "a side is run_ids ('3,7'), a label ('jax=0.7.0') or a glob on the dump directory ('*/old*')"
SIDES: Final = {
    "before": f"matches none of the selected runs (NULL: those of imports before the last one); {_SIDE}",
    "after": f"matches none of the selected runs (NULL: those of the last import); {_SIDE}",
}
"""Parameters of a comparison, with what is wrong where one matches no run."""

COUNTED: Final = (
    "SELECT count(*), count(*) FILTER (is_before), count(*) FILTER (is_after), max(import_id),"
    " len(list_intersect(coalesce(list(DISTINCT (module, backend)) FILTER (is_before), []),"
    " coalesce(list(DISTINCT (module, backend)) FILTER (is_after), [])))"
    " FROM compared_runs($before, $after, $run, $label, $module)"
)
"""Statement that counts the runs of both sides."""


def is_comparison(query: SavedQuery) -> bool:
    """Return whether the query compares two sides of runs."""
    return all(query.parameter(name) is not None for name in SIDES)


def describe_comparison(
    connection: duckdb.DuckDBPyConnection, query: SavedQuery, values: Mapping[str, Value]
) -> str | None:
    """Say which runs were compared, or which side has none; None for other queries and without any run.

    The blocks must be there, as after `run_query`.
    """
    if not is_comparison(query):
        return None
    given = {name: values.get(name) for name in (*SIDES, "run", "label", "module")}
    row = connection.execute(COUNTED, given).fetchone()
    if row is None or row[0] == 0:
        return None
    _, before, after, last, modules = row
    names = {"before": f"imports before {last}", "after": f"import {last}"}
    sides = {side: names[side] if given[side] is None else f"--{side} {given[side]}" for side in SIDES}
    for side, count in (("before", before), ("after", after)):
        if count == 0:
            return f"{sides[side]} matches none of the {row[0]} selected runs; {_SIDE}"
    return (
        f"compared {counted(before, 'run')} ({sides['before']})"
        f" with {counted(after, 'run')} ({sides['after']}); "
        f"{counted(modules, 'module')} with the same name and backend on both sides"
    )
