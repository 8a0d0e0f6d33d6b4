"""Load staged parts into the database, in one transaction."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import duckdb

RUN_TABLES: Final = (
    "allocations",
    "values",
    "positions",
    "uses",
    "ranges",
    "schedule",
    "peak_breakdown",
    "color_reuse",
    "notices",
    "run_files",
)
"""Tables whose rows belong to a run, besides `runs` and `run_labels`."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load put into the database."""

    runs: int
    rows: int
    by_table: dict[str, int] = field(default_factory=dict)


def load_parts(
    connection: duckdb.DuckDBPyConnection,
    parts: Sequence[str],
    import_id: int,
    *,
    labels: Sequence[tuple[str, str]] = (),
    replace: bool = False,
) -> Loaded:
    """Load parts within the caller's transaction; the rows of `runs` come last.

    A staged run that the database holds already (same place, same content of every file) is passed over, so
    that loading a part twice is harmless. A run with the primary file of one that the database holds and
    with more beside it completes that run: it takes its place and its number.

    Args:
        connection: opened read-write, in a transaction.
        parts: complete part directories.
        import_id: the import that the runs belong to.
        labels: put on every run.
        replace: delete the older runs of the same places.
    """
    if not parts:
        return Loaded(0, 0)
    # By identity, not by the numbers that the parts were staged with: others may have changed the database.
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE staged_runs AS
        WITH staged AS (
            SELECT * EXCLUDE (completes) FROM read_parquet($runs)
            QUALIFY row_number() OVER (PARTITION BY dump_dir, stem, content_sha256 ORDER BY run_no DESC) = 1
        ),
        held AS (
            SELECT s.run_no, max(r.run_id) AS run_id
            FROM staged AS s JOIN runs AS r USING (dump_dir, stem, content_sha256)
            GROUP BY s.run_no
        ),
        completed AS (
            SELECT DISTINCT h.run_no, h.run_id
            FROM held AS h JOIN read_parquet($files) AS f USING (run_no)
            ANTI JOIN run_files AS m
                ON m.run_id = h.run_id AND m.role = f.role
                AND m.content_sha256 IS NOT DISTINCT FROM f.content_sha256
        )
        SELECT
            s.*,
            c.run_id IS NOT NULL AS completes,
            coalesce(
                c.run_id,
                (SELECT coalesce(max(run_id), 0) FROM runs)
                    + row_number() OVER (PARTITION BY c.run_id IS NULL ORDER BY s.run_no)
            ) AS run_id
        FROM staged AS s LEFT JOIN completed AS c USING (run_no)
        WHERE c.run_id IS NOT NULL OR s.run_no NOT IN (SELECT run_no FROM held)
        """,
        {"runs": _files(parts, "runs"), "files": _files(parts, "run_files")},
    )
    delete_runs(connection, "SELECT run_id FROM staged_runs WHERE completes", keep_labels=True)
    if replace:
        delete_runs(
            connection,
            "SELECT r.run_id FROM runs AS r JOIN staged_runs AS s USING (dump_dir, stem)"
            " WHERE r.run_id <> s.run_id",
        )
    by_table: dict[str, int] = {}
    for table in RUN_TABLES:
        files = _files(parts, table)
        if files:
            by_table[table] = _count(
                connection.execute(
                    f'INSERT INTO "{table}" BY NAME SELECT m.run_id, p.* EXCLUDE (run_no)'
                    " FROM read_parquet($files) AS p JOIN (SELECT run_no, run_id FROM staged_runs) AS m"
                    " USING (run_no)",
                    {"files": files},
                )
            )
    for key, value in dict(labels).items():
        connection.execute(
            "INSERT OR REPLACE INTO run_labels SELECT run_id, $key, $value FROM staged_runs",
            {"key": key, "value": value},
        )
    by_table["runs"] = _count(
        connection.execute(
            "INSERT INTO runs BY NAME SELECT * EXCLUDE (run_no, completes), $import_id AS import_id,"
            " now()::TIMESTAMPTZ AT TIME ZONE 'UTC' AS ingested_at FROM staged_runs ORDER BY run_id",
            {"import_id": import_id},
        )
    )
    connection.execute("DROP TABLE staged_runs")
    return Loaded(by_table["runs"], sum(by_table.values()), by_table)


def delete_runs(connection: duckdb.DuckDBPyConnection, run_ids: str, *, keep_labels: bool = False) -> int:
    """Delete the runs that the query `run_ids` selects, with all their rows; return how many."""
    chosen = [row[0] for row in connection.execute(run_ids).fetchall()]
    if chosen:
        for table in (*RUN_TABLES, *(() if keep_labels else ("run_labels",)), "runs"):
            connection.execute(
                f'DELETE FROM "{table}" WHERE run_id IN (SELECT unnest($ids))', {"ids": chosen}
            )
    return len(chosen)


def _files(parts: Sequence[str], table: str) -> list[str]:
    """Return the Parquet files of a table: NAME.parquet, or NAME-1.parquet, ... of a large dump."""
    found: list[str] = []
    for part in parts:
        names = [n for n in os.listdir(part) if n == f"{table}.parquet" or n.startswith(f"{table}-")]
        found += [f"{part}/{name}" for name in sorted(names)]
    return found


def _count(cursor: duckdb.DuckDBPyConnection) -> int:
    row = cursor.fetchone()
    return int(row[0]) if row else 0
