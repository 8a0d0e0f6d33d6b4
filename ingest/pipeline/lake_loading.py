"""Load what imports have staged into a lake: batch by batch, by processes of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import DatabaseError
from ingest.lake.commit import working
from ingest.lake.files import attach
from ingest.lake.layout import RUNS_A_BATCH
from ingest.lake.load import load_batch
from ingest.lake.update import add_imports, put_labels, update_files
from ingest.pipeline.history import LOAD_ROWS, LoadedJournal
from ingest.pipeline.journal import ImportRecord, Journal, read_folded, remove_folded
from ingest.pipeline.labels import Labelling, lacking_labels
from ingest.pipeline.lake_records import Apart
from ingest.pipeline.loading import STEP_SECONDS, ended_with, leave
from ingest.pipeline.summary import Progress
from ingest.pipeline.target import Changes, Loading
from ingest.staging.memory import release_freed

if TYPE_CHECKING:
    from ingest.lake.store import Lake

_BEGUN: Final = ("started_at", "tool_version", "host", "sources", "import_uuid")
_ENDED: Final = ("finished_at", "status", "found", "unchanged", "rejected", "unfinished")
"""Columns of `imports` that are known when an import begins, and when it has ended."""


class LakeLoading(Loading):
    """The loads of one import into a lake; see `ingest.pipeline.target.Loading`."""

    def __init__(self, apart: Apart, place: str, report: Callable[[Progress], None]) -> None:
        super().__init__()
        self._apart = apart
        self._place = place
        self._report = report
        self._has_written = False
        self._next_step = time.monotonic() + STEP_SECONDS

    def make_in_advance(self) -> None:
        """Nothing: the lake was made before anything was read."""

    def step(self, journal: Journal, now: bool) -> None:
        """Load what is staged so far, when it is time."""
        parts = journal.parts
        if not parts or not (now or time.monotonic() >= self._next_step):
            return
        release_freed()
        try:
            self._load(journal, parts, is_whole=False)
        except DatabaseError:  # the last load meets it again, and reports it
            self._next_step = time.monotonic() + STEP_SECONDS
            return
        journal.remove_parts(parts)
        self._next_step = time.monotonic() + STEP_SECONDS

    def finish(self, journal: Journal, status: str, changes: Changes) -> None:
        """Load what is staged, also by earlier imports that were cut off, and record them."""
        journals = [*self.pending, journal]
        has_news = changes.has_news or self._has_written or any(one.parts for one in journals)
        if not has_news:
            leave(journal, status)  # the next load takes the record along
            return
        started = time.monotonic()
        self._load(ended_with(journal, status), journal.parts, is_whole=True)
        labelling = journal.record.labelling
        if changes.touched or changes.labelled:
            self._apart.ask(_change, changes, labelling)
        self.seconds = time.monotonic() - started
        journal.remove()

    def _load(self, journal: Journal, parts: Sequence[str], *, is_whole: bool) -> None:
        """Load parts of this import, after all that earlier ones have left."""
        folded = read_folded(self._place)
        for one in self._apart.run(_load_all, folded, self.pending, journal, parts, is_whole):
            if isinstance(one, Progress):
                self._report(one)
                continue
            which, loaded = one
            if which == journal.directory:
                self.import_id = loaded.import_id
                self.loaded += loaded.runs
            else:
                self.resumed += loaded.runs
        self._has_written = True
        remove_folded(self._place)
        for earlier in self.pending:
            earlier.remove()
        self.pending = []


def _load_all(
    lake: Lake,
    folded: Sequence[ImportRecord],
    pending: Sequence[Journal],
    journal: Journal,
    parts: Sequence[str],
    is_whole: bool,
) -> Iterator[Progress | tuple[Path, LoadedJournal]]:
    """Load in the order in which imports began; yield how far it is, and what became of each journal."""
    add_imports(
        lake,
        [_row(record) for record in folded],
        {record.import_uuid: [asdict(one) for one in record.rejects] for record in folded},
    )
    for one in pending:
        yield one.directory, (yield from _load_journal(lake, one, one.parts, is_whole=True))
    yield journal.directory, (yield from _load_journal(lake, journal, parts, is_whole=is_whole))


def _load_journal(
    lake: Lake, journal: Journal, parts: Sequence[str], *, is_whole: bool
) -> Generator[Progress, None, LoadedJournal]:
    """Load parts of an import in batches, the last of which completes its row; return what was loaded.

    A load that was cut off is gone on with: the import keeps its number, and what is there stays as it is.
    """
    record = journal.record
    import_id, is_complete = _find_import(lake, record.import_uuid)
    groups = list(_groups(parts))
    runs = 0
    if is_complete and not parts:
        assert import_id is not None
        return LoadedJournal(import_id, 0)
    for number, group in enumerate(groups, 1):
        ends = is_whole and number == len(groups)
        row = _row(record) if ends else _begun(record)
        loaded = load_batch(
            lake,
            group,
            {**row, "import_id": import_id},
            labels_of=record.labelling.of,
            rejects=[asdict(one) for one in record.rejects] if ends and not is_complete else (),
            replace=record.replace,
        )
        import_id = loaded.import_id
        runs += loaded.runs
        yield Progress("load", number, len(groups))
    assert import_id is not None
    return LoadedJournal(import_id, runs)


def _find_import(lake: Lake, import_uuid: str) -> tuple[int | None, bool]:
    """Return the number of an import that a load began to record, and whether its row is complete."""
    with working(lake) as (connection, _):
        attach(connection, lake, "imports")
        rows = connection.execute(
            "SELECT import_id, finished_at IS NOT NULL FROM imports WHERE import_uuid = $1", [import_uuid]
        ).fetchall()
    return (int(rows[0][0]), any(done for _, done in rows)) if rows else (None, False)


def _row(record: ImportRecord) -> dict[str, Any]:
    """Return the row of `imports` of an import that has ended, but for its number and what it loaded."""
    return {name: getattr(record, name) for name in (*_BEGUN, *_ENDED)}


def _begun(record: ImportRecord) -> dict[str, Any]:
    """Return the row of an import that has not ended: a kill leaves the truth."""
    return {**{name: getattr(record, name) for name in _BEGUN}, "status": "interrupted"}


def _groups(parts: Sequence[str]) -> Iterator[list[str]]:
    """Put parts together up to the runs and rows of one batch; one empty group when there are none."""
    import pyarrow.parquet as pq  # 135 ms, with Arrow

    group: list[str] = []
    runs = rows = 0
    for part in parts:
        counts = {
            name: pq.read_metadata(os.path.join(part, name)).num_rows
            for name in os.listdir(part)
            if name.endswith(".parquet")
        }
        more, size = counts["runs.parquet"], sum(counts.values())
        if group and (runs + more > RUNS_A_BATCH or rows + size > LOAD_ROWS):
            yield group
            group, runs, rows = [], 0, 0
        group.append(part)
        runs, rows = runs + more, rows + size
    yield group


def _change(lake: Lake, changes: Changes, labelling: Labelling) -> None:
    """Write names and times of files, and labels, of runs that were there before."""
    names = ("run_id", "role", "file_name", "file_bytes", "mtime_ns", "etag")
    update_files(lake, [dict(zip(names, (run, *one), strict=True)) for run, one in changes.touched])
    if changes.labelled:
        with working(lake) as (connection, _):
            for name in ("runs", "run_labels"):
                attach(connection, lake, name)
            lacking = lacking_labels(connection, changes.labelled, labelling)
            put_labels(lake, {(run, key): value for run, key, value in lacking})
