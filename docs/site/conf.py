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


def setup(app: Sphinx) -> None:
    """Register what fills pages."""
    app.connect("source-read", fill_commands)
