"""Comparisons with golden results: releases, batch sizes and rematerialization of one model each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.compare.comparison import Comparison, compare
from ingest.compare.text import as_json, as_markdown, as_text
from ingest.pipeline.importer import import_dumps
from ingest.query.blocks import create_temporary
from ingest.query.references import resolve
from tests.support.query_databases import GOLDEN, TESTS

if TYPE_CHECKING:
    import duckdb

FOLDER: Final = GOLDEN / "comparisons"
DUMPS: Final = FOLDER / "dumps"
EXAMPLES: Final = TESTS.parent / "examples" / "dumps"
COMPARED: Final = {
    "cpu-0.4.38-to-0.10.2": ("jax-0.4.38", "jax-0.10.2"),
    "tpu-0.8.3-to-0.10.2": ("tpu-jax-0.8.3", "tpu-jax-0.10.2"),
    "batch-8-to-16": ("jax-0.10.2", "jax-0.10.2-batch-16"),
    "remat": ("step", "step-remat"),
}
"""Names of comparisons, and the last part of the directories of both sides."""


def load_comparisons(folder: Path) -> Path:
    """Load all sides, whatever the working directory is."""
    path = folder / "comparisons.duckdb"
    import_dumps([DUMPS, EXAMPLES / "step", EXAMPLES / "step-remat"], path, jobs=1)
    return path


def comparison_of(connection: duckdb.DuckDBPyConnection, name: str) -> Comparison:
    """Compare the two sides of this name."""
    create_temporary(connection)
    before, after = COMPARED[name]
    return compare(connection, resolve(connection, before), resolve(connection, after))


def texts_of(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the endings of the golden files and what they hold: 80 columns, Markdown, JSON."""
    yield "txt", _without_place("\n".join(as_text(comparison, width=80)))
    yield "md", _without_place("\n".join(as_markdown(comparison)))
    yield "json", _without_place(as_json(comparison))


def _without_place(text: str) -> str:
    return text.replace(f"{TESTS.parent}/", "") + "\n"
