"""What a gate is to check: paths of dumps, or runs of a database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingest.display import display, place_in
from ingest.errors import UsageError
from ingest.query.references import is_number, is_selection, resolve
from ingest.source.kinds import is_url, shown

if TYPE_CHECKING:
    import duckdb

    from ingest.pipeline.summary import ImportSummary


def are_paths(what: Sequence[str]) -> bool:
    """Return whether dumps are named rather than runs of a database.

    Raises:
        UsageError: both are.
    """
    paths = [name for name in what if is_url(name) or (not is_selection(name) and os.path.lexists(name))]
    if paths and len(paths) < len(what):
        other = next(name for name in what if name not in paths)
        raise UsageError(
            f"{shown(paths[0])} is a path and {other} is none; check dumps, or runs of the database"
            " (./NAME is always a path)"
        )
    return bool(paths)


def resolve_runs(connection: duckdb.DuckDBPyConnection, references: Sequence[str]) -> tuple[int, ...]:
    """Find the runs of a database that references name, each once, in order of their numbers.

    A label, an import or `latest` may name none: a gate says so of each rule.

    Raises:
        UsageError: there is no such number, module or path.
    """
    found: set[int] = set()
    for reference in references:
        try:
            found.update(resolve(connection, reference))
        except UsageError:
            if is_number(reference) or not is_selection(reference):
                raise
    return tuple(sorted(found))


def not_loaded(summary: ImportSummary) -> list[str]:
    """Say which dumps an import found and did not load."""
    rejected = [
        f"{place_in(display(one.file), one.line)}: rejected: {display(one.message)}"
        for one in summary.rejects
    ]
    return rejected + [f"{display(name)}: still being written" for name in summary.unfinished_sets]
