"""Load staged parts into the database, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ingest.database.identity import match_runs
from ingest.database.tables import RUN_TABLES, TABLES
from ingest.pipeline.labels import Labelling, put_labels
from ingest.sql import one_number
from ingest.staging.parts import files_of

if TYPE_CHECKING:
    import duckdb

# Below a folder such as `date=2026-11-20` DuckDB would read the folder's name as a column.
_RUNS: Final = "read_parquet($runs, hive_partitioning = false)"
_FILES: Final = "read_parquet($files, hive_partitioning = false)"

MEMORY_MIB: Final = 128
"""DuckDB's memory limit for a load. What does not fit goes to its temporary directory: 100,000 small dumps
(7 million rows) take 8.8 s of CPU time with 256, 128 and 64 MiB alike, and 379, 264 and 189 MiB of memory."""
_VECTOR_ROWS: Final = 2048
_LONG_TEXTS: Final = {
    table: long
    for table in RUN_TABLES
    if (long := [column.name for column in TABLES[table].columns if column.long])
}
"""Columns whose texts can be longer than a few KB, by table."""
SETTINGS: Final = (
    # A second thread makes the load of 278 MB of text slower (1.9 s for 1.6 s) and a third larger on disk,
    # as row groups stay half empty; it takes 250 MB more.
    "threads = 1",
    # A commit that checkpoints at once need not write its rows to the WAL first: 0.7 s for 1.6 s. Until the
    # file's header is replaced, a kill leaves what was there before.
    "checkpoint_threshold = '0B'",
    "auto_checkpoint_skip_wal_threshold = 0",
)
"""Settings of a connection for the time of a load, besides its memory limit."""


def load_parts(
    connection: duckdb.DuckDBPyConnection,
    parts: Sequence[str],
    import_id: int,
    *,
    labelling: Labelling | None = None,
    replace: bool = False,
) -> int:
    """Load parts within the caller's transaction; the rows of `runs` come last.

    A staged run that the database holds already is passed over, so that loading a part twice is harmless; one
    that has more files than a run completes that run: it takes its number and its labels. See
    `ingest.database.identity`.

    Memory stays within bounds, and the commit writes no WAL: see `MEMORY_MIB`. The settings for that stay
    with the connection.

    Args:
        connection: opened read-write, in a transaction.
        parts: complete part directories.
        import_id: the import that the runs belong to.
        labelling: labels to put on the runs; None for none.
        replace: delete the older runs of the same places.

    Returns:
        How many runs the load put in.
    """
    if not parts:
        return 0
    for setting in (*SETTINGS, f"memory_limit = '{_memory_limit(connection, parts)}MiB'"):
        connection.execute(f"SET {setting}")
    _match(connection, parts)
    delete_runs(connection, "SELECT run_id FROM staged_runs WHERE completes", keep_labels=True)
    if replace:
        delete_runs(
            connection,
            "SELECT r.run_id FROM runs AS r JOIN staged_runs AS s USING (dump_dir, stem)"
            " WHERE r.run_id <> s.run_id",
        )
    for table in RUN_TABLES:
        files = files_of(parts, table)
        if files:
            connection.execute(
                f'INSERT INTO "{table}" BY NAME SELECT m.run_id, p.* EXCLUDE (run_no)'
                f" FROM {_FILES} AS p JOIN (SELECT run_no, run_id FROM staged_runs) AS m USING (run_no)",
                {"files": files},
            )
    if labelling:
        staged = connection.execute("SELECT run_id, dump_dir, stem FROM staged_runs").fetchall()
        put_labels(
            connection, [(run, *one) for run, *place in staged for one in labelling.of(*place).items()]
        )
    loaded = one_number(
        connection,
        "INSERT INTO runs BY NAME SELECT * EXCLUDE (run_no, completes), $import_id AS import_id,"
        " now()::TIMESTAMPTZ AT TIME ZONE 'UTC' AS ingested_at FROM staged_runs ORDER BY run_id",
        {"import_id": import_id},
    )
    connection.execute("DROP TABLE staged_runs")
    return loaded


def _match(connection: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> None:
    """Make `staged_runs`: the runs to load with their numbers, and whether they complete one that is there.

    By identity, not by what was known when they were staged: others may have changed the database since.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE staged_runs AS
        FROM {_RUNS}
        QUALIFY row_number() OVER (PARTITION BY dump_dir, stem, content_sha256 ORDER BY run_no DESC) = 1
        """,
        {"runs": files_of(parts, "runs")},
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE given_runs AS SELECT run_no AS number, dump_dir, stem FROM staged_runs"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE given_files AS SELECT run_no AS number, role, content_sha256"
        f" FROM {_FILES}",
        {"files": files_of(parts, "run_files")},
    )
    match_runs(connection)
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE staged_runs AS
        SELECT
            s.*,
            m.run_id IS NOT NULL AS completes,
            coalesce(
                m.run_id,
                (SELECT coalesce(max(run_id), 0) FROM runs)
                    + row_number() OVER (PARTITION BY m.run_id IS NULL ORDER BY s.run_no)
            ) AS run_id
        FROM staged_runs AS s JOIN matched_runs AS m ON m.number = s.run_no
        WHERE NOT m.is_held
        """
    )
    connection.execute("DROP TABLE matched_runs")


def delete_runs(connection: duckdb.DuckDBPyConnection, run_ids: str, *, keep_labels: bool = False) -> int:
    """Delete the runs that the query `run_ids` selects, with all their rows; return how many."""
    chosen = [row[0] for row in connection.execute(run_ids).fetchall()]
    if chosen:
        for table in (*RUN_TABLES, *(() if keep_labels else ("run_labels",)), "runs"):
            connection.execute(
                f'DELETE FROM "{table}" WHERE run_id IN (SELECT unnest($ids))', {"ids": chosen}
            )
    return len(chosen)


def _memory_limit(connection: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> int:
    """Return the memory limit that a load of these parts needs, MiB.

    A checkpoint needs the long strings of a vector of rows in memory at once, and fails for good where the
    limit forbids it. The vectors of the table may be cut otherwise than those counted here: hence twice.
    """
    longest = 0
    for table, columns in _LONG_TEXTS.items():
        if files := files_of(parts, table):
            sums = ", ".join(f"sum(strlen({column})) AS {column}" for column in columns)
            greatest = ", ".join(f"coalesce(max({column}), 0)" for column in columns)
            of_vector = one_number(
                connection,
                f"SELECT greatest({greatest}, 0) FROM (SELECT {sums}"
                f" FROM (SELECT *, row_number() OVER () AS row FROM {_FILES})"
                f" GROUP BY row // {_VECTOR_ROWS})",
                {"files": files},
            )
            longest = max(longest, of_vector)
    return max(MEMORY_MIB, 64 + 2 * (longest >> 20))
