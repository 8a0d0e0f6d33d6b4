"""Change rows that count already: labels, names and times of files, lines of the history.

The files that hold such rows are written anew, in turn with everybody who does that to the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingest.database.tables import types_of
from ingest.lake.commit import working
from ingest.lake.files import attach, files_with, read_files, removal_of, unnested, write_file
from ingest.lake.store import Lake
from ingest.lake.transactions import Change, change_in_turn, take_number
from ingest.sql import no_rows

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["add_imports", "put_labels", "update_files"]


def put_labels(lake: Lake, labels: Sequence[tuple[int, str, str]]) -> None:
    """Put labels on runs: run, key, value; a key has one value, the old one goes.

    Raises:
        DatabaseError: the store refuses.
    """
    if not labels:
        return
    rows = [dict(zip(("run_id", "key", "value"), label, strict=True)) for label in labels]
    given = unnested("run_labels", rows)
    _replace(
        lake,
        "run_labels",
        {run for run, _, _ in labels},
        lambda stored: f"FROM {stored} ANTI JOIN ({given}) USING (run_id, key) UNION ALL BY NAME {given}",
    )


def update_files(lake: Lake, files: Sequence[Mapping[str, Any]]) -> None:
    """Record names and versions of unchanged files.

    Args:
        lake: where.
        files: rows of `run_files`, but for content_sha256.

    Raises:
        DatabaseError: the store refuses.
    """
    if not files:
        return
    names = ("file_name", "file_bytes", "mtime_ns", "etag")
    changed = ", ".join(f"if(t.run_id IS NULL, s.{name}, t.{name}) AS {name}" for name in names)
    given = unnested("run_files", files)
    _replace(
        lake,
        "run_files",
        {int(one["run_id"]) for one in files},
        lambda stored: (
            f"SELECT s.* REPLACE ({changed}) FROM {stored} AS s LEFT JOIN ({given}) AS t USING (run_id, role)"
        ),
    )


def add_imports(
    lake: Lake, rows: Sequence[Mapping[str, Any]], rejects: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """Record imports that loaded nothing, those that are not recorded yet.

    Args:
        lake: at head.
        rows: of `imports`, but for the number, oldest first.
        rejects: rows of `rejects`, but for the number, by `import_uuid`.

    Raises:
        DatabaseError: the store refuses.
    """
    if not rows:
        return
    first = take_number(lake)
    numbered = [{**row, "loaded": 0, "import_id": first} for row in rows]
    for row in numbered[1:]:
        row["import_id"] = take_number(lake)
    with working(lake) as (connection, scratch):

        def work_out(table: DeltaTable) -> Change | None:
            attach(connection, lake, "imports", table)
            query = f"FROM ({unnested('imports', numbered)}) ANTI JOIN imports USING (import_uuid)"
            file = write_file(connection, lake, "imports", None, query, scratch)
            return None if file is None else Change([file.added()])

        change_in_turn(lake, "imports", work_out)
        attach(connection, lake, "imports", lake.table("imports"))
        mine = connection.execute("SELECT import_uuid, import_id FROM imports WHERE import_id >= $1", [first])
        of_uuid = {str(uuid): int(number) for uuid, number in mine.fetchall()}
        rejected = [
            {**one, "import_id": of_uuid[row["import_uuid"]]}
            for row in numbered
            if of_uuid.get(row["import_uuid"]) == row["import_id"]
            for one in rejects.get(row["import_uuid"], ())
        ]
        if rejected:
            file = write_file(connection, lake, "rejects", None, unnested("rejects", rejected), scratch)
            assert file is not None
            change = Change([file.added()])
            change_in_turn(lake, "rejects", lambda table: change)


def _replace(lake: Lake, name: str, runs: set[int], query: Any) -> None:
    """Put the rows of a query in the place of the files that may have rows of some runs."""
    with working(lake) as (connection, scratch):

        def work_out(table: DeltaTable) -> Change:
            paths = files_with(table, runs)
            stored = read_files(lake, name, paths, scratch) if paths else f"({no_rows(types_of(name))})"
            file = write_file(connection, lake, name, None, query(stored), scratch)
            return Change([] if file is None else [file.added()], removal_of(table, paths))

        change_in_turn(lake, name, work_out)
