"""Put labels on runs that are loaded, and take them off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingest.database.import_lock import OnWait
from ingest.maintenance.exclusive import change_database
from ingest.pipeline.labels import put_labels
from ingest.source.kinds import is_lake
from ingest.sql import one_number, transaction


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
        database: a file, or `lake:` with a folder or URL.
        removed: keys to take off.

    Returns:
        How many labels were put on, changed or taken off.

    Raises:
        DatabaseError: as `change_database`; also when the store of a lake refuses.
    """
    if is_lake(database):
        return _label_in_lake(database, runs, labels, removed)
    wanted = {(run, key, value) for run in runs for key, value in dict(labels).items()}
    with change_database(database, wait_seconds=wait_seconds, on_wait=on_wait) as writer:
        connection = writer.connection
        with transaction(connection):
            there = connection.execute(
                "SELECT run_id, key, value FROM run_labels WHERE run_id IN (SELECT unnest($1))", [list(runs)]
            )
            missing = wanted - set(there.fetchall())
            put_labels(connection, missing)
            gone = one_number(
                connection,
                "DELETE FROM run_labels"
                " WHERE run_id IN (SELECT unnest($runs)) AND key IN (SELECT unnest($keys))",
                {"runs": list(runs), "keys": list(removed)},
            )
    return len(missing) + gone


def _label_in_lake(
    name: str, runs: Sequence[int], labels: Iterable[tuple[str, str]], removed: Sequence[str]
) -> int:
    from ingest.lake.create import open_imports
    from ingest.lake.store import parse_lake
    from ingest.lake.update import put_labels

    lake = parse_lake(name)
    open_imports(lake)
    of_each: dict[str, str | None] = {**dict(labels), **dict.fromkeys(removed)}
    return put_labels(lake, {(run, key): value for run in runs for key, value in of_each.items()})
