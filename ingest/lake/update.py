"""Change rows that count already: labels, names and times of files, lines of the history; take runs out.

The files that hold such rows are written anew, in turn with everybody who does that to the table. Each
function is one commit to a table, or none: a kill leaves all of it or nothing. Other rows of a run that was
taken out count no more with that; `xbuf lake compact` drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingest.database.tables import types_of
from ingest.lake.commit import without_runs, working
from ingest.lake.files import attach, files_with, read_files, removal_of, unnested, write_file
from ingest.lake.snapshot import listed
from ingest.lake.store import Lake
from ingest.lake.transactions import Change, change_in_turn, take_number
from ingest.sql import no_rows, one_number

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable


def put_labels(lake: Lake, labels: Mapping[tuple[int, str], str | None]) -> int:
    """Put labels on runs, or take them off; return how many labels that changes.

    Args:
        lake: where.
        labels: value by run and key; None takes the label off.

    Raises:
        DatabaseError: the store refuses.
    """
    if not labels:
        return 0
    rows = [{"run_id": run, "key": key, "value": value} for (run, key), value in labels.items()]
    given = unnested("run_labels", rows)
    changed = 0

    def query(connection: duckdb.DuckDBPyConnection, stored: str) -> str | None:
        nonlocal changed
        changed = one_number(
            connection,
            f"SELECT count(*) FROM ({given}) AS g LEFT JOIN {stored} AS s USING (run_id, key)"
            " WHERE g.value IS DISTINCT FROM s.value",
        )
        return (
            f"FROM {stored} ANTI JOIN ({given}) USING (run_id, key)"
            f" UNION ALL BY NAME FROM ({given}) WHERE value IS NOT NULL"
            if changed
            else None
        )

    _rewrite(lake, "run_labels", {run for run, _ in labels}, query)
    return changed


def delete_runs(lake: Lake, choose: Callable[[duckdb.DuckDBPyConnection], Collection[int]]) -> None:
    """Take runs out of `runs`, by which no row of theirs counts any more.

    Args:
        lake: at head.
        choose: returns the numbers of runs, given a connection with the lake's tables as views; called again
            where another process was faster.

    Raises:
        DatabaseError: the store refuses.
    """
    with working(lake) as (connection, scratch):

        def work_out(table: DeltaTable) -> Change | None:
            attach(connection, lake, "runs", table)
            for name in ("imports", "rejects", "run_files", "run_labels"):
                attach(connection, lake, name)
            gone = choose(connection)
            return without_runs(connection, lake, table, gone, None, scratch) if gone else None

        change_in_turn(lake, "runs", work_out)


def delete_rejects(lake: Lake, condition: str, values: Mapping[str, Any]) -> None:
    """Delete rejects.

    Args:
        lake: at head.
        condition: of the rows that go, in SQL; `imports` may be asked too.
        values: its parameters.

    Raises:
        DatabaseError: the store refuses.
    """
    with working(lake) as (connection, scratch):

        def work_out(table: DeltaTable) -> Change | None:
            attach(connection, lake, "rejects", table)
            attach(connection, lake, "imports")
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE kept AS FROM rejects WHERE NOT coalesce({condition}, false)",
                dict(values),
            )
            if not one_number(connection, "SELECT (SELECT count(*) FROM rejects) - count(*) FROM kept"):
                return None
            file = write_file(connection, lake, "rejects", None, "FROM kept", scratch)
            names = [one.name for one in listed(table)]
            return Change([] if file is None else [file.added()], removal_of(table, names))

        change_in_turn(lake, "rejects", work_out)


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
    _rewrite(
        lake,
        "run_files",
        {int(one["run_id"]) for one in files},
        lambda _, stored: (
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
        attach(connection, lake, "imports")
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


def _rewrite(
    lake: Lake, name: str, runs: set[int], query: Callable[[duckdb.DuckDBPyConnection, str], str | None]
) -> None:
    """Put other rows in the place of the files that may have rows of some runs.

    Args:
        lake: where.
        name: of the table.
        runs: the runs.
        query: gives the rows, from the stored ones (an expression for FROM); None where nothing changes.
    """
    with working(lake) as (connection, scratch):

        def work_out(table: DeltaTable) -> Change | None:
            paths = files_with(table, runs)
            stored = read_files(lake, name, paths, scratch) if paths else f"({no_rows(types_of(name))})"
            rows = query(connection, stored)
            if rows is None:
                return None
            file = write_file(connection, lake, name, None, rows, scratch)
            return Change([] if file is None else [file.added()], removal_of(table, paths))

        change_in_turn(lake, name, work_out)
