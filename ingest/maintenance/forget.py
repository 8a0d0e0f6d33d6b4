"""Forget runs: delete them with all their rows, chosen by label, age, import, directory or number."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ingest.database.import_lock import OnWait
from ingest.display import display
from ingest.errors import UsageError
from ingest.lake.reading import in_words_of, open_to_read
from ingest.maintenance.exclusive import change_database
from ingest.pipeline.load import delete_runs
from ingest.source.address import place_of
from ingest.source.kinds import is_archive, is_lake, is_url
from ingest.sql import one_number, transaction

if TYPE_CHECKING:
    import duckdb

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Selection:
    """Which runs: those that meet everything given; what is not given does not count.

    Attributes:
        runs: numbers of runs.
        import_id: of this import.
        directory: dumped into this directory or below it.
        labels: with all these labels, (key, value).
        older_than: loaded longer ago than this.
    """

    runs: tuple[int, ...] = ()
    import_id: int | None = None
    directory: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    older_than: timedelta | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was chosen, which would mean everything."""
        return not (self.runs or self.labels) and (
            self.import_id is None and self.directory is None and self.older_than is None
        )


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a selection hits.

    Attributes:
        runs: number of runs.
        file_bytes: text of their dumps, bytes.
        first, last: when the oldest and the newest of them was loaded, UTC; None without runs.
        examples: the first few, as directory and stem.
        on_disk: how many dumps are still where they were found, or the archive that they were in: the next
            import of their directory loads them again.
        at_urls: how many were found at URLs; these are not asked whether the dumps are still there.
        rejects: rows of `rejects` that go with them, when whole imports or ages are chosen.
    """

    runs: int
    file_bytes: int
    first: datetime | None
    last: datetime | None
    examples: tuple[str, ...]
    on_disk: int
    at_urls: int
    rejects: int


def plan_forget(database: str, selection: Selection, *, wait_seconds: float = 0.0) -> Forgotten:
    """Return what `forget_runs` would delete; nothing is changed.

    Args:
        database: a file, or `lake:` with a folder or URL.
        selection: which runs.
        wait_seconds: how long to wait for who holds a file.

    Raises:
        UsageError: the selection is empty.
        DatabaseError: as `open_to_read`.
    """
    _check(selection)
    with open_to_read(database, wait_seconds=wait_seconds) as connection, in_words_of(database):
        return _plan(connection, *_where(selection, datetime.now(UTC)))


def forget_runs(
    database: str, selection: Selection, *, wait_seconds: float = 0.0, on_wait: OnWait | None = None
) -> Forgotten:
    """Delete the selected runs with all their rows, in one transaction; return what is gone.

    The history in `imports` stays. In a lake, rejects go in a transaction of their own, after the runs: those
    that a kill leaves go when the same is forgotten again.

    Args:
        database: a file, or `lake:` with a folder or URL.
        selection: which runs.
        wait_seconds: how long to wait for who holds a file.
        on_wait: called when waiting begins.

    Raises:
        UsageError: the selection is empty.
        DatabaseError: as `change_database`; also when the store of a lake refuses.
    """
    _check(selection)
    where, values = _where(selection, datetime.now(UTC))
    if is_lake(database):
        return _forget_in_lake(database, where, values)
    with change_database(database, wait_seconds=wait_seconds, on_wait=on_wait) as writer:
        connection = writer.connection
        with transaction(connection):
            plan = _plan(connection, where, values)
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE forgotten AS SELECT run_id FROM runs AS r WHERE {where}",
                values,
            )
            delete_runs(connection, "FROM forgotten")
            if rejects := _rejects(values):
                connection.execute(f"DELETE FROM rejects WHERE {rejects}", values)
    return plan


def _forget_in_lake(name: str, where: str, values: dict[str, Any]) -> Forgotten:
    from ingest.lake.create import open_imports
    from ingest.lake.store import parse_lake
    from ingest.lake.update import delete_rejects, delete_runs

    lake = parse_lake(name)
    open_imports(lake)
    plans: list[Forgotten] = []

    def choose(connection: duckdb.DuckDBPyConnection) -> set[int]:
        plans.append(_plan(connection, where, values))
        found = connection.execute(f"SELECT run_id FROM runs AS r WHERE {where}", values).fetchall()
        return {run for (run,) in found}

    delete_runs(lake, choose)
    if condition := _rejects(values):
        delete_rejects(lake, condition, values)
    return plans[-1]


def _check(selection: Selection) -> None:
    if selection.is_empty:
        raise UsageError(
            "say which runs to forget: --run, --import, --dir, --label or --older-than (see `xbuf runs`)"
        )


def _where(selection: Selection, now: datetime) -> tuple[str, dict[str, Any]]:
    """Return the condition on `runs AS r` and its parameters."""
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if selection.runs:
        conditions.append("r.run_id IN (SELECT unnest($runs))")
        values["runs"] = list(selection.runs)
    if selection.import_id is not None:
        conditions.append("r.import_id = $import_id")
        values["import_id"] = selection.import_id
    if selection.directory is not None:
        directory = display(place_of(selection.directory))
        conditions.append("(r.dump_dir = $directory OR starts_with(r.dump_dir, $below))")
        values["directory"], values["below"] = directory, directory.rstrip("/") + "/"
    for number, (key, value) in enumerate(selection.labels):
        conditions.append(
            f"r.run_id IN (SELECT run_id FROM run_labels WHERE (key, value) = ($key{number}, $value{number}))"
        )
        values[f"key{number}"], values[f"value{number}"] = key, value
    if selection.older_than is not None:
        conditions.append("r.ingested_at < $before")
        values["before"] = (now - selection.older_than).replace(tzinfo=None)
    return " AND ".join(conditions), values


def _rejects(values: dict[str, Any]) -> str | None:
    """Return which rejects go too: those of whole imports, chosen by number or age and by nothing else."""
    if set(values) == {"import_id"}:
        return "import_id = $import_id"
    if set(values) == {"before"}:
        return "import_id IN (SELECT import_id FROM imports WHERE started_at < $before)"
    return None


def _is_in_archive(directory: str) -> bool:
    """Say whether a place lies in an archive of this machine that is still there."""
    while directory and not is_url(directory):
        if os.path.lexists(directory):
            return is_archive(directory) and os.path.isfile(directory)
        directory, name = os.path.split(directory)
        if not name:
            break
    return False


def _plan(connection: duckdb.DuckDBPyConnection, where: str, values: dict[str, Any]) -> Forgotten:
    [(runs, size, first, last)] = connection.execute(
        "SELECT count(*), coalesce(sum(file_bytes), 0), min(ingested_at), max(ingested_at)"
        f" FROM runs AS r WHERE {where}",
        values,
    ).fetchall()
    files = connection.execute(
        "SELECT dump_dir, stem, file_name FROM runs AS r JOIN run_files AS f USING (run_id)"
        f" WHERE f.role = 'primary' AND {where} ORDER BY run_id",
        values,
    ).fetchall()
    is_in_archive = cache(_is_in_archive)
    rejects = 0
    if condition := _rejects(values):
        rejects = one_number(connection, f"SELECT count(*) FROM rejects WHERE {condition}", values)
    return Forgotten(
        runs,
        int(size),
        first,
        last,
        tuple(os.path.join(directory, stem) for directory, stem, _ in files[:_SHOWN]),
        sum(
            os.path.exists(os.path.join(directory, name)) or is_in_archive(directory)
            for directory, _, name in files
        ),
        sum(is_url(directory) for directory, _, _ in files),
        rejects,
    )
