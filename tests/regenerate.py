"""Write the golden results, `docs/queries.md` and `docs/tables.md` again: `python -m tests.regenerate`.

Look at the difference before committing it: a golden result that changes is a promise that changes.
"""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

import duckdb

from ingest.database.connect import open_database
from ingest.query.catalog import shipped
from ingest.query.formats import write_text
from ingest.query.header import SavedQuery
from ingest.query.result import Listed, Result
from ingest.query.run import bind, run_query
from tests.support.comparisons import COMPARED, comparison_of, load_comparisons, texts_of
from tests.support.comparisons import FOLDER as COMPARISONS
from tests.support.queries_page import example_values, reference
from tests.support.query_databases import GOLDEN, TESTS, load_demonstration
from tests.support.tables_page import reference as tables_reference

DOCS = TESTS.parent / "docs" / "queries.md"
SCREENS = (80, 120, 200)
"""Widths of the terminals that the golden screens show."""
TABLES = TESTS.parent / "docs" / "tables.md"


def golden_result(connection: duckdb.DuckDBPyConnection, query: SavedQuery) -> Listed:
    """Return the result of a query with its defaults, at most 50 rows."""
    given = {"top": 50} if query.parameter("top") is not None else {}
    result = run_query(connection, query, bind(query, dict(given)))
    return Listed(result.columns, list(result.rows()))


def golden_text(result: Result) -> str:
    """Return a result as CSV."""
    out = io.StringIO()
    write_text(result, "csv", out)
    return out.getvalue()


def screen_text(connection: duckdb.DuckDBPyConnection, query: SavedQuery) -> str:
    """Return the tables of a query's example, at most 6 rows, as terminals of three widths show them."""
    values = example_values(query)
    if query.parameter("top") is not None:
        values["top"] = 6
    result = run_query(connection, query, values)
    rows = Listed(result.columns, list(result.rows()))
    out = io.StringIO()
    for width in SCREENS:
        out.write(f"{' ' + str(width) + ' columns ':=^{width}}\n")
        written = write_text(rows, "table", out, width)
        if written.left_out:
            out.write(f"no room for: {', '.join(written.left_out)}\n")
    return out.getvalue()


def main() -> None:
    """Write all of them."""
    TABLES.write_text(tables_reference(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = load_demonstration(Path(folder))
        with open_database(path, read_only=True) as connection:
            queries = shipped().load_all()
            for query in queries:
                text = golden_text(golden_result(connection, query))
                (GOLDEN / f"{query.name}.csv").write_text(text, encoding="utf-8")
                text = screen_text(connection, query)
                (GOLDEN / "screens" / f"{query.name}.txt").write_text(text, encoding="utf-8")
            for path in (*GOLDEN.glob("*.csv"), *GOLDEN.glob("screens/*.txt")):
                if path.stem not in shipped():
                    path.unlink()
            DOCS.write_text(reference(connection, queries), encoding="utf-8")
        os.chdir(TESTS.parent)  # places below it are shown from there on
        with open_database(load_comparisons(Path(folder)), read_only=True) as connection:
            for name in COMPARED:
                for ending, text in texts_of(comparison_of(connection, name)):
                    (COMPARISONS / f"{name}.{ending}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
