"""Manual pages and the list of commands are made of the commands."""

from __future__ import annotations

import shutil
import subprocess
import sys

import click
import pytest

from ingest.cli.manual import Page, as_man, as_markdown, pages
from ingest.cli.xbuf import xbuf


@pytest.fixture(scope="module")
def manual() -> dict[str, Page]:
    """All pages by the command's name."""
    return {page.name: page for page in pages()}


def test_every_command_has_a_page(manual: dict[str, Page]) -> None:
    """Both programs, all commands, and those of groups; each says what it does and has its options."""
    assert {f"xbuf {name}" for name in xbuf.list_commands(click.Context(xbuf))} <= set(manual)
    assert {"xbuf", "xbuf-ingest", "xbuf db compact"} <= set(manual)
    for page in manual.values():
        assert page.title
        assert page.paragraphs
        assert page.options
    assert "--watch" in dict(manual["xbuf-ingest"].options)
    assert manual["xbuf-ingest"].example.startswith("xbuf-ingest /tmp/xla_dump --label jax=0.10.2")
    assert manual["xbuf db compact"].file_name == "xbuf-db-compact.1"


def test_the_list_of_commands_keeps_what_markdown_would_read_as_its_own() -> None:
    """Bars do not end a cell, stars are not italics, code stays code."""
    option = ("--format [text|json]", "As *text*, or with `duckdb *`.")
    page = Page("xbuf x", "Try it.", "[OPTIONS]", ("Reads *.hlo.pb of a_b_c.",), "", (option,), (), "")
    text = as_markdown([page])
    assert r"| `--format [text\|json]` | As \*text\*, or with `duckdb *`. |" in text
    assert r"Reads \*.hlo.pb of a\_b\_c." in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not here")
def test_the_manual_pages_are_read_without_a_warning(manual: dict[str, Page]) -> None:
    """One that has options, choices, a pattern with a backslash, an example and exit codes."""
    page = as_man(manual["xbuf-ingest"])
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww", "-P-cbou"], input=page, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    words = " ".join(done.stdout.split())
    assert "xbuf-ingest - Load XLA buffer-assignment dumps" in words
    assert r"'rank(?P<rank>\d+)'" in words
    assert "xbuf-ingest /tmp/xla_dump --label jax=0.10.2" in words


def test_pages_need_no_library_but_click() -> None:
    """They are made while a wheel is built, where nothing else is installed."""
    heavy = ("duckdb", "pyarrow", "numpy", "sqlalchemy", "alembic", "google.protobuf")
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({heavy!r}))\n"
        "from ingest.cli.manual import pages\n"
        "print(len(list(pages())))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
