"""The staging folder of a database: what imports have read, and what the next one goes on with.

    xbuf.duckdb.staging/                    readable by its owner alone; may be deleted between imports
        20261120T190412.113820-1f0c9a3e/    one folder an import
            import.json                     when it started, on what; how it ended
            part-0000000-5e1f09ab/ …        complete parts (`ingest.staging.parts`)
            at-hand                         what is being read (`ingest.staging.at_hand`)
        imports.jsonl                       records of imports that left no parts, one a line
        suspects.json                       dumps that something was lost with (`ingest.pipeline.suspects`)
        profiles.json                       modules of known profiles (`ingest.pipeline.profiles`)
        copy-9x0tq4/                        a copy of the database that is being changed
        manifest.duckdb                     what the database held at the last load
                                            (`ingest.pipeline.manifest`)

A folder of an import that is still there when the next one starts belongs to one that was killed, could
not get the database, or found nothing worth a write. The next load takes its parts along, under an import
of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from ingest.database.private import make_private_folder, replace_text, require_private_folder
from ingest.database.refusals import explain
from ingest.pipeline.labels import Labelling
from ingest.staging.parts import Parts, is_whole
from ingest.staging.task import Rejected

_RECORD: Final = "import.json"
_FOLDED: Final = "imports.jsonl"
_REMOVED: Final = "removed-"
_MOMENT: Final = "%Y%m%dT%H%M%S.%f"


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """What an import says of itself; the columns of `imports` but for its number."""

    started_at: str
    tool_version: str
    host: str
    sources: tuple[str, ...]
    labels: tuple[tuple[str, str], ...] = ()
    label_pattern: str | None = None
    replace: bool = False
    revision: str = ""
    """Revision of the schema that its parts were made for."""
    pid: int = 0
    """Process that wrote it; it is at work while it holds the import lock."""
    finished_at: str | None = None
    status: str = "interrupted"
    """Until the import has ended: a folder that is left behind is of an interrupted one."""
    found: int | None = None
    loaded: int | None = None
    unchanged: int | None = None
    rejected: int | None = None
    unfinished: int | None = None
    rejects: tuple[Rejected, ...] = ()
    import_uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    """By which a load that was cut off finds its import again; clocks stand still, or go back."""

    @property
    def labelling(self) -> Labelling:
        """Labels of its runs."""
        return Labelling(self.labels, self.label_pattern)


@dataclass(frozen=True, slots=True)
class Journal:
    """The folder of one import."""

    directory: Path
    record: ImportRecord

    @property
    def folder(self) -> Parts:
        """Where its parts lie."""
        return Parts(self.directory)

    @property
    def parts(self) -> list[str]:
        """Complete parts, in order."""
        return self.folder.complete()

    def write(self, record: ImportRecord) -> Journal:
        """Replace the record, atomically."""
        replace_text(self.directory / _RECORD, json.dumps(asdict(record)))
        return replace(self, record=record)

    def remove(self) -> None:
        """Delete the folder and all staged work in it."""
        # Renamed first: a kill half-way must not leave a record with parts of parts.
        doomed = self.directory.with_name(f"{_REMOVED}{self.directory.name}")
        self.directory.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def remove_damaged_parts(self, revision: str) -> None:
        """Delete parts that cannot be loaded: cut off by a crash of the machine, or of another schema.

        Nothing is lost: the database does not know their dumps, so this import finds them again.
        """
        self.remove_parts(
            part for part in self.parts if self.record.revision != revision or not is_whole(part)
        )

    def remove_parts(self, parts: Iterable[str]) -> None:
        """Delete parts that cannot be loaded, or are."""
        for part in parts:
            doomed = f"{part}.tmp"
            os.rename(part, doomed)
            shutil.rmtree(doomed)


def staging_folder(database: str) -> Path:
    """Return the folder next to the database that holds the journals."""
    return Path(f"{os.path.realpath(database)}.staging")


def open_journal(
    database: str,
    sources: Sequence[str],
    labelling: Labelling,
    *,
    replace_runs: bool,
    version: str,
    revision: str = "",
) -> Journal:
    """Make a folder for a new import; the caller holds the import lock.

    Raises:
        DatabaseError: the file system refuses.
    """
    now = datetime.now(UTC)
    folder = staging_folder(database)
    record = ImportRecord(
        timestamp(now),
        version,
        os.uname().nodename,
        tuple(sources),
        labelling.fixed,
        labelling.pattern,
        replace_runs,
        revision,
        os.getpid(),
    )
    try:
        make_private_folder(folder)
        directory = folder / f"{_next_name(database, now)}-{record.import_uuid[:8]}"
        directory.mkdir(mode=0o700)
        return Journal(directory, record).write(record)
    except OSError as error:
        raise explain(database, error) from error


def _next_name(database: str, now: datetime) -> str:
    """Return the name of a moment after those of all journals, whatever the clock says.

    The folders in order of their names are the imports in their order.
    """
    earlier = [path.name.partition("-")[0] for path in _entries(database) if is_journal(path)]
    name = f"{now:{_MOMENT}}"
    if name > max(earlier, default=""):
        return name
    return f"{datetime.strptime(max(earlier), _MOMENT) + timedelta(microseconds=1):{_MOMENT}}"


def left_behind(database: str) -> list[Journal]:
    """Return the journals of earlier imports, oldest first, and tidy up; the caller holds the import lock.

    Raises:
        DatabaseError: the folder is not this user's alone; nothing in it was touched.
    """
    require_private_folder(staging_folder(database))
    for path in _entries(database):
        if path.name.startswith(_REMOVED):
            shutil.rmtree(path, ignore_errors=True)
        elif is_journal(path) and _read_record(path) is None:
            # Killed before its record was complete: nothing was staged yet.
            shutil.rmtree(path, ignore_errors=True)
    journals = read_journals(database)
    for journal in journals:
        for path in journal.directory.glob("*.tmp"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
    return journals


def read_journals(database: str) -> list[Journal]:
    """Return the journals that are there, oldest first; nothing is changed.

    To anybody but the importer's user the folder is closed, and there are none.
    """
    folder = staging_folder(database)
    if folder.is_symlink() or not os.access(folder, os.R_OK | os.X_OK):
        return []
    found = []
    for path in _entries(database):
        record = _read_record(path) if is_journal(path) else None
        if record is not None:
            found.append(Journal(path, record))
    return found


def fold_empty(database: str, journals: Sequence[Journal]) -> list[Journal]:
    """Put the records of journals without parts into one file; return the others.

    With a reader that stays for days every import without news leaves one.

    Raises:
        DatabaseError: the file system refuses.
    """
    kept = [one for one in journals if one.parts]
    empty = [one for one in journals if not one.parts]
    if not empty:
        return kept
    try:
        with open(staging_folder(database) / _FOLDED, "a", encoding="ascii") as file:
            for one in empty:
                # On a line of its own, also after one that was cut off.
                file.write(f"\n{json.dumps(asdict(one.record))}\n")
        for one in empty:
            one.remove()
    except OSError as error:
        raise explain(database, error) from error
    return kept


def read_folded(database: str) -> list[ImportRecord]:
    """Return the records that `fold_empty` has put aside, oldest first; one may be there twice."""
    try:
        lines = (staging_folder(database) / _FOLDED).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeError):
        return []
    return [record for line in lines if (record := _parse_record(line)) is not None]


def remove_folded(database: str) -> None:
    """Forget what `fold_empty` has put aside, once it is recorded."""
    (staging_folder(database) / _FOLDED).unlink(missing_ok=True)


def count_staged(parts: Sequence[str]) -> int:
    """Return the number of runs in parts; one that vanishes meanwhile, as when its import ends, has none."""
    import pyarrow as pa  # 110 ms
    import pyarrow.parquet as pq  # 135 ms, with Arrow

    runs = 0
    for part in parts:
        with suppress(OSError, pa.ArrowException):
            runs += pq.read_metadata(os.path.join(part, "runs.parquet")).num_rows
    return runs


def timestamp(moment: datetime) -> str:
    """Return a moment as the database wants it: UTC, without zone."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


def _entries(database: str) -> list[Path]:
    folder = staging_folder(database)
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise explain(database, error) from error


def is_journal(path: Path) -> bool:
    """Return whether something in a staging folder is the folder of an import."""
    return path.name[:1].isdigit() and path.is_dir()


def _read_record(directory: Path) -> ImportRecord | None:
    """Return the record of a journal; None when it is not there or not whole."""
    try:
        return _parse_record((directory / _RECORD).read_text(encoding="utf-8"))
    except (OSError, UnicodeError):
        return None


def _parse_record(text: str) -> ImportRecord | None:
    try:
        fields = json.loads(text)
        fields["sources"] = tuple(fields["sources"])
        fields["labels"] = tuple((key, value) for key, value in fields["labels"])
        fields["rejects"] = tuple(Rejected(**reject) for reject in fields.get("rejects", ()))
        return ImportRecord(**fields)
    except (ValueError, TypeError, KeyError):
        return None
