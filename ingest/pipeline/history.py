"""The history of imports: loading a journal with its row in `imports`, and reading the history back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

import duckdb

from ingest.database.import_lock import lock_holder
from ingest.dump.sets import Member
from ingest.lake.reading import open_to_read
from ingest.pipeline.journal import ImportRecord, Journal, count_staged, read_folded, read_journals
from ingest.pipeline.load import load_parts
from ingest.sql import one_number, transaction

LOAD_ROWS: Final = 4_000_000
"""Rows of one transaction; a transaction of this size commits in a few seconds."""


_RECORD_TYPE: Final = json.dumps(
    [
        {
            **dict.fromkeys(("started_at", "finished_at"), "TIMESTAMP"),
            **dict.fromkeys(("tool_version", "host", "status", "import_uuid"), "VARCHAR"),
            **dict.fromkeys(("found", "unchanged", "rejected", "unfinished"), "BIGINT"),
            "sources": ["VARCHAR"],
            "rejects": [
                {
                    **dict.fromkeys(("file", "section", "kind", "message", "text"), "VARCHAR"),
                    **dict.fromkeys(("line", "byte_offset"), "BIGINT"),
                }
            ],
        }
    ]
)


class LoadedJournal(NamedTuple):
    """The number that an import got, and how many of its runs this load put in."""

    import_id: int
    runs: int


def load_journal(
    connection: duckdb.DuckDBPyConnection,
    journal: Journal,
    report: Callable[[int, int], None] = lambda done, total: None,
    *,
    parts: Sequence[str] | None = None,
    is_whole: bool = True,
) -> LoadedJournal:
    """Load the parts of a journal within transactions of their own, with its row in `imports`.

    A load that was cut off is gone on with: the import keeps its number, and what it has is not loaded
    twice. Its row says `interrupted` until the last transaction, so that a kill leaves the truth.

    Args:
        connection: opened for writing, without a transaction.
        journal: of an import that has ended.
        report: called with (transactions done, all).
        parts: those to load, all by default.
        is_whole: nothing more will come of this journal: its row in `imports` is completed.
    """
    record = journal.record
    groups = list(_groups(connection, journal.parts if parts is None else parts))
    import_id = 0
    runs = 0
    for done, group in enumerate(groups, 1):
        with transaction(connection):
            if done == 1:
                import_id = _find_import(connection, record) or _begin_import(connection, record)
            runs += load_parts(
                connection, group, import_id, labelling=record.labelling, replace=record.replace
            )
            _count_loaded(connection, import_id)
            if is_whole and done == len(groups):
                _end_import(connection, import_id, record)
        report(done, len(groups))
    return LoadedJournal(import_id, runs)


def load_records(connection: duckdb.DuckDBPyConnection, records: Sequence[ImportRecord]) -> None:
    """Record imports without parts, however many, that are not recorded yet.

    Args:
        connection: opened for writing, without a transaction.
        records: oldest first.
    """
    if not records:
        return
    given = {record.import_uuid: asdict(record) for record in records}
    with transaction(connection):
        connection.execute(
            "CREATE TEMP TABLE given_imports AS SELECT one.*"
            f" FROM (SELECT unnest(from_json($1, '{_RECORD_TYPE}')) AS one)",
            [json.dumps(list(given.values()))],
        )
        connection.execute("DELETE FROM given_imports WHERE import_uuid IN (SELECT import_uuid FROM imports)")
        connection.execute(
            "INSERT INTO imports BY NAME SELECT * EXCLUDE (rejects), 0 AS loaded,"
            " (SELECT coalesce(max(import_id), 0) FROM imports) + row_number() OVER () AS import_id"
            " FROM given_imports"
        )
        connection.execute(
            "INSERT INTO rejects BY NAME SELECT import_id, one.*"
            " FROM (SELECT import_id, unnest(rejects) AS one"
            "  FROM given_imports JOIN imports USING (import_uuid))"
        )
        connection.execute("DROP TABLE given_imports")


def close_unfinished_imports(connection: duckdb.DuckDBPyConnection) -> None:
    """Mark imports that an older xbuf left as running: nobody runs while the caller holds the import lock."""
    connection.execute("UPDATE imports SET status = 'interrupted' WHERE status = 'running'")


def last_rejects(connection: duckdb.DuckDBPyConnection) -> frozenset[tuple[str, int | None, str]]:
    """Return (file, line, kind) of everything that the last recorded import rejected."""
    rows = connection.execute(
        "SELECT file, line, kind FROM rejects WHERE import_id = (SELECT max(import_id) FROM imports)"
    ).fetchall()
    return frozenset((file, line, kind) for file, line, kind in rows)


def update_times(connection: duckdb.DuckDBPyConnection, touched: Sequence[tuple[int, Member]]) -> None:
    """Record names and versions of unchanged files: (run, file)."""
    if not touched:
        return
    import pyarrow as pa  # 110 ms

    runs, files = zip(*touched, strict=True)
    columns = zip(*files, strict=True)
    names = ("run_id", "role", "file_name", "file_bytes", "mtime_ns", "etag")
    types = (pa.int64(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string())
    table = pa.table(list(map(pa.array, (runs, *columns), types)), names=names)
    connection.register("touched_files", table)
    try:
        connection.execute(
            "UPDATE run_files SET file_name = t.file_name, file_bytes = t.file_bytes, mtime_ns = t.mtime_ns,"
            " etag = t.etag"
            " FROM touched_files AS t WHERE (run_files.run_id, run_files.role) = (t.run_id, t.role)"
        )
    finally:
        connection.unregister("touched_files")


def _groups(connection: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> list[list[str]]:
    """Put parts together up to the rows of one transaction; one empty group when there are none."""
    if len(parts) < 2:
        return [list(parts)]  # without a look at how many rows they have: 5 ms of the import of one dump
    groups: list[list[str]] = [[]]
    rows = 0
    for part in parts:
        files = [f"{part}/{name}" for name in os.listdir(part) if name.endswith(".parquet")]
        size = one_number(
            connection, "SELECT sum(num_rows)::BIGINT FROM parquet_file_metadata($files)", {"files": files}
        )
        if groups[-1] and rows + size > LOAD_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(part)
        rows += size
    return groups


def _find_import(connection: duckdb.DuckDBPyConnection, record: ImportRecord) -> int:
    """Return the number of an import whose load was cut off; 0 for none."""
    return one_number(
        connection, "SELECT import_id FROM imports WHERE import_uuid = $1", [record.import_uuid]
    )


def _begin_import(connection: duckdb.DuckDBPyConnection, record: ImportRecord) -> int:
    return one_number(
        connection,
        "INSERT INTO imports BY NAME SELECT"
        " (SELECT coalesce(max(import_id), 0) + 1 FROM imports) AS import_id,"
        " $started_at::TIMESTAMP AS started_at, 'interrupted' AS status, $version AS tool_version,"
        " $host AS host, $sources AS sources, 0 AS loaded, $uuid AS import_uuid RETURNING import_id",
        {
            "started_at": record.started_at,
            "version": record.tool_version,
            "host": record.host,
            "sources": list(record.sources),
            "uuid": record.import_uuid,
        },
    )


def _count_loaded(connection: duckdb.DuckDBPyConnection, import_id: int) -> None:
    """Keep the count right after every transaction: a killed load may not be gone on with."""
    connection.execute(
        "UPDATE imports SET loaded = (SELECT count(*) FROM runs WHERE import_id = $1) WHERE import_id = $1",
        [import_id],
    )


def _end_import(connection: duckdb.DuckDBPyConnection, import_id: int, record: ImportRecord) -> None:
    """Complete the row; one that is complete stays, where a kill came between commit and tidying up."""
    connection.execute(
        "UPDATE imports SET status = $status, finished_at = $finished_at::TIMESTAMP, found = $found,"
        " unchanged = $unchanged, rejected = $rejected, unfinished = $unfinished"
        " WHERE import_id = $import_id AND finished_at IS NULL",
        {
            "status": record.status,
            "finished_at": record.finished_at,
            "found": record.found,
            "unchanged": record.unchanged,
            "rejected": record.rejected,
            "unfinished": record.unfinished,
            "import_id": import_id,
        },
    )
    if connection.execute("FROM rejects WHERE import_id = $1 LIMIT 1", [import_id]).fetchone():
        return
    for one in record.rejects:
        connection.execute(
            "INSERT INTO rejects BY NAME SELECT $1 AS import_id, $2 AS file, $3 AS line, $4 AS byte_offset,"
            " $5 AS section, $6 AS kind, $7 AS message, $8 AS text",
            [import_id, one.file, one.line, one.byte_offset, one.section, one.kind, one.message, one.text],
        )


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One import, as `imports` or the staging folder has it; moments are UTC.

    Attributes:
        import_id: None while only the staging folder knows of it: the next load takes it along.
        status: ok, rejects, interrupted, failed or deferred as in `imports`; running.
        waiting: dump sets read and not loaded yet.
    """

    import_id: int | None
    started_at: datetime
    finished_at: datetime | None
    status: str
    found: int | None
    loaded: int | None
    unchanged: int | None
    rejected: int | None
    unfinished: int | None
    tool_version: str
    host: str | None
    sources: tuple[str, ...] = ()
    waiting: int = 0

    @property
    def went_well(self) -> bool:
        """Whether everything that it found is in the database, but for dumps that were rejected."""
        return self.status in ("ok", "rejects")


def read_history(database: str) -> list[HistoryEntry]:
    """Return every import, the newest first.

    Raises:
        DatabaseError: as `open_to_read`.
    """
    with open_to_read(database) as connection:
        rows = connection.execute(
            "SELECT import_id, started_at, finished_at, status, found, loaded, unchanged, rejected,"
            " unfinished, tool_version, host, sources, import_uuid FROM imports"
            " ORDER BY started_at, import_id"
        ).fetchall()
    entries = [replace(HistoryEntry(*row[:-1]), sources=tuple(row[-2] or ())) for row in rows]
    recorded = {row[-1] for row in rows}
    journals = read_journals(database)
    for record in read_folded(database):
        if record.import_uuid not in recorded:
            recorded.add(record.import_uuid)
            entries.append(_waiting(record, 0, running=False))
    holder = lock_holder(database) if journals else None
    for journal in journals:
        staged = count_staged(journal.parts)
        entry = _waiting(
            journal.record, staged, running=holder is not None and holder.pid == journal.record.pid
        )
        if journal.record.import_uuid not in recorded:
            entries.append(entry)
    # Of imports at one moment the later one comes last, and so first in reverse.
    return sorted(reversed(entries), key=lambda entry: entry.started_at, reverse=True)


def _waiting(record: ImportRecord, staged: int, *, running: bool) -> HistoryEntry:
    """Return an import that is not in `imports` yet."""
    return HistoryEntry(
        None,
        datetime.fromisoformat(record.started_at),
        None if record.finished_at is None else datetime.fromisoformat(record.finished_at),
        "running" if running else record.status,
        record.found,
        0,
        record.unchanged,
        record.rejected,
        record.unfinished,
        record.tool_version,
        record.host,
        record.sources,
        staged,
    )
