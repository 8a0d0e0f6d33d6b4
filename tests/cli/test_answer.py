"""What a terminal gets with a result: rows that were cut, colour, a pager."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from ingest.cli.answer import terminal_style
from ingest.cli.pager import page
from ingest.cli.xbuf import xbuf


class Terminal(io.StringIO):
    """A stdout that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def run(demonstration: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run `xbuf ...` on the demonstration in 80 columns."""
    [[name]] = demonstration.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()
    monkeypatch.setenv("XBUF_DB", str(name))
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: CliRunner().invoke(xbuf, list(words), catch_exceptions=False)


@pytest.mark.parametrize(
    "words", [("runs",), ("query", "recent_runs"), ("query", "padding", "--format", "csv"), ("imports",)]
)
def test_rows_that_were_cut_are_counted(run: Callable[..., Result], words: tuple[str, ...]) -> None:
    """ "2 of N rows; --top 0 for all", and --top 0 shows N rows without a word on it."""
    whole = run(*words, "--top", "0", "--format", "csv")
    rows = len(whole.stdout.splitlines()) - 1
    assert rows > 2
    assert "--top 0" not in whole.stderr
    assert f"2 of {rows:,} rows; --top 0 for all" in run(*words, "--top", "2").stderr.splitlines()


def test_runs_imports_and_rejects_are_written_as_queries_are(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    """Format, file and width are theirs too."""
    for name in ("runs", "imports", "rejects"):
        path = tmp_path / f"{name}.csv"
        assert run(name, "-o", str(path)).exit_code == 0
        assert len(path.read_text().splitlines()) > 1
        record = run(name, "--format", "record", "--top", "1").stdout.splitlines()
        assert len(record) == len(path.read_text().splitlines()[0].split(","))
    assert max(map(len, run("runs", "--width", "50").stdout.splitlines())) <= 50


def test_the_help_speaks_of_numbers_and_texts(run: Callable[..., Result]) -> None:
    """Not of SQL's types."""
    text = run("query", "padding", "--help").stdout
    assert "--top N " in text
    assert "--tiling TEXT " in text
    assert "BIGINT" not in text
    assert "VARCHAR" not in text


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """auto asks the terminal, TERM and NO_COLOR; links need a terminal that is known to have them."""
    for name in (
        "NO_COLOR",
        "VTE_VERSION",
        "KITTY_WINDOW_ID",
        "WT_SESSION",
        "KONSOLE_VERSION",
        "TERM_PROGRAM",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert not terminal_style("auto").color
    assert terminal_style("always").color
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert (terminal_style("auto").color, terminal_style("auto").links) == (True, False)
    monkeypatch.setenv("VTE_VERSION", "7600")
    assert terminal_style("auto").links
    assert not terminal_style("never").color
    monkeypatch.setenv("NO_COLOR", "1")
    assert not terminal_style("auto").color
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not terminal_style("auto").color


def test_a_long_text_goes_to_the_pager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a terminal that it does not fit, and nowhere else; Ctrl-C works again afterwards."""
    monkeypatch.setenv("LINES", "5")
    script = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"
    monkeypatch.setenv("XBUF_PAGER", f'{sys.executable} -c "{script}" {tmp_path / "paged"}')
    long = "".join(f"line {number} █\n" for number in range(9))
    before = signal.getsignal(signal.SIGINT)
    assert not page(long)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert not page("short\n")
    assert page(long)
    assert (tmp_path / "paged").read_text(encoding="utf-8") == long
    assert signal.getsignal(signal.SIGINT) == before
    for none in ("", "cat", "no-such-pager"):
        monkeypatch.setenv("XBUF_PAGER", none)
        assert not page(long)
    monkeypatch.setenv("XBUF_PAGER", f'{sys.executable} -c "pass"')
    assert page(long * 10_000)  # a pager that is left before it has read all
