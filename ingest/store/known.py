"""What the database holds already, so that an import reads only what is new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from ingest.discover import DumpSet


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run with its member files; `files` are (role, file name, size, mtime)."""

    run_id: int
    files: frozenset[tuple[str, str, int, int]]
    sha256: dict[str, str]
    """SHA-256 of each member by role."""


Known = dict[tuple[str, str], list[KnownRun]]
"""Runs by (dump_dir, stem), oldest first."""


def read_known(connection: duckdb.DuckDBPyConnection) -> Known:
    """Read the member files of every run."""
    rows = connection.execute(
        "SELECT run_id, dump_dir, stem, role, file_name, f.file_bytes, mtime_ns, f.content_sha256"
        " FROM run_files AS f JOIN runs USING (run_id) ORDER BY run_id"
    ).fetchall()
    known: Known = {}
    at = 0
    while at < len(rows):
        run_id, directory, stem = rows[at][:3]
        files: list[tuple[str, str, int, int]] = []
        sha256: dict[str, str] = {}
        while at < len(rows) and rows[at][0] == run_id:
            files.append(rows[at][3:7])
            sha256[rows[at][3]] = rows[at][7]
            at += 1
        known.setdefault((directory, stem), []).append(KnownRun(run_id, frozenset(files), sha256))
    return known


def is_unchanged(dump_set: DumpSet, runs: list[KnownRun]) -> bool:
    """Tell whether a run of the same place recorded every member with its size and time."""
    members = {(m.role, m.file_name, m.size, m.mtime_ns) for m in dump_set.members}
    return any(members <= run.files for run in runs)
