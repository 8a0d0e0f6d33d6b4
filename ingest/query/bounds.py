"""Let the macro of a query read the runs that its arguments name, and no others.

A macro cannot look its runs up first, as `xbuf query` does. But its arguments are constants, so a condition
on them can stand where each table is read: the macro's statement begins with a table expression for every
table and view that it uses, of the same name and bounded by the least and the greatest run_id. Those of
labels and modules are not known before the query runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ingest.query.blocks import blocks_of, words_of
from ingest.query.comparison import SIDES, is_comparison
from ingest.query.header import SavedQuery

_RUN_IDS = r"'\s*\d+\s*(,\s*\d+\s*)*'"
_VIEW_BODY = re.compile(r"\s*AS\b")


def bounded(query: SavedQuery, statement: str, tables: Collection[str]) -> str:
    """Write the statement of a query's macro, bounded where the query reads selected runs alone.

    Args:
        statement: the query's, with its parameters as those of the macro: "$run".
        tables: names of all tables with a column run_id.
    """
    if not query.reads_selected:
        return statement
    blocks = blocks_of(statement)
    words = words_of(statement, *(block.definition for block in blocks))
    runs = _runs(query)
    bounds = [
        f'"{table}" AS NOT MATERIALIZED (SELECT x.* FROM main."{table}" AS x'
        f" WHERE may_be_run(x.run_id, {runs}))"
        for table in sorted(words & set(tables))
    ]
    views = [
        f"{block.name} AS NOT MATERIALIZED ({_VIEW_BODY.sub('', block.definition, count=1)})"
        for block in blocks
        if block.kind == "VIEW"
    ]
    return f"WITH {', '.join([*bounds, *views])} FROM (\n{statement}\n)"


def _runs(query: SavedQuery) -> str:
    """Write the run_ids that bound the query, NULL for none."""
    if not is_comparison(query):
        return '"$run"'
    both = ", ".join(f'"${side}"::VARCHAR' for side in SIDES)
    are_numbers = " AND ".join(f'regexp_full_match("${side}"::VARCHAR, {_RUN_IDS})' for side in SIDES)
    return f"CASE WHEN {are_numbers} THEN concat_ws(',', {both}) ELSE \"$run\"::VARCHAR END"
