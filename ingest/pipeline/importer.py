"""Import dump sets into a database: find, plan, stage, load.

    discover ──► plan ──► stage (workers; no database open) ──► load (one short write) ──► publish

Staging writes whole parsed runs as Parquet next to the database; the load puts them in within
transactions. A killed import leaves its staging folder, and the next import goes on with it. So does an
import that cannot get the database: what it read is loaded by the next one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from ingest.arguments import Labels, Paths, as_labels, as_paths, as_pattern
from ingest.database.import_lock import OnWait
from ingest.database.publish import check_place as check_snapshot_place
from ingest.database.publish import publish_snapshot
from ingest.database.revision import HEAD
from ingest.display import display
from ingest.dump.find import check_paths
from ingest.errors import (
    DatabaseError,
    DatabaseLocked,
    ExitCode,
    SchedulerError,
    SourceError,
    UsageError,
    XbufError,
)
from ingest.events import (
    Event,
    ImportFailed,
    ImportStarted,
    Loaded,
    Planned,
    Published,
    Unfinished,
    WaitingForLock,
)
from ingest.pipeline.file_target import FileTarget
from ingest.pipeline.journal import fold_empty, left_behind, open_journal, staging_folder
from ingest.pipeline.labels import Labelling
from ingest.pipeline.loading import leave
from ingest.pipeline.plan import (
    Search,
    Select,
    as_reject,
    find_sets,
    plan_only,
    plan_tasks,
    search_events,
    shown_names,
)
from ingest.pipeline.profiles import Profiles
from ingest.pipeline.reading import Outcome, read_tasks, reading_failed, set_names, set_rejected
from ingest.pipeline.summary import ImportSummary, Progress, as_event
from ingest.pipeline.suspects import Suspects
from ingest.pipeline.target import Changes, Target
from ingest.source.kinds import is_elsewhere
from ingest.source.source import Terms
from ingest.staging.memory import rare_collections, release_freed
from ingest.staging.task import Task
from ingest.staging.workers import default_jobs
from ingest.version import VERSION

if TYPE_CHECKING:
    from ingest.dump.elsewhere import Listings
    from ingest.staging.cluster import Cluster

SOURCE_SECONDS: Final = 3600.0
"""For all that an import reads at URLs; what was read by then is loaded, and the next import goes on."""


def import_dumps(
    paths: Paths,
    database: str | os.PathLike[str] | None = None,
    *,
    lake: str | os.PathLike[str] | None = None,
    staging: str | os.PathLike[str] | None = None,
    labels: Labels = (),
    label_from: str | re.Pattern[str] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    rehash: bool = False,
    replace_runs: bool = False,
    dry_run: bool = False,
    read_hlo: bool = True,
    follow_symlinks: bool = False,
    wait_seconds: float = 5.0,
    publish: str | os.PathLike[str] | None = None,
    select: Select | None = None,
    archives: Listings | None = None,
    source_timeout: float = SOURCE_SECONDS,
    progress: Callable[[Progress], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> ImportSummary:
    """Import every dump set under `paths` that the database, or the lake, does not hold yet.

    Args:
        paths: directories, searched whole, and files: one of them, or several.
        database: DuckDB file; made when it is not there.
        lake: in place of a database, a folder or the URL of a place in an object store; made when it is not
            there.
        staging: folder of this machine for what is read and not in the lake yet; by default one in the user's
            cache.
        labels: put on the run of every dump that is found, new or not: a mapping, or key and value pairs; all
            are text. A key has one value, and the old one goes.
        label_from: regular expression that is searched in the directory and stem of every dump that is found;
            its named groups are labels too. `labels` win over it.
        jobs: worker processes; by default one for each core that this process may use. With 0 this process
            reads all itself: one in which JAX has threads must not be forked.
        scheduler: of the Dask cluster that reads the dumps: its address, or the path of its file (`.json`);
            "local" for one of `jobs` processes of this machine. Its workers must see the dumps.
        rehash: read sets also when sizes and times are as recorded.
        replace_runs: a set with new content replaces the older runs of its place.
        dry_run: only report what would be read; nothing is written.
        read_hlo: also read the sidecar files of each dump: HLO text and protobuf.
        follow_symlinks: follow links also where they lead out of the directories given.
        wait_seconds: how long to wait for another import, and for a process that writes to the database.
        publish: read-only snapshot to bring up to date at the end.
        source_timeout: seconds for all that is read at URLs; 0 for no limit.
        select: what of all that is found is to be imported; nothing else is looked at or reported.
        archives: what is known already of what lies in archives: such a version is not listed again.
        progress: called now and then.
        on_event: called with everything that a log should hold, as it happens.

    Raises:
        TypeError: `paths`, `labels` or `label_from` are something else.
        UsageError: a path does not exist, `label_from` is no regular expression with a named group, or it is
            not one of `database` and `lake` that is given.
        SourceError: what a URL names could not be read; what was read until then is loaded.
        SchedulerError: the cluster could not be used; what was read until then is loaded.
        DatabaseLocked: another process had the database for too long; what was read is kept, and loaded by
            the next import.
        DatabaseError: the database cannot be used; nothing is lost.
        KeyboardInterrupt: after what was staged has been loaded.
    """
    started = time.monotonic()
    names = as_paths(paths)
    labelling = Labelling(as_labels(labels), as_pattern(label_from))
    emit = on_event or (lambda _: None)
    if lake is not None and publish is not None:
        raise UsageError("a snapshot is published of a database; a lake is read as it is")
    if staging is not None and lake is None:
        raise UsageError("a staging folder is named for a lake; that of a database lies next to it")
    # Without workers nobody forks here: see `ingest.source.apart`.
    terms = Terms(time.time() + source_timeout if source_timeout else None, is_apart=jobs != 0)
    what = Search(names, read_hlo, follow_symlinks, terms, select, archives)

    def on_wait(refusal: DatabaseLocked) -> None:
        emit(WaitingForLock(target.name, refusal.pid, refusal.command, wait_seconds))

    target: Target
    if database is not None and lake is None:
        target = FileTarget(os.path.abspath(os.fspath(database)), wait_seconds, on_wait)
    elif database is None and lake is not None:
        from ingest.pipeline.lake_target import LakeTarget  # what it needs is an extra

        target = LakeTarget(
            os.fspath(lake), staging, shown_names(names), wait_seconds, on_wait, may_fork=jobs != 0
        )
    else:
        raise UsageError("give a database or a lake: one of them")
    emit(ImportStarted(target.name, shown_names(names), VERSION))
    run = _Import(target, progress or (lambda _: None), emit)
    try:
        check_paths(names)
        target.check()  # before anything is read
        if publish is not None:
            check_snapshot_place(target.place, os.fspath(publish))
        if dry_run:
            return plan_only(what, target, rehash, started, emit)
        with target.lock(), rare_collections():
            run.prepare(what, labelling, rehash=rehash, replace_runs=replace_runs)
            run.read(default_jobs() if jobs is None else jobs, scheduler)
            run.load()
            if run.failure is not None:
                raise run.failure
            if publish is not None:
                run.publish(os.fspath(publish), wait_seconds, on_wait)
    except BaseException as error:
        # DuckDB makes a RuntimeError of a Ctrl-C that strikes while a statement runs.
        if isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt):
            emit(ImportFailed("interrupted", run.kept, "interrupted", int(ExitCode.INTERRUPTED)))
            raise KeyboardInterrupt from error
        code = error.exit_code if isinstance(error, XbufError) else ExitCode.DATABASE
        emit(ImportFailed(run.status, run.kept, str(error) or type(error).__name__, int(code)))
        raise
    return run.summary(time.monotonic() - started)


def _cluster(
    scheduler: str | None, jobs: int, emit: Callable[[Event], None]
) -> AbstractContextManager[Cluster | None]:
    """Connect to a cluster, for as long as the block lasts; raises SchedulerError."""
    if scheduler is None:
        return nullcontext()
    from ingest.staging.cluster import Cluster  # 0.8 s, with Dask

    return closing(Cluster(scheduler, jobs, emit))


class _Import:
    """One import on its way, step by step."""

    def __init__(
        self,
        target: Target,
        report: Callable[[Progress], None],
        emit: Callable[[Event], None],
    ) -> None:
        self.failure: BaseException | None = None
        """What ended the reading early; what was staged until then is loaded all the same."""
        self.status = "failed"
        self.kept = 0
        """Dump sets staged and not loaded."""
        self._target = target
        self._report = report
        self._emit = emit
        self._outcome = Outcome()
        self._tasks: list[Task] = []
        self._rehash = False
        self._places: list[tuple[str, str]] = []
        """Directory and stem of every dump that was found, where there are labels to put on."""
        self._lacks_labels = False

    def prepare(
        self,
        what: Search,
        labelling: Labelling,
        *,
        rehash: bool,
        replace_runs: bool,
    ) -> None:
        """Find what must be read, and open the journal; the caller has the lock."""
        self._staging = staging_folder(self._target.place)
        self._loading = self._target.loading(self._report)
        pending = left_behind(self._target.place)
        self._rehash = rehash
        self._suspects = Suspects(self._staging)
        for one in pending:
            one.remove_damaged_parts(HEAD)
            if one.record.finished_at is None:
                self._suspects.died_with(one.folder.at_hand.places())
        pending = self._loading.pending = fold_empty(self._target.place, pending)
        parts = [part for one in pending for part in one.parts]
        records = self._records = self._target.records(parts, may_change=True)
        records.look(search_is_long=any(map(is_elsewhere, what.names)))
        self._profiles = Profiles(self._staging)
        found = find_sets(what, records, self._profiles, self._staging)
        self._outcome.found = found.found
        recorded = records.recorded(found.sets, rehash=rehash)
        tasks, self._outcome.unchanged = plan_tasks(found.sets, recorded)
        self._tasks = self._profiles.with_copies(tasks)
        self._profiles.keep()
        if labelling:
            self._places = [(display(one.directory), display(one.stem)) for one in found.sets]
            self._lacks_labels = bool(self._outcome.unchanged) and records.lacks(self._places, labelling)
        known_from = "staging" if records.locked else "database"
        self._emit(Planned(found.found, len(self._tasks), len(pending), known_from))
        for event in search_events(found, what):
            self._emit(event)
        self._outcome.rejected += map(as_reject, found.problems)
        self._journal = open_journal(
            self._target.place,
            shown_names(what.names),
            labelling,
            replace_runs=replace_runs,
            version=VERSION,
            revision=HEAD,
        )

    def read(self, jobs: int, scheduler: str | None) -> None:
        """Stage what is new and close the journal; a failure is kept for after the load."""
        outcome = self._outcome
        for problem in outcome.rejected:
            self._emit(set_rejected(problem))
        status = "ok"
        try:
            with _cluster(scheduler if self._tasks else None, jobs, self._emit) as cluster:
                read_tasks(
                    self._tasks,
                    self._journal,
                    jobs,
                    outcome,
                    self._suspects,
                    rehash=self._rehash,
                    report=self._report,
                    emit=self._emit,
                    meanwhile=self._loading.make_in_advance,
                    load_step=partial(self._loading.step, self._journal),
                    cluster=cluster,
                )
        except KeyboardInterrupt as error:
            self.failure, status = error, "interrupted"
        except (SourceError, SchedulerError) as error:
            self.failure, status = error, "failed"
        except OSError as error:
            self.failure, status = reading_failed(self._target.place, error), "failed"
            self.failure.__cause__ = error
        finally:
            self._profiles.close()
        # Of 100,000 sets 35 MB, which the load can use.
        self._tasks = []
        release_freed()
        self.status = "rejects" if outcome.rejected and status == "ok" else status
        for name in set_names(outcome.unfinished):
            self._emit(Unfinished(name))
        self.kept = max(0, outcome.loaded - self._loading.loaded)
        # On disk it stays an interrupted one until all is done: that is what a kill makes of it.
        record = outcome.put_on(self._journal.record)
        try:
            self._journal = self._journal.write(record)
        except OSError as error:
            self._journal = replace(self._journal, record=record)
            if self.failure is None:
                self.failure = reading_failed(self._target.place, error)
                self.failure.__cause__ = error

    def load(self) -> None:
        """Load what is staged, also by earlier imports that were cut off, and record them."""
        outcome = self._outcome
        rejects = {(one.file, one.line, one.kind) for one in outcome.rejected}
        has_news = bool(outcome.touched) or self._lacks_labels or self._records.has_news(rejects)
        changes = Changes(outcome.touched, self._places if outcome.unchanged else (), has_news)
        try:
            self._loading.finish(self._journal, self.status, changes)
        except DatabaseError as error:
            if self.status in ("ok", "rejects"):
                self.status = "deferred" if isinstance(error, DatabaseLocked) else "failed"
            with suppress(OSError):  # a full disk, say: then it counts as interrupted
                leave(self._journal, self.status)
            if self.failure is not None:
                raise self.failure from error
            raise
        loading = self._loading
        if loading.import_id is None:
            return
        self.kept = 0
        if loading.loaded or loading.resumed:
            seconds = round(loading.seconds, 3)
            self._emit(Loaded(loading.loaded, loading.resumed, outcome.rows, loading.by_copy, seconds))

    def publish(self, path: str, wait_seconds: float, on_wait: OnWait) -> None:
        """Bring the snapshot up to date."""
        started = time.monotonic()
        done = publish_snapshot(self._target.place, path, wait_seconds=wait_seconds, on_wait=on_wait)
        if done.changed:
            self._emit(Published(done.path, done.file_bytes, round(time.monotonic() - started, 3)))

    def summary(self, seconds: float) -> ImportSummary:
        """Sum up an import that has ended well."""
        outcome = self._outcome
        loaded = min(outcome.loaded, self._loading.loaded)  # others may have brought the rest into a lake
        summary = ImportSummary(
            self._target.name,
            self._loading.import_id,
            self.status,
            outcome.found,
            loaded,
            outcome.unchanged + outcome.loaded - loaded,
            len(outcome.rejected),
            len(outcome.unfinished),
            outcome.rows,
            seconds,
            tuple(outcome.rejected),
            set_names(outcome.unfinished),
            resumed=self._loading.resumed,
            by_copy=self._loading.by_copy,
        )
        self._emit(as_event(summary))
        return summary
