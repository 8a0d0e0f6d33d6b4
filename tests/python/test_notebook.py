"""examples/memory.ipynb runs, and shows what it is stored with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.python.conftest import CHECKOUT

pytestmark = pytest.mark.slow

EXAMPLES = CHECKOUT / "examples"


def shown(notebook: Any) -> list[dict[str, str]]:
    """Return what each cell of code shows; the text of a database names a temporary file."""
    return [
        {kind: text for output in cell.outputs for kind, text in output.data.items() if kind == "text/html"}
        or {kind: text for output in cell.outputs for kind, text in output.data.items()}
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_notebook_shows_what_it_is_stored_with() -> None:
    """In a fresh kernel, from its own folder."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    stored = nbformat.read(EXAMPLES / "memory.ipynb", as_version=4)
    again = nbformat.read(EXAMPLES / "memory.ipynb", as_version=4)
    nbclient.NotebookClient(again, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    assert shown(again) == shown(stored)
    assert len([one for one in shown(stored) if one]) >= 6
