"""examples/memory.ipynb runs, and shows what it is stored with.

`python -m tests.python.test_notebook` runs it and stores what it shows.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.python.conftest import CHECKOUT
from tests.support.waiting import HANGING_SECONDS

pytestmark = pytest.mark.slow

NOTEBOOK = CHECKOUT / "examples" / "memory.ipynb"


def stored() -> Any:
    """Read the notebook."""
    return pytest.importorskip("nbformat").read(NOTEBOOK, as_version=4)


def executed() -> Any:
    """Run the notebook in a fresh kernel, from its own folder, for tables of 100 columns."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = stored()
    folder = {"metadata": {"path": str(NOTEBOOK.parent)}}
    client = nbclient.NotebookClient(
        notebook, timeout=HANGING_SECONDS, startup_timeout=HANGING_SECONDS, resources=folder
    )
    client.execute(env={**os.environ, "COLUMNS": "100"})
    for cell in notebook.cells:
        cell.metadata = {}  # when it ran
    return notebook


def shown(notebook: Any) -> list[dict[str, str]]:
    """Return what each cell of code shows, by kind."""
    return [
        {kind: text for output in cell.outputs for kind, text in output.data.items()}
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_notebook_shows_what_it_is_stored_with() -> None:
    """Every cell that shows anything."""
    expected = shown(stored())
    assert shown(executed()) == expected
    assert len([one for one in expected if one]) >= 6


def main() -> None:
    """Store what the notebook shows."""
    NOTEBOOK.write_text(pytest.importorskip("nbformat").writes(executed()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
