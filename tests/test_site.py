"""Every page has its place on the site, which `.ci/run` builds, and shows what a test runs."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_every_page_is_on_the_site() -> None:
    """A new page is named once in docs/site/index.md, under tutorial, how to, reference or explanation."""
    index = (DOCS / "site" / "index.md").read_text(encoding="utf-8")
    named = re.findall(r"^\.\./([\w-]+)$", index, re.M)
    assert sorted(named) == sorted(path.stem for path in DOCS.glob("*.md"))


def test_every_screen_is_one_that_a_test_writes() -> None:
    """A command with its output stands on a page whose outputs are compared with real ones."""
    shown = {
        path.relative_to(DOCS.parent).as_posix()
        for path in (DOCS.parent / "README.md", *DOCS.glob("*.md"))
        for block in re.findall(r"^```console\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
        if any(not line.startswith(("$ ", "  ")) for line in block.splitlines())
    }
    pages = ("ci", "compare", "queries", "run", "tutorial")
    assert shown == {"README.md", *(f"docs/{name}.md" for name in pages)}


def test_issues_ask_for_the_report() -> None:
    """Each form has a field for it."""
    forms = [path for path in (DOCS.parent / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
    assert len(forms) == 3
    for path in forms:
        assert "label: xbuf doctor --report\n" in path.read_text(encoding="utf-8"), path.name
