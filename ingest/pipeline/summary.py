"""What an import reports to its caller: how far it is, and what it did."""

from __future__ import annotations

from dataclasses import dataclass

from ingest.events import ImportFinished
from ingest.staging.task import Rejected


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is."""

    step: str
    """'read' or 'load'."""
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import did.

    Attributes:
        database: the file, absolute.
        import_id: its row in `imports`; None for a dry run, and where nothing was worth a write (`imports`
            gets the row with the next one).
        status: ok, or rejects: some dumps were rejected.
        found: dump sets found, and files and directories that could not be looked at or are no dumps;
            `loaded`, `unchanged`, `rejected` and `unfinished` add up to it.
        rows: rows staged, of all tables.
        resumed: runs loaded that earlier, cut off imports had read.
        by_copy: the database was replaced by a changed copy, because readers had it open.
    """

    database: str
    import_id: int | None
    status: str
    found: int
    loaded: int
    unchanged: int
    rejected: int
    unfinished: int
    rows: int
    seconds: float
    rejects: tuple[Rejected, ...] = ()
    unfinished_sets: tuple[str, ...] = ()
    dry_run: bool = False
    resumed: int = 0
    by_copy: bool = False


def as_event(summary: ImportSummary) -> ImportFinished:
    """Return what a log should hold of an import that has ended well."""
    return ImportFinished(
        summary.status,
        summary.import_id,
        summary.found,
        summary.loaded,
        summary.unchanged,
        summary.rejected,
        summary.unfinished,
        round(summary.seconds, 3),
    )
