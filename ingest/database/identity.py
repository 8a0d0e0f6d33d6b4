"""What makes two runs the same one: their place, and the content of the dump's own text.

The rule stands in `match_runs.sql`, for the load of an import and for that of an export. `holds` is the part
of it that decides, without the database, that a set need not be staged.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def match_runs(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the temporary table `matched_runs` from `given_runs` and `given_files`, and drop these."""
    connection.execute(Path(__file__).with_name("match_runs.sql").read_text(encoding="utf-8"))
    connection.execute("DROP TABLE given_runs")
    connection.execute("DROP TABLE given_files")


def holds(recorded: Mapping[str, str | None], roles: Set[str], sha256: Mapping[str, str]) -> bool:
    """Say whether a run has every file of a set, with this content where it could be read.

    Args:
        recorded: SHA-256 of the run's files by role, None of those that could not be read.
        roles: of the set's files.
        sha256: of those that could be read, by role.
    """
    return roles <= recorded.keys() and all(recorded[role] == one for role, one in sha256.items())
