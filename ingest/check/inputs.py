"""Find the runs to check: in a database, or by importing dumps into a temporary one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.check.findings import Finding, Outcome
from ingest.display import display
from ingest.errors import UsageError
from ingest.pipeline.importer import import_dumps

if TYPE_CHECKING:
    import duckdb

    from ingest.pipeline.summary import ImportSummary

__all__ = ["Imported", "are_paths", "import_for_check", "import_runs", "resolve_runs"]

_LATEST: Final = "latest"
_REFERENCES: Final = "a run_id, KEY=VALUE for the runs with a label, or latest for the newest import's"


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
        UsageError: both are, or a name is neither.
    """
    paths = [name for name in what if not name.isdecimal() and name != _LATEST and os.path.lexists(name)]
    for name in what:
        if name not in paths and not (name.isdecimal() or name == _LATEST or "=" in name):
            raise UsageError(f"{name}: there is no such file or directory, nor is it {_REFERENCES}")
    if paths and len(paths) < len(what):
        other = next(name for name in what if name not in paths)
        raise UsageError(
            f"{paths[0]} is a path and {other} names runs of the database; check one kind at a time"
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

    A reference is a run_id, `KEY=VALUE` (a label as the saved queries take it) or `latest`, the runs of the
    newest import that loaded any.

    Raises:
        UsageError: there is no such run_id.
    """
    found: set[int] = set()
    for reference in references:
        if reference == _LATEST:
            sql, value = "SELECT run_id FROM runs WHERE import_id = (SELECT max(import_id) FROM runs)", {}
        elif reference.isdecimal():
            sql, value = "SELECT run_id FROM selected_runs($name)", {"name": reference.lstrip("0") or "0"}
        else:
            sql, value = "SELECT run_id FROM selected_runs(label := $name)", {"name": reference}
        runs = [run_id for (run_id,) in connection.execute(sql, value or None).fetchall()]
        if reference.isdecimal() and not runs:
            raise UsageError(f"the database holds no run {reference}; `xbuf runs` lists them")
        found.update(runs)
    return tuple(sorted(found))


def _lost(summary: ImportSummary) -> list[str]:
    """Say which dumps were found and not loaded."""
    rejected = [
        f"{display(one.file)}{'' if one.line is None else f':{one.line}'}: rejected: {display(one.message)}"
        for one in summary.rejects
    ]
    return rejected + [f"{display(name)}: still being written" for name in summary.unfinished_sets]
