"""Load staged parts into a lake, as one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ingest.database.tables import RUN_TABLES, staged_types
from ingest.lake.batch import Batch, publish
from ingest.lake.commit import complete, match_in_lake, working
from ingest.lake.files import DataFile, attach, unnested, write_file
from ingest.lake.layout import RUNS_A_BATCH
from ingest.lake.store import Lake
from ingest.lake.transactions import take_number
from ingest.sql import no_rows, one_number, parquet
from ingest.staging.parts import files_of

if TYPE_CHECKING:
    import duckdb


class LoadedBatch(NamedTuple):
    """What a load did: the number of the import, and how many runs are visible that were not before."""

    import_id: int
    runs: int


def load_batch(
    lake: Lake,
    parts: Sequence[str],
    import_row: Mapping[str, Any],
    *,
    labels_of: Callable[[str, str], Mapping[str, str]],
    rejects: Sequence[Mapping[str, Any]] = (),
    replace: bool = False,
) -> LoadedBatch:
    """Load parts with at most `RUNS_A_BATCH` runs; those that the lake holds are passed over.

    Args:
        lake: at head.
        parts: complete part directories.
        import_row: what `imports` says; without import_id the import gets the number of this batch.
        labels_of: gives the labels of a run by directory and stem.
        rejects: rows of `rejects`, but for import_id.
        replace: delete the older runs of the same places.

    Raises:
        DatabaseError: the store refuses, or the lake is of another revision.
    """
    with working(lake) as (connection, scratch):
        _find_new(connection, lake, parts)
        number = take_number(lake)
        first = number * RUNS_A_BATCH
        import_id = import_row.get("import_id") or number
        connection.execute(
            "CREATE TEMP TABLE numbered AS"
            f" SELECT *, {first} + row_number() OVER (ORDER BY run_no) - 1 AS run_id FROM staged_runs"
        )
        runs, files = _write_runs(connection, lake, number, parts, import_id, scratch)
        labels = [
            {"run_id": run, "key": key, "value": value}
            for run, *place in connection.execute("SELECT run_id, dump_dir, stem FROM numbered").fetchall()
            for key, value in labels_of(*place).items()
        ]
        of_import = {
            "run_labels": labels,
            "rejects": [{**one, "import_id": import_id} for one in rejects],
        }
        for name, rows in of_import.items():
            file = write_file(connection, lake, name, number, unnested(name, rows), scratch)
            if file is not None:
                files[name] = file
    batch = Batch(number, {**import_row, "import_id": import_id}, runs, files, replace)
    publish(lake, batch)
    complete(lake, batch)
    return LoadedBatch(import_id, _visible(lake, first) if runs else 0)


def _find_new(connection: duckdb.DuckDBPyConnection, lake: Lake, parts: Sequence[str]) -> None:
    """Make `staged_runs`: the runs of parts that the lake does not hold yet."""
    files = files_of(parts, "runs")
    if not files:
        connection.execute(f"CREATE TEMP TABLE staged_runs AS {no_rows(staged_types('runs'))}")
        return
    connection.execute(
        f"CREATE TEMP TABLE staged_runs AS FROM {parquet(files)}"
        " QUALIFY row_number() OVER (PARTITION BY dump_dir, stem, content_sha256 ORDER BY run_no DESC) = 1"
    )
    connection.execute(
        "CREATE TEMP VIEW given_places AS SELECT run_no AS run_id, dump_dir, stem FROM staged_runs;"
        " CREATE TEMP VIEW given_members AS SELECT run_no AS run_id, role, content_sha256"
        f" FROM {parquet(files_of(parts, 'run_files'))}"
    )
    match_in_lake(connection, lake, lake.table("runs"), "given_places", "given_members")
    connection.execute(
        "DELETE FROM staged_runs WHERE run_no IN (SELECT number FROM matched_runs WHERE is_held)"
    )


def _write_runs(
    connection: duckdb.DuckDBPyConnection,
    lake: Lake,
    number: int,
    parts: Sequence[str],
    import_id: int,
    scratch: Path,
) -> tuple[DataFile | None, dict[str, DataFile]]:
    """Write the files of the runs in `numbered`: of `runs`, and of the other tables by name."""
    runs = write_file(
        connection,
        lake,
        "runs",
        number,
        f"SELECT * EXCLUDE (run_no), {import_id} AS import_id,"
        " now() AT TIME ZONE 'UTC' AS ingested_at FROM numbered ORDER BY run_id",
        scratch,
    )
    files: dict[str, DataFile] = {}
    if runs is None:
        return None, files
    for name in RUN_TABLES:
        staged = files_of(parts, name)
        if not staged:
            continue
        file = write_file(
            connection,
            lake,
            name,
            number,
            f"SELECT m.run_id, p.* EXCLUDE (run_no) FROM {parquet(staged)} AS p"
            " JOIN (SELECT run_no, run_id FROM numbered) AS m USING (run_no)",
            scratch,
        )
        if file is not None:
            files[name] = file
    return runs, files


def _visible(lake: Lake, first: int) -> int:
    with working(lake) as (connection, _):
        attach(connection, lake, "runs")
        visible = "SELECT count(*) FROM runs WHERE run_id >= $1 AND run_id < $1 + $2"
        return one_number(connection, visible, [first, RUNS_A_BATCH])
