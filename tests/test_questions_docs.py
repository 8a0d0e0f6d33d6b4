"""The statements of docs/analyst-questions.md run, and answer what the page shows.

`python -m tests.test_questions_docs` writes the answers anew.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import open_database
from ingest.query.formats import write_text
from ingest.query.run import run_sql
from tests.support.query_databases import load_demonstration

PAGE = Path(__file__).resolve().parents[1] / "docs" / "analyst-questions.md"
_BLOCK = re.compile(r"^## (\d+)\. ([^\n]*)\n(.*?)^```sql\n(.*?)^```\n\n```text\n(.*?)^```$", re.M | re.S)
_WIDTH = 80


def questions() -> list[tuple[str, str, str]]:
    """Return each question with its statement and the answer shown."""
    return [
        (question, sql, answer) for _, question, _, sql, answer in _BLOCK.findall(PAGE.read_text("utf-8"))
    ]


def answer_of(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return what `xbuf sql` prints."""
    out = io.StringIO()
    written = write_text(run_sql(connection, sql), "table", out, _WIDTH)
    assert not written.left_out, "the answer must fit"
    return out.getvalue()


def test_there_are_ten_questions() -> None:
    """Numbered from 1 to 10."""
    assert [int(number) for number, *_ in _BLOCK.findall(PAGE.read_text("utf-8"))] == list(range(1, 11))


@pytest.mark.parametrize(("question", "sql", "answer"), questions(), ids=[one[0] for one in questions()])
def test_a_statement_answers_what_the_page_shows(
    question: str, sql: str, answer: str, demonstration: duckdb.DuckDBPyConnection
) -> None:
    """On the database of the tests, in a plain connection; every question has an answer there."""
    assert answer_of(demonstration, sql) == answer
    assert len(answer.splitlines()) > 2, question


def _write_answers() -> None:
    import tempfile

    text = PAGE.read_text("utf-8")
    with (
        tempfile.TemporaryDirectory() as folder,
        open_database(load_demonstration(Path(folder)), read_only=True) as connection,
    ):
        for _, sql, answer in questions():
            block = f"```sql\n{sql}```\n\n```text\n"
            text = text.replace(f"{block}{answer}```", f"{block}{answer_of(connection, sql)}```")
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    _write_answers()
