"""Find the runs to check: in a database, or by importing dumps into a temporary one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.check.findings import Finding, Outcome
from ingest.display import display
from ingest.errors import UsageError
from ingest.pipeline.importer import import_dumps
from ingest.query.references import is_number, is_selection, resolve

if TYPE_CHECKING:
    import duckdb

    from ingest.pipeline.summary import ImportSummary

__all__ = ["Imported", "are_paths", "import_for_check", "import_runs", "resolve_runs"]


@dataclass(frozen=True, slots=True)
class Imported:
    """A temporary database with dumps.

    Attributes:
        before_import: import_id of the baseline's dumps; None without, or where none was loaded.
        after_import: import_id of the dumps to check; None where none was loaded.
        lost: a finding for each dump that is to be checked and could not be loaded.
    """

    database: str
    before_import: int | None
    after_import: int | None
    lost: tuple[Finding, ...]


def are_paths(what: Sequence[str]) -> bool:
    """Return whether dumps are named rather than runs of a database.

    Raises:
        UsageError: both are.
    """
    paths = [name for name in what if not is_selection(name) and os.path.lexists(name)]
    if paths and len(paths) < len(what):
        other = next(name for name in what if name not in paths)
        raise UsageError(
            f"{paths[0]} is a path and {other} is none; check dumps, or runs of the database"
            " (./NAME is always a path)"
        )
    return bool(paths)


def import_for_check(paths: Sequence[str], before: Path | None, folder: Path) -> Imported:
    """Import dumps into a new database below `folder`.

    Args:
        before: directory of dumps that are the baseline; None without.

    Raises:
        UsageError: a path does not exist, or a dump of the baseline could not be loaded.
    """
    database = str(folder / "check.duckdb")
    before_import = None
    if before is not None:
        earlier = import_dumps([before], database)
        for reason in _lost(earlier):
            raise UsageError(f"{reason}; a baseline must be whole")
        before_import = earlier.import_id
    summary = import_dumps(paths, database)
    lost = tuple(Finding("import", "import", Outcome.UNCHECKED, reason) for reason in _lost(summary))
    return Imported(database, before_import, summary.import_id, lost)


def import_runs(connection: duckdb.DuckDBPyConnection, import_id: int | None) -> tuple[int, ...]:
    """Find the runs that an import loaded."""
    rows = connection.execute(
        "SELECT run_id FROM runs WHERE import_id = ? ORDER BY ALL", [import_id]
    ).fetchall()
    return tuple(run_id for (run_id,) in rows)


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


def _lost(summary: ImportSummary) -> list[str]:
    """Say which dumps were found and not loaded."""
    rejected = [
        f"{display(one.file)}{'' if one.line is None else f':{one.line}'}: rejected: {display(one.message)}"
        for one in summary.rejects
    ]
    return rejected + [f"{display(name)}: still being written" for name in summary.unfinished_sets]
