"""What is to be said with an answer: why it is empty, how much of it is shown, what is missing from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ingest.query.comparison import describe_comparison
from ingest.query.run import count_derived, count_lacking, count_rows, why_empty

if TYPE_CHECKING:
    import duckdb

    from ingest.query.header import SavedQuery, Value


def shown_of(
    connection: duckdb.DuckDBPyConnection,
    query: SavedQuery,
    values: Mapping[str, Value],
    rows: int,
    *,
    all_rows: str,
) -> Iterator[str]:
    """Yield a sentence where the rows are not all there are; in the scope in which they were found.

    Args:
        values: a value for each parameter, as `bind` makes it.
        rows: how many rows the query gave.
        all_rows: how to ask for all of them, e.g. "--top 0 for all".
    """
    top = values.get("top")
    if rows and isinstance(top, int) and rows >= top:
        total = count_rows(connection, query, {**values, "top": None})
        if total is None:
            yield f"{rows:,} rows, maybe more; {all_rows}"
        elif total > rows:
            yield f"{rows:,} of {total:,} rows; {all_rows}"


def remarks(
    connection: duckdb.DuckDBPyConnection, query: SavedQuery, values: Mapping[str, Value], rows: int
) -> Iterator[str]:
    """Yield a sentence for each thing about the selected runs that the rows alone do not say.

    Args:
        values: a value for each parameter, as `bind` makes it.
        rows: how many rows the query gave.
    """
    if rows == 0:
        yield why_empty(connection, query, values)
        return
    lacking = count_lacking(connection, query, values)
    if lacking is not None:
        yield f"{lacking.runs} of {lacking.selected} selected runs have no {lacking.what} and are left out"
    if derived := count_derived(connection, query, values):
        runs = f"{derived.runs} of {derived.selected} selected runs"
        roughly = f", of {derived.approximate} approximately" if derived.approximate else ""
        yield f"{derived.what} of {runs} are derived from the HLO module{roughly}"
    if compared := describe_comparison(connection, query, values):
        yield compared
