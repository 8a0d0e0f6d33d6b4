"""The staging folder of an import: what a killed import leaves, and how the next one goes on with it.

    xbuf.duckdb.staging/
        20261120T190412-1f0c9a3e/       one folder an import, readable by its owner alone
            import.json                 when it started, on what; how it ended
            part-000000/ …              complete parts (`ingest.store.stage`)

A folder that is still there when the next import starts belongs to one that was killed or could not get
the database: its parts are loaded with the next import, under an import of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_RECORD: Final = "import.json"


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """What an import says of itself; the columns of `imports` but for its number."""

    started_at: str
    tool_version: str
    host: str
    sources: tuple[str, ...]
    labels: tuple[tuple[str, str], ...] = ()
    replace: bool = False
    finished_at: str | None = None
    status: str = "interrupted"
    """Until the import has ended: a folder that is left behind tells of an interrupted one."""
    found: int | None = None
    loaded: int | None = None
    unchanged: int | None = None
    rejected: int | None = None
    unfinished: int | None = None


@dataclass(frozen=True, slots=True)
class Journal:
    """One staging folder."""

    directory: Path
    record: ImportRecord

    @property
    def parts(self) -> list[str]:
        """Complete parts, in order."""
        return sorted(str(path) for path in self.directory.glob("part-*") if path.suffix != ".tmp")

    def part(self, run_no: int, round_: int) -> str:
        """Return the path of the part, to be written, whose first run has this number."""
        return str(self.directory / f"part-{round_}-{run_no:07d}")

    def write(self, record: ImportRecord) -> Journal:
        """Replace the record, atomically."""
        unnamed = self.directory / f"{_RECORD}.tmp"
        unnamed.write_text(json.dumps(asdict(record)), encoding="utf-8")
        unnamed.replace(self.directory / _RECORD)
        return replace(self, record=record)

    def remove(self) -> None:
        """Delete the folder and all staged work in it."""
        shutil.rmtree(self.directory)
        with_siblings = self.directory.parent
        if not any(with_siblings.iterdir()):
            with_siblings.rmdir()


def staging_folder(database: str) -> Path:
    """Return the folder beside the database that holds the journals."""
    return Path(f"{database}.staging")


def open_journal(
    database: str,
    sources: Sequence[str],
    labels: Sequence[tuple[str, str]],
    *,
    replace_runs: bool,
    version: str,
) -> Journal:
    """Make a staging folder for a new import."""
    now = datetime.now(UTC)
    folder = staging_folder(database)
    folder.mkdir(mode=0o700, exist_ok=True)
    directory = folder / f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
    directory.mkdir(mode=0o700)
    record = ImportRecord(
        timestamp(now), version, os.uname().nodename, tuple(sources), tuple(labels), replace_runs
    )
    return Journal(directory, record).write(record)


def left_behind(database: str) -> list[Journal]:
    """Return the journals of earlier imports, oldest first; the caller holds the import lock."""
    found: list[Journal] = []
    folder = staging_folder(database)
    for directory in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            fields = json.loads((directory / _RECORD).read_text(encoding="utf-8"))
            fields["sources"] = tuple(fields["sources"])
            fields["labels"] = tuple((key, value) for key, value in fields["labels"])
            found.append(Journal(directory, ImportRecord(**fields)))
        except (OSError, ValueError, TypeError, KeyError):
            # Killed before its record was complete: nothing was staged yet.
            shutil.rmtree(directory, ignore_errors=True)
    return found


def timestamp(moment: datetime) -> str:
    """Return a moment as the database wants it: UTC, without zone."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
