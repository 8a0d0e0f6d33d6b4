"""Parquet files of a lake: written by DuckDB under a name of their own, and what Delta is told of each.

A file counts once a commit names it. Until then it is in nobody's way, and `xbuf lake vacuum` may remove it.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.database.tables import TABLES, types_of
from ingest.lake.durable import sync_file
from ingest.lake.failures import SCHEME
from ingest.lake.layout import as_in_file, as_in_lake
from ingest.lake.snapshot import Snapshot, files_of, listed
from ingest.lake.store import Lake, in_words
from ingest.sql import literal, no_rows, one_number, parquet

if TYPE_CHECKING:
    import duckdb
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

_OF_BATCH: Final = "batch-{number}-{token}.parquet"
_OF_CHANGE: Final = "change-{token}.parquet"
_ATTACHED: Final = count(1)
"""File systems that DuckDB has got: each has a scheme of its own."""
_BLOCK_BYTES: Final = 4 << 20
_BY_NAME: Final = "union_by_name = true"
"""A file lacks the columns that its table got later."""
_COMPRESSION: Final = "FORMAT parquet, COMPRESSION zstd, RETURN_STATS"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file in the folder of a table.

    Attributes:
        path: its name in that folder.
        size_bytes: its size.
        modified_ms: when it was written, milliseconds since 1970.
        rows: how many it has.
        stats: Delta's statistics, as JSON: rows, NULLs of every column, least and greatest of integers.
    """

    path: str
    size_bytes: int
    modified_ms: int
    rows: int
    stats: str

    def added(self) -> AddAction:
        """Return the action that makes it count."""
        from deltalake.transaction import AddAction

        return AddAction(self.path, self.size_bytes, {}, self.modified_ms, True, self.stats)


def write_file(
    connection: duckdb.DuckDBPyConnection,
    lake: Lake,
    table: str,
    number: int | None,
    query: str,
    scratch: Path,
) -> DataFile | None:
    """Write the rows of a query as a file of a table; None where there are none.

    Args:
        connection: runs the query.
        lake: where the table is.
        table: its name.
        number: the batch that the file belongs to, which is part of its name; None for a change of rows that
            count already.
        query: gives the columns of a file's table by name; those that are missing are NULL.
        scratch: folder of this machine for a file on its way to a store.

    Raises:
        DatabaseError: the store refuses.
        duckdb.Error: the query fails.
    """
    name = (_OF_CHANGE if number is None else _OF_BATCH).format(number=number, token=secrets.token_hex(8))
    folder = Path(lake.url(table)) if lake.is_local else scratch
    place = folder / name
    row = connection.execute(
        f"COPY ({_as_stored(connection, table, query)}) TO {literal(place)} ({_COMPRESSION})"
    ).fetchone()
    assert row is not None
    _, rows, size, _, columns, _ = row
    if not rows:
        place.unlink()
        return None
    stats = _stats(connection, table, place, int(rows), columns)
    if lake.is_local:
        sync_file(lake, f"{table}/{name}")
    else:
        import obstore

        with in_words(lake, table):
            obstore.put(lake.objects(), f"{table}/{name}", place)
        place.unlink()
    return DataFile(name, int(size), time.time_ns() // 1_000_000, int(rows), stats)


def number_of(path: str) -> int | None:
    """Return the batch that a file belongs to by its name; None for a file of something else."""
    words = path.removesuffix(".parquet").split("-")
    is_ours = len(words) == 3 and words[0] == "batch" and words[1].isdigit()
    return int(words[1]) if is_ours else None


def removal_of(table: DeltaTable, paths: Iterable[str]) -> list[RemoveAction]:
    """Return the actions that make files of a table count no more."""
    from deltalake.transaction import RemoveAction

    sizes = {file.name: file.size for file in listed(table)}
    now = time.time_ns() // 1_000_000
    return [RemoveAction(path, True, now, sizes[path], {}) for path in paths]


def attach(
    connection: duckdb.DuckDBPyConnection, lake: Lake, name: str, table: DeltaTable | None = None
) -> None:
    """Make a view of a table, of its name and with the types of a file.

    Args:
        connection: gets the view.
        lake: where the table is.
        name: of the table.
        table: opened at the version that is wanted; None for the newest.
    """
    of_table = files_of(lake, name, table or lake.table(name))
    names = [file.name for file in of_table.files]
    if not names:
        source = f"({no_rows(as_in_lake(name))})"
    elif lake.is_local:
        source = read_files(lake, name, names)
    else:
        from ingest.lake.filesystem import StoredFiles  # 0.1 s, with fsspec

        root = f"{SCHEME}{next(_ATTACHED)}://at"
        connection.register_filesystem(StoredFiles(Snapshot(lake, {name: of_table}), root))
        source = parquet((f"{root}/{name}/{file}" for file in names), _BY_NAME)
    connection.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS SELECT {as_in_file(name)} FROM {source}')


def read_files(lake: Lake, table: str, paths: Sequence[str], scratch: Path | None = None) -> str:
    """Return the expression that reads files of a table, with the types of the lake.

    Args:
        lake: where.
        table: its name.
        paths: the files, by their names.
        scratch: folder of this machine for copies of what lies in a store; not needed for a folder.

    Raises:
        DatabaseError: the store refuses.
    """
    folder = Path(lake.url(table)) if lake.is_local else scratch
    assert folder is not None
    if not lake.is_local:
        import obstore

        store = lake.objects()
        for path in paths:
            if not (folder / path).exists():
                with in_words(lake, table), open(folder / f"{path}.tmp", "wb") as copy:
                    copy.writelines(obstore.get(store, f"{table}/{path}").stream(_BLOCK_BYTES))
                os.rename(folder / f"{path}.tmp", folder / path)
    return parquet((folder / path for path in paths), _BY_NAME)


def files_with(table: DeltaTable, runs: Iterable[int]) -> list[str]:
    """Return the files of a table that may have rows of some runs, by their statistics."""
    wanted = sorted(runs)
    return [
        file.name
        for file in listed(table)
        if file.least is None
        or file.greatest is None
        or bisect_left(wanted, file.least) < bisect_right(wanted, file.greatest)
    ]


def unnested(table: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a query that gives rows of a table; columns that a row lacks are NULL."""
    given, type_ = literal(json.dumps(list(rows))), literal(json.dumps([types_of(table)]))
    return f"SELECT one.* FROM (SELECT unnest(from_json({given}, {type_})) AS one)"


def _as_stored(connection: duckdb.DuckDBPyConnection, table: str, query: str) -> str:
    """Return a query that gives all columns of a table, with the types of the lake, in their order."""
    given = {row[0] for row in connection.execute(f"DESCRIBE {query}").fetchall()}
    columns = []
    for column, (name, stored) in zip(TABLES[table].columns, as_in_lake(table).items(), strict=True):
        value = f'x."{name}"::{column.type}' if name in given else f"NULL::{column.type}"
        if stored != column.type:
            value = f"{value} AT TIME ZONE 'UTC'"
        columns.append(f'{value} AS "{name}"')
    return f"SELECT {', '.join(columns)} FROM ({query}) AS x"


def _stats(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    place: Path,
    rows: int,
    columns: dict[str, dict[str, str]],
) -> str:
    least: dict[str, int] = {}
    greatest: dict[str, int] = {}
    nulls: dict[str, int] = {}
    for name, type_ in as_in_lake(table).items():
        found = columns.get(f'"{name}"')
        if found is None:  # a list: DuckDB counts its elements
            without = f'SELECT count(*) - count("{name}") FROM read_parquet({literal(place)})'
            nulls[name] = one_number(connection, without)
            continue
        nulls[name] = int(found["null_count"])
        if type_ == "BIGINT" and "min" in found:
            least[name], greatest[name] = int(found["min"]), int(found["max"])
    return json.dumps({"numRecords": rows, "minValues": least, "maxValues": greatest, "nullCount": nulls})
