"""The documentation as a site: `sphinx-build -W -c docs/site . build/site`, from the top of the checkout.

Its pages are those that a reader of the repository sees, links and all. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from ingest.cli.manual import as_markdown, pages  # noqa: E402 - of this checkout
from ingest.version import VERSION  # noqa: E402

project = "xbuf"
author = "The xbuf authors"
copyright = f"{author}, Apache-2.0"
version = release = VERSION

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/site/index"
include_patterns = ["*.md", "docs/*.md", "docs/site/*.md"]
exclude_patterns = [".*", *(path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "docs")]

myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # SQL of DuckDB: $parameters, FROM first

default_role = "code"  # what docstrings have between backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_title = f"xbuf {VERSION}"
html_copy_source = False
html_show_sphinx = False


def fill_commands(app: Sphinx, name: str, source: list[str]) -> None:
    """Put what `--help` says of every command below the heading of its page."""
    if name == "docs/site/commands":
        source[0] += "\n" + as_markdown(list(pages()))


def keep_examples(app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Take what is indented after an empty line of a docstring as it stands: an example."""
    for number in range(len(lines) - 1, 1, -1):
        before = next((line for line in reversed(lines[:number]) if line.strip()), "")
        begins = lines[number].startswith("    ") and not lines[number - 1].strip()
        if begins and not before.startswith(" ") and not before.endswith("::"):
            lines[number:number] = ["::", ""]


def setup(app: Sphinx) -> None:
    """Register what fills pages."""
    app.connect("source-read", fill_commands)
    app.connect("autodoc-process-docstring", keep_examples, priority=400)  # before napoleon
