"""Stage dump sets and load them into a new database, as an import does, and count what arrived."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import duckdb

from ingest.database.connect import open_database
from ingest.database.tables import RUN_TABLES
from ingest.dump.sets import DumpSet, Member
from ingest.pipeline.load import load_parts
from ingest.sql import one_number
from ingest.staging.stage import stage_sets
from ingest.staging.task import Task

ENDINGS = {
    "primary": "-buffer-assignment.txt",
    "values": "-buffer-assignment-values.txt",
    "live_range": "-live-range.txt",
    "hlo": ".txt",
    "proto": ".hlo.pb",
}
"""How the names of members end, by role."""


def as_task(run_no: int, folder: Path, stem: str, roles: Sequence[str]) -> Task:
    """Return the task of staging a set that lies in `folder`."""
    members = []
    for role in ENDINGS:
        if role in roles:
            path = folder / f"{stem}{ENDINGS[role]}"
            status = path.stat()
            members.append(Member(role, path.name, status.st_size, status.st_mtime_ns))
    return Task(run_no, DumpSet(str(folder), stem, tuple(members)))


@cache
def _template() -> Path:
    """Return an empty database; to make one takes longer than to load a hundred dumps."""
    folder = Path(tempfile.mkdtemp(prefix="xbuf-fuzz-database-"))
    atexit.register(shutil.rmtree, folder)
    open_database(str(folder / "empty.duckdb")).close()
    return folder / "empty.duckdb"


def load_together(sets: Sequence[Mapping[str, bytes]], folder: Path) -> None:
    """Stage sets in one call and load them into a database in memory-like storage.

    Raises:
        AssertionError: a set that parses was rejected, or rows went missing.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(_template(), folder / "x.duckdb")
    tasks = []
    for number, texts in enumerate(sets):
        stem = f"module_{number:04d}.f.cpu_after_optimizations"
        for role, text in texts.items():
            path = folder / f"{stem}{ENDINGS[role]}"
            path.write_bytes(text)
            os.utime(path, (1_700_000_000, 1_700_000_000))
        tasks.append(as_task(number, folder, stem, tuple(texts)))
    staged = stage_sets(tasks, str(folder / "part-0"))
    assert not staged.rejected, staged.rejected[0]
    assert staged.loaded == len(sets)
    if staged.part is None:
        return
    with open_database(str(folder / "x.duckdb")) as connection:
        connection.begin()
        connection.execute(
            "INSERT INTO imports BY NAME SELECT 1 AS import_id, now()::TIMESTAMP AS started_at,"
            " 'ok' AS status, '0' AS tool_version"
        )
        loaded = load_parts(connection, [staged.part], 1)
        connection.commit()
        tables = [f'SELECT run_id FROM "{table}"' for table in (*RUN_TABLES, "runs") if table != "run_files"]
        rows = one_number(connection, f"SELECT count(*) FROM ({' UNION ALL '.join(tables)})")
        assert (loaded, rows) == (len(sets), staged.rows)
        _read_everything(connection)


def _read_everything(connection: duckdb.DuckDBPyConnection) -> None:
    """Read every column of every table; text that is no UTF-8 would fail here."""
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        connection.execute(f'SELECT * FROM "{table}"').fetchall()
