"""docs/glossary.md speaks of columns that are there, and results follow its one word for one thing."""

from __future__ import annotations

import re
from pathlib import Path

from ingest.database.tables import TABLES
from ingest.query.blocks import read_blocks
from ingest.query.catalog import shipped

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and "---" not in line and not line.startswith("| word")
]


def test_every_column_that_the_page_names_is_in_its_table() -> None:
    """Both the third column, of tables, and what is named after them elsewhere."""
    columns = {f"{table.name}.{column.name}" for table in TABLES.values() for column in table.columns}
    named = set(re.findall(r"`(\w+\.\w+)`", " ".join(row[2] for row in ROWS)))
    assert len(named) > 30
    assert named <= columns


def test_every_name_that_the_page_gives_results_is_one() -> None:
    """A result column of a query, a column of a view, a query or a macro."""
    queries = shipped().load_all()
    known = {column.name for query in queries for column in query.columns} | {one.name for one in queries}
    known |= {name for block in read_blocks() for name in (block.name, *dict(block.columns))}
    known |= {column.name for table in TABLES.values() for column in table.columns}  # views take them over
    named = set(re.findall(r"`(\w+)[`(]", " ".join(row[3] for row in ROWS)))
    assert len(named) > 25
    assert named <= known


def test_results_name_what_is_read_and_not_what_is_printed() -> None:
    """`module` has its fallback, `value` its shape index; an instruction is that of a slot."""
    for query in shipped().load_all():
        names = {column.name for column in query.columns}
        assert "module_name" not in names, query.name
        assert "instruction" not in names or "time" in names, query.name
