"""A record of what the database holds, for an import that finds the database in a writer's hands.

    xbuf.duckdb.staging/
        manifest.duckdb           tables `runs` and `run_files`, as `ingest.pipeline.recorded` asks for them
        manifest-noted.parquet    what the last write put in, until it is taken into the other

A write notes its own rows only and takes them in after it: both cost what the write costs,
whatever the size of the database. What an import skips by a record that is out of date, the next one finds:
it asks the database. A record that is damaged is dropped, and the next write makes it anew.
"""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import duckdb

from ingest.database.file import CONFIG
from ingest.database.private import is_own_folder, make_private_folder
from ingest.database.refusals import explain
from ingest.sql import literal, parquet

_FILE: Final = "manifest.duckdb"
_NOTED: Final = "manifest-noted.parquet"
_COLUMNS: Final = (
    "run_id, dump_dir, stem, role, file_name, f.file_bytes AS file_bytes, mtime_ns, etag,"
    " f.content_sha256 AS content_sha256"
)
_QUICK: Final[dict[str, str | bool | int | float | list[str]]] = {
    **CONFIG,
    "threads": 1,
    # The commit writes the file, without a log of it first.
    "checkpoint_threshold": "0B",
    "auto_checkpoint_skip_wal_threshold": 0,
}
_TABLES: Final = (
    "CREATE TABLE IF NOT EXISTS runs (run_id BIGINT, dump_dir VARCHAR, stem VARCHAR)",
    "CREATE TABLE IF NOT EXISTS run_files (run_id BIGINT, role VARCHAR, file_name VARCHAR,"
    " file_bytes BIGINT, mtime_ns BIGINT, etag VARCHAR, content_sha256 VARCHAR)",
)


def has_manifest(staging: Path) -> bool:
    """Return whether there is a record; a kill may have come before that."""
    return (staging / _FILE).exists()


def note_runs(connection: duckdb.DuckDBPyConnection, staging: Path, chosen: str = "true") -> None:
    """Note the runs that a condition chooses, all of them by default; `take_in` makes it count.

    Raises:
        DatabaseError: there is no private folder to write to.
        duckdb.Error: it cannot be written.
    """
    make_private_folder(staging)
    # By DuckDB, which is there: the import of Arrow takes 0.1 s.
    connection.execute(
        f"COPY (SELECT {_COLUMNS} FROM runs JOIN run_files AS f USING (run_id) WHERE {chosen}"
        f" ORDER BY run_id) TO {literal(staging / _NOTED)} (FORMAT parquet, COMPRESSION zstd)"
    )


def take_in(staging: Path, *, anew: bool = False) -> None:
    """Take what was noted into the record, after the write.

    Args:
        staging: the staging folder.
        anew: all runs were noted: they make a new record.

    Raises:
        DatabaseError: the folder cannot be written.
    """
    try:
        if anew:
            new = staging / f"new-{_FILE}"
            new.unlink(missing_ok=True)
            _insert(new, staging / _NOTED)
            _remove(staging)
            new.replace(staging / _FILE)
        else:
            _insert(staging / _FILE, staging / _NOTED)
        (staging / _NOTED).unlink()
    except duckdb.Error:
        _remove(staging)  # damaged: the next write finds none, and notes all
    except OSError as error:
        raise explain(str(staging), error) from error


def open_manifest(staging: Path) -> duckdb.DuckDBPyConnection | None:
    """Open the record to be read; None when there is none, or a damaged one: then nothing is known."""
    if not is_own_folder(staging) or not (staging / _FILE).exists():
        return None
    with suppress(duckdb.Error):
        return duckdb.connect(str(staging / _FILE), read_only=True, config=CONFIG)
    return None


def _insert(record: Path, noted: Path) -> None:
    """Put the rows of a file in place of those that its runs have."""
    with closing(duckdb.connect(str(record), config=_QUICK)) as connection:
        # One script, and the file read once: 35 ms of CPU for a run, 55 statement by statement.
        connection.execute(
            ";".join(
                (
                    *_TABLES,
                    "BEGIN",
                    f"CREATE TEMP TABLE noted AS FROM {parquet([noted])}",
                    "DELETE FROM runs WHERE run_id IN (SELECT run_id FROM noted)",
                    "DELETE FROM run_files WHERE run_id IN (SELECT run_id FROM noted)",
                    "INSERT INTO runs SELECT DISTINCT run_id, dump_dir, stem FROM noted ORDER BY run_id",
                    "INSERT INTO run_files SELECT * EXCLUDE (dump_dir, stem) FROM noted ORDER BY run_id",
                    "COMMIT",
                )
            )
        )


def _remove(staging: Path) -> None:
    for name in (_FILE, f"{_FILE}.wal"):
        (staging / name).unlink(missing_ok=True)
