"""The examples of docs/compare.md and docs/ci.md are real.

`python -m tests.cli.test_compare_docs` writes their output anew.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from ingest.cli.xbuf import xbuf
from ingest.pipeline.importer import import_dumps
from ingest.query.blocks import create_temporary
from ingest.query.install import install_queries
from tests.support.query_databases import GOLDEN

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "compare.md"
PAGES = (PAGE, ROOT / "docs" / "ci.md")
_CONSOLE = re.compile(r"^\$ xbuf ([^\n]+)\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of one module in three batch sizes."""
    return load_batches(tmp_path_factory.mktemp("batches"))


def load_batches(folder: Path) -> Path:
    """Load one module in three batch sizes, labelled so."""
    path = folder / "xbuf.duckdb"
    for batch in ("8", "16", "32"):
        import_dumps([GOLDEN / f"dumps/batch-{batch}"], path, labels={"batch": batch}, jobs=1)
    return path


def printed(command: str, database: Path) -> str:
    """Run a command at the top of the checkout, 80 columns wide."""
    done = CliRunner(env={"COLUMNS": "80", "XBUF_DB": str(database)}).invoke(
        xbuf, shlex.split(command), prog_name="xbuf", standalone_mode=False
    )
    assert done.exception is None, done.exception
    assert done.return_value in (None, 0, 1), done.stderr  # 1: a rule is broken
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "output"), [shown for page in PAGES for shown in _CONSOLE.findall(page.read_text())]
)
def test_the_example_prints_what_the_page_shows(
    command: str, output: str, batches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows a real run."""
    monkeypatch.chdir(ROOT)
    assert printed(command, batches) == output


@pytest.mark.usefixtures("macros")
def test_the_sql_of_the_page_runs(connection: duckdb.DuckDBPyConnection) -> None:
    """Every statement is one that the macros in a database understand."""
    install_queries(connection)
    create_temporary(connection)
    (block,) = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    statements = connection.extract_statements(block)
    assert len(statements) == 5
    for statement in statements:
        assert connection.execute(statement).fetchall() == []


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        database = load_batches(Path(name))
        for page in PAGES:
            text = page.read_text()
            for command, output in _CONSOLE.findall(text):
                text = text.replace(
                    f"$ xbuf {command}\n{output}", f"$ xbuf {command}\n{printed(command, database)}"
                )
            page.write_text(text)
