"""Grow a database to any number of runs by copying its rows within DuckDB, with files on disk to match.

An import of 500,000 dumps would take an hour; this takes two minutes and gives the same kind of file: runs in
order, 500 to a directory, each content with a SHA-256 of its own. Of the dumps only what a search looks
at is made: a name, a size and a time.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import duckdb

from ingest.database.tables import RUN_TABLES
from ingest.pipeline.load import SETTINGS

A_DIRECTORY: Final = 500
"""Runs to a directory."""
MTIME_NS: Final = 1_700_000_000 * 10**9
CONTENT: Final = b"BufferAssignment:\n"
"""What each file holds: enough to differ from other files."""
_AT_ONCE: Final = 25_000
"""Runs of one transaction."""


def grow(database: Path, folder: Path, runs: int) -> None:
    """Add copies of the runs of a database until it has `runs`; they are said to lie in `folder`.

    Args:
        database: with some runs of one file each.
        folder: where `make_files` puts the files.
        runs: how many to reach.
    """
    with duckdb.connect(str(database), config={"threads": 1}) as connection:
        for setting in SETTINGS:
            connection.execute(f"SET {setting}")
        first = connection.execute("SELECT count(*) FROM runs").fetchone()
        assert first is not None
        count = int(first[0])
        done = count
        while done < runs:
            more = min(_AT_ONCE, runs - done)
            _copy_rows(connection, str(folder), count, done, more)
            done += more


def make_files(folder: Path, first: int, last: int) -> None:
    """Make the files of the runs from `first` to `last`, long finished."""
    for run in range(first, last + 1):
        directory = folder / f"night{run // A_DIRECTORY:05d}"
        if run == first or run % A_DIRECTORY == 0:
            directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"module_{run:07d}.jit_step.cpu_after_optimizations-buffer-assignment.txt"
        path.write_bytes(CONTENT)
        os.utime(path, ns=(MTIME_NS, MTIME_NS))


def _copy_rows(
    connection: duckdb.DuckDBPyConnection, folder: str, originals: int, done: int, more: int
) -> None:
    """Add `more` runs after the first `done`; each is a copy of one of the originals, in turn."""
    stem = "printf('module_%07d.jit_step.cpu_after_optimizations', m.run_id)"
    sha256 = "sha256(m.run_id::VARCHAR)"
    own = {
        "runs": {
            "dump_dir": f"printf('%s/night%05d', $folder, m.run_id // {A_DIRECTORY})",
            "stem": stem,
            "content_sha256": sha256,
        },
        "run_files": {
            "file_name": f"{stem} || '-buffer-assignment.txt'",
            "file_bytes": str(len(CONTENT)),
            "mtime_ns": str(MTIME_NS),
            "content_sha256": sha256,
        },
    }
    connection.begin()
    for table in (*RUN_TABLES, "runs"):
        columns = {"run_id": "m.run_id", **own.get(table, {})}
        connection.execute(
            f'INSERT INTO "{table}" BY NAME SELECT t.* EXCLUDE ({", ".join(columns)}),'
            f" {', '.join(f'{text} AS {name}' for name, text in columns.items())}"
            " FROM (SELECT $done + n AS run_id, 1 + ($done + n - 1) % $originals AS original"
            "  FROM range(1, $more + 1) AS numbers(n)) AS m"
            f' JOIN (FROM "{table}" WHERE run_id <= $originals) AS t ON t.run_id = m.original'
            " ORDER BY m.run_id",
            {"done": done, "more": more, "originals": originals}
            | ({"folder": folder} if table == "runs" else {}),
        )
    connection.commit()
