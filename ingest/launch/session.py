"""Run a program so that XLA dumps, and import what it leaves, however it ends."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ingest.database.connect import check_path, open_database, status
from ingest.display import display
from ingest.errors import DatabaseLocked, UsageError, XbufError
from ingest.launch.flags import dump_directory, flags_in, with_dump_flags
from ingest.launch.program import Ended, Program
from ingest.pipeline.importer import import_dumps
from ingest.pipeline.watch import ImportOptions, watch

if TYPE_CHECKING:
    from ingest.pipeline.summary import ImportSummary

_QUIET_SECONDS: Final = 1.0
"""After which a module is taken to be written, while the program runs: XLA writes its files in a row."""
_RUNS: Final = """
SELECT max(r.run_id)
FROM runs AS r JOIN run_files AS f USING (run_id)
WHERE (r.dump_dir = $place OR starts_with(r.dump_dir, $place || '/')) AND f.mtime_ns >= $since
GROUP BY r.dump_dir, r.stem
ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program dumps.

    Attributes:
        flags: XLA_FLAGS of the user's, without ours.
        path: the directory, absolute and without links.
        is_temporary: it goes once all of it is imported.
    """

    flags: str
    path: str
    is_temporary: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program and its dumps.

    Attributes:
        ended: how the program ended.
        runs: numbers of the runs that it left; of modules with equal files the last.
        found: dumps found, those that are rejected or unfinished among them.
        kept: where the dumps still lie; None where they were temporary.
        failure: why not all that could be loaded was; None if it was.
    """

    ended: Ended
    runs: tuple[int, ...] = ()
    found: int = 0
    kept: str | None = None
    failure: XbufError | None = None


def dump_place(variable: str | None, keep: str | None) -> Place:
    """Choose where a program dumps: where XLA_FLAGS says, in `keep`, or in a temporary folder.

    Args:
        variable: XLA_FLAGS as it is.
        keep: a new or empty folder for the dumps.

    Raises:
        UsageError: `keep` holds something, both name a place, or the place cannot be made.
    """
    flags = flags_in(variable)
    own = dump_directory(flags)
    if own is not None and keep is not None:
        raise UsageError(f"XLA_FLAGS dumps to {own} already; leave out --keep, or --xla_dump_to there")
    directory = own or keep
    try:
        if directory is None:
            return Place(flags, os.path.realpath(tempfile.mkdtemp(prefix="xbuf-run-")), True)
        os.makedirs(directory, exist_ok=True)
        if keep is not None and os.listdir(keep):
            raise UsageError(
                f"{keep}: is not empty; name a new folder: modules of two programs have the same names"
            )
    except OSError as error:
        raise UsageError(f"{error.filename or directory}: no folder for dumps: {error.strerror}") from error
    # The user's own flag stays as it is; ours names the place without links.
    return Place(flags, directory if own is not None else os.path.realpath(directory), False)


def run_program(
    command: Sequence[str],
    database: str,
    place: Place,
    *,
    environment: Mapping[str, str],
    module: str | None = None,
    while_running: Callable[[ImportSummary], None] | None = None,
    on_end: Callable[[Ended], None] = lambda _: None,
    options: ImportOptions | None = None,
) -> Outcome:
    """Run a program with XLA_FLAGS that make it dump, and import the dumps.

    Signals go to the program until it has ended; see `ingest.launch.program`.

    Args:
        command: name or path, and arguments.
        database: DuckDB file; made by the import.
        place: where it dumps.
        environment: of the program; XLA_FLAGS is replaced.
        module: only modules whose name this regular expression finds.
        while_running: import what is compiled while the program runs, and call this with each import.
        on_end: called when the program has ended, before what is left is imported.
        options: for each import.

    Raises:
        NotStarted: the program cannot be started.
        NotADatabase, DatabaseError: the database cannot be used; nothing was started.
        KeyboardInterrupt: while the last dumps are imported; they are kept.
    """
    options = options or {}
    check_path(database)
    if os.path.exists(database):
        with suppress(DatabaseLocked):  # the import waits for it
            status(database)
    since = _clock_of(place.path)
    flags = with_dump_flags(place.flags, place.path, module)
    imports = _Imports(place.path, database, options)
    program = Program(command, {**environment, "XLA_FLAGS": flags}, on_end)
    try:
        if while_running is not None:
            imports.follow(program, while_running)
        ended = program.wait()
    finally:
        program.release()
    if while_running is None:
        imports.once()
    outcome = Outcome(ended, (), imports.found, place.path, imports.failure)
    if imports.found > imports.refused:
        try:
            outcome = replace(outcome, runs=_runs_of(database, place.path, since))
        except XbufError as error:
            outcome = replace(outcome, failure=outcome.failure or error)
    if place.is_temporary and outcome.failure is None and not imports.refused:
        shutil.rmtree(place.path, ignore_errors=True)
        outcome = replace(outcome, kept=None)
    return outcome


class _Imports:
    """The imports of what a program dumps.

    Attributes:
        found: dumps found.
        refused: those of them that are rejected or unfinished.
        failure: what ended the last import.
    """

    def __init__(self, path: str, database: str, options: ImportOptions) -> None:
        self.found = self.refused = 0
        self.failure: XbufError | None = None
        self._path, self._database, self._options = path, database, options

    def once(self) -> None:
        """Import all that is there; without anything no database is made."""
        if not os.listdir(self._path):
            return
        try:
            self._add(import_dumps(self._path, self._database, **self._options))
        except XbufError as error:
            self.failure = error

    def follow(self, program: Program, report: Callable[[ImportSummary], None]) -> None:
        """Import what appears until the program ends."""
        try:
            for summary in watch(
                self._path,
                self._database,
                pause=program.pause,
                quiet_seconds=_QUIET_SECONDS,
                **self._options,
            ):
                self._add(summary)
                report(summary)
        except XbufError as error:
            self.failure = error

    def _add(self, summary: ImportSummary) -> None:
        self.found += summary.found
        self.refused += summary.rejected + summary.unfinished


def _clock_of(folder: str) -> int:
    """Return the time that the folder's file system gives to a file now, ns since 1970."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime_ns
    except OSError as error:
        raise UsageError(f"{folder}: no dumps can be written there: {error.strerror}") from error


def _runs_of(database: str, path: str, since: int) -> tuple[int, ...]:
    place = display(os.path.realpath(path))
    with open_database(database, read_only=True) as connection:
        rows = connection.execute(_RUNS, {"place": place, "since": since}).fetchall()
    return tuple(int(run) for (run,) in rows)
