"""Find the runs to check: in a database, or by importing dumps into a temporary one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.check.findings import Finding, Outcome
from ingest.database.connect import open_database
from ingest.display import display
from ingest.errors import UsageError
from ingest.pipeline.importer import import_dumps
from ingest.query.references import is_number, is_selection, resolve
from ingest.source.kinds import is_url, shown

if TYPE_CHECKING:
    import duckdb

    from ingest.pipeline.summary import ImportSummary

_LOADED: Final = "SELECT import_id, list(run_id ORDER BY run_id) FROM runs GROUP BY import_id"


@dataclass(frozen=True, slots=True)
class Imported:
    """A temporary database with dumps.

    Attributes:
        before, after: runs of the baseline's dumps, and of those to check.
        lost: a finding for each dump that is to be checked and could not be loaded.
    """

    database: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    lost: tuple[Finding, ...]


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


def import_for_check(
    paths: Sequence[str],
    before: Path | None,
    folder: Path,
    *,
    jobs: int | None = None,
    follow_symlinks: bool = False,
) -> Imported:
    """Import dumps into a new database below `folder`.

    Args:
        paths: of the dumps to check; may be none.
        before: directory of dumps that are the baseline; None without.
        jobs, follow_symlinks: as `import_dumps` takes them.

    Raises:
        UsageError: a path does not exist, or a dump of the baseline could not be loaded.
    """
    database = str(folder / "check.duckdb")
    before_import = after_import = None
    lost: list[str] = []
    if before is not None:
        earlier = import_dumps([before], database, jobs=jobs, follow_symlinks=follow_symlinks)
        for reason in _lost(earlier):
            raise UsageError(f"{reason}; a baseline must be whole")
        before_import = earlier.import_id
    if paths:
        summary = import_dumps(paths, database, jobs=jobs, follow_symlinks=follow_symlinks)
        lost, after_import = _lost(summary), summary.import_id
    with closing(open_database(database, read_only=True)) as connection:
        loaded: dict[int | None, list[int]] = dict(connection.execute(_LOADED).fetchall())
    return Imported(
        database,
        tuple(loaded.get(before_import, ())),
        tuple(loaded.get(after_import, ())),
        tuple(Finding("import", "import", Outcome.UNCHECKED, reason) for reason in lost),
    )


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
