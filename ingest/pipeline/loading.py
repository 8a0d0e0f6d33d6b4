"""Load what imports have staged into a database: in steps while more is being read, all of it at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.database.connect import create as create_database
from ingest.database.import_lock import OnWait
from ingest.database.writer import open_writer
from ingest.errors import DatabaseError, DatabaseLocked
from ingest.pipeline.history import close_unfinished_imports, load_journal, load_records, update_times
from ingest.pipeline.journal import Journal, read_folded, remove_folded, staging_folder, timestamp
from ingest.pipeline.labels import lacking_labels, put_labels
from ingest.pipeline.manifest import has_manifest, note_runs, take_in
from ingest.pipeline.summary import Progress
from ingest.pipeline.target import Changes, Loading
from ingest.query.digest import installed_digest, shipped_digest
from ingest.staging.memory import release_freed

if TYPE_CHECKING:
    import duckdb

    from ingest.database.writer import Writer
    from ingest.pipeline.history import LoadedJournal
    from ingest.pipeline.journal import ImportRecord

STEP_SECONDS: Final = 20.0
"""Time after which what is staged is loaded, while more is being read."""


class FileLoading(Loading):
    """The loads of one import into a database file; see `ingest.pipeline.target.Loading`."""

    def __init__(
        self, target: str, wait_seconds: float, on_wait: OnWait, report: Callable[[Progress], None]
    ) -> None:
        super().__init__()
        self._target = target
        self._staging: Path = staging_folder(target)
        self._wait_seconds = wait_seconds
        self._on_wait = on_wait
        self._report = report
        self._written: set[int] = set()
        """Imports of which runs were loaded."""
        self._next_step = time.monotonic() + STEP_SECONDS

    def writer(self, *, patient: bool = True, in_place_only: bool = False) -> AbstractContextManager[Writer]:
        """Open the database for writing, at head; see `open_writer`."""
        return open_writer(
            self._target,
            str(self._staging),
            wait_seconds=self._wait_seconds if patient else 0,
            on_wait=self._on_wait if patient else None,
            in_place_only=in_place_only,
        )

    def make_in_advance(self) -> None:
        """Make a missing database while workers read: 0.15 s that the load need not take."""
        with suppress(DatabaseError):  # the load meets it again, and reports it
            create_database(self._target, with_queries=True)

    def step(self, journal: Journal, now: bool) -> None:
        """Load what is staged so far, when it is time: one bad dump must not keep the others out."""
        started = time.monotonic()
        parts = journal.parts
        if not parts or not (now or started >= self._next_step):
            return
        release_freed()  # the columns of a large dump, which the load can use
        try:
            create_database(self._target, with_queries=True)
            with self.writer(patient=False) as writer:
                close_unfinished_imports(writer.connection)
                *earlier, mine = [
                    load_journal(writer.connection, one)
                    if one is not journal
                    else load_journal(writer.connection, one, parts=parts, is_whole=False)
                    for one in self._in_order(writer.connection, [*self.pending, journal])
                ]
        except DatabaseLocked:
            self._next_step = time.monotonic() + STEP_SECONDS
            return
        journal.remove_parts(parts)
        for one in self.pending:
            one.remove()
        self.pending = []
        self.resumed += sum(one.runs for one in earlier)
        self.loaded += mine.runs
        self._written.update(one.import_id for one in (*earlier, mine))
        ended = time.monotonic()
        # A load by copy takes as long as the database is large: it must stay a small part of the whole.
        self._next_step = ended + max(STEP_SECONDS, 10 * (ended - started))

    def finish(self, journal: Journal, status: str, changes: Changes) -> None:
        """Load what is staged, also by earlier imports that were cut off, and record them."""
        journals = [*self.pending, journal]
        has_news = changes.has_news or any(one.parts for one in journals) or bool(self._written)
        anew = not has_manifest(self._staging)
        started = time.monotonic()
        create_database(self._target, with_queries=True)
        try:
            with self.writer(patient=has_news, in_place_only=not has_news) as writer:
                ended = ended_with(journal, status)
                loaded = self._load_journals(writer.connection, [*self.pending, ended], changes)
                if has_news or anew:
                    note_runs(writer.connection, self._staging, "true" if anew else self._noted(changes))
        except DatabaseLocked:
            if has_news:
                raise
            # Not worth a copy of the database: the next load takes the record along.
            leave(journal, status)
            return
        self.seconds = time.monotonic() - started
        if has_news or anew:
            take_in(self._staging, anew=anew)
        for one in journals:
            one.remove()
        remove_folded(self._target)
        self.by_copy = writer.by_copy
        self.import_id = loaded[-1].import_id
        self.loaded += loaded[-1].runs
        self.resumed += sum(one.runs for one in loaded[:-1])

    def _load_journals(
        self, connection: duckdb.DuckDBPyConnection, journals: Sequence[Journal], changes: Changes
    ) -> list[LoadedJournal]:
        close_unfinished_imports(connection)
        loaded = [
            load_journal(connection, one, lambda done, total: self._report(Progress("load", done, total)))
            for one in self._in_order(connection, journals)
        ]
        self._written.update(one.import_id for one in loaded)
        update_times(connection, changes.touched)
        if changes.labelled:
            put_labels(
                connection, lacking_labels(connection, changes.labelled, journals[-1].record.labelling)
            )
        if installed_digest(connection) != shipped_digest():
            from ingest.query.install import install_queries  # 40 ms

            install_queries(connection)
        return loaded

    def _in_order(
        self, connection: duckdb.DuckDBPyConnection, journals: Sequence[Journal]
    ) -> Iterator[Journal]:
        """Yield journals, each when all imports without parts that began before it are recorded.

        So imports are numbered in the order in which they began.
        """
        folded = read_folded(self._target)
        for one in journals:
            before = folded if one is journals[-1] else _begun_before(folded, one.record.started_at)
            load_records(connection, before)
            folded = folded[len(before) :]
            yield one

    def _noted(self, changes: Changes) -> str:
        """Return the condition of the runs that this import has written."""
        imports = ", ".join(map(str, sorted(self._written)))
        touched = ", ".join(str(run_id) for run_id, _ in changes.touched) or "NULL"
        return f"import_id IN ({imports}) OR run_id IN ({touched})"


def ended_with(journal: Journal, status: str) -> Journal:
    """Return a journal that says that its import has ended, now and how."""
    ended = timestamp(datetime.now(UTC))
    return replace(journal, record=replace(journal.record, status=status, finished_at=ended))


def leave(journal: Journal, status: str) -> None:
    """Write down how an import ended, for the one that loads its journal.

    Raises:
        OSError: the folder cannot be written.
    """
    journal.write(ended_with(journal, status).record)


def _begun_before(records: Sequence[ImportRecord], moment: str) -> list[ImportRecord]:
    return list(takewhile(lambda record: record.started_at < moment, records))
