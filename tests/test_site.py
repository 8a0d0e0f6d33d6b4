"""Every page of the documentation has its place on the site; `.ci/run` builds it and follows the links."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_every_page_is_on_the_site() -> None:
    """A new page is named once in docs/site/index.md, under tutorial, how to, reference or explanation."""
    index = (DOCS / "site" / "index.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\./([\w-]+)$", index, re.M)
    assert sorted(named) == sorted(path.stem for path in DOCS.glob("*.md"))
