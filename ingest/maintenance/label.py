"""Put labels on runs that are loaded, and take them off."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ingest.database.connect import open_database
from ingest.database.import_lock import OnWait
from ingest.display import display
from ingest.maintenance.exclusive import change_database

if TYPE_CHECKING:
    import duckdb

__all__ = ["label_dumps", "label_runs"]

Wanted = set[tuple[int, str, str]]
"""Labels to be there: run, key and value."""

_PLACES: Final = """
SELECT max(r.run_id), r.dump_dir || '/' || r.stem
FROM runs AS r
LEFT JOIN run_files AS f USING (run_id)
WHERE r.dump_dir = $path OR starts_with(r.dump_dir, $below) OR r.dump_dir || '/' || f.file_name = $path
GROUP BY r.dump_dir, r.stem
"""


def label_runs(
    database: str,
    runs: Sequence[int],
    labels: Iterable[tuple[str, str]],
    removed: Sequence[str] = (),
    *,
    wait_seconds: float = 0.0,
    on_wait: OnWait | None = None,
) -> int:
    """Give runs these labels, in one transaction; a key has one value, the old one goes.

    Args:
        removed: keys to take off.

    Returns:
        How many labels were put on, changed or taken off.

    Raises:
        DatabaseError: as `change_database`.
    """
    wanted = {(run, key, value) for run in runs for key, value in dict(labels).items()}
    with change_database(database, wait_seconds=wait_seconds, on_wait=on_wait) as writer:
        connection = writer.connection
        connection.begin()
        missing = wanted - _there(connection)
        _put(connection, missing)
        gone = connection.execute(
            "DELETE FROM run_labels WHERE run_id IN (SELECT unnest($runs)) AND key IN (SELECT unnest($keys))",
            {"runs": list(runs), "keys": list(removed)},
        ).fetchone()
        connection.commit()
    return len(missing) + (int(gone[0]) if gone else 0)


def label_dumps(
    database: str,
    paths: Iterable[str],
    labels: Iterable[tuple[str, str]] = (),
    pattern: re.Pattern[str] | None = None,
    *,
    wait_seconds: float = 0.0,
    on_wait: OnWait | None = None,
) -> int:
    """Give the newest run of every dump below `paths` these labels; write only where one is missing.

    Args:
        paths: directories and files of dumps.
        pattern: searched in the directory and stem of each dump; what its named groups match are labels too.

    Returns:
        How many labels were put on or changed.

    Raises:
        DatabaseError: as `open_database` and `change_database`.
    """
    names, fixed = list(paths), dict(labels)
    with open_database(database, read_only=True, wait_seconds=wait_seconds) as connection:
        if not _wanted(connection, names, fixed, pattern) - _there(connection):
            return 0
    with change_database(database, wait_seconds=wait_seconds, on_wait=on_wait) as writer:
        writer.connection.begin()
        missing = _wanted(writer.connection, names, fixed, pattern) - _there(writer.connection)
        _put(writer.connection, missing)
        writer.connection.commit()
    return len(missing)


def _wanted(
    connection: duckdb.DuckDBPyConnection,
    paths: Sequence[str],
    labels: dict[str, str],
    pattern: re.Pattern[str] | None,
) -> Wanted:
    wanted: Wanted = set()
    for name in paths:
        path = display(os.path.realpath(name))
        values = {"path": path, "below": path.rstrip("/") + "/"}
        for run, place in connection.execute(_PLACES, values).fetchall():
            found = pattern.search(place) if pattern else None
            groups = {key: value for key, value in found.groupdict().items() if value} if found else {}
            wanted |= {(run, key, value) for key, value in {**groups, **labels}.items()}
    return wanted


def _there(connection: duckdb.DuckDBPyConnection) -> Wanted:
    return set(connection.execute("SELECT run_id, key, value FROM run_labels").fetchall())


def _put(connection: duckdb.DuckDBPyConnection, labels: Wanted) -> None:
    if labels:
        connection.executemany("INSERT OR REPLACE INTO run_labels VALUES (?, ?, ?)", sorted(labels))
