"""Write the rows of a small batch as Parquet without Arrow and NumPy, whose import takes longer than that.

The rows go to DuckDB as JSON, one text a table. What is written is what `ingest.staging.arrow_rows` writes; a
test compares the two over real dumps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import duckdb

from ingest.database.file import CONFIG
from ingest.database.tables import staged_types
from ingest.sql import literal
from ingest.staging.batch import COLUMNS, Batch
from ingest.staging.derived import derive

_Columns = dict[str, Sequence[Any]]


def write_small_batch(
    directory: str,
    batch: Batch,
    more: Mapping[str, tuple[Mapping[str, str], Sequence[tuple[Any, ...]]]],
) -> None:
    """Write each table that has rows to `directory/NAME.parquet`.

    Args:
        directory: where to.
        batch: rows collected.
        more: further tables: types of their columns, and rows.

    Raises:
        OSError: the folder cannot be written.
    """
    with duckdb.connect(":memory:", config={**CONFIG, "threads": 1}) as connection:
        for name in COLUMNS:
            if batch.runs[name]:
                _write(connection, f"{directory}/{name}.parquet", staged_types(name), _columns(batch, name))
        for name, (types, rows) in more.items():
            columns: _Columns = dict(zip(types, zip(*rows, strict=True), strict=True))
            _write(connection, f"{directory}/{name}.parquet", types, columns)


def _write(
    connection: duckdb.DuckDBPyConnection, path: str, types: Mapping[str, str], columns: _Columns
) -> None:
    structure = json.dumps({name: _nested(type_) for name, type_ in types.items()})
    selected = ", ".join(f'unnest(c."{name}") AS "{name}"' for name in types)
    try:
        connection.execute(
            f"COPY (SELECT {selected} FROM (SELECT from_json_strict($1, '{structure}') AS c))"
            f" TO {literal(path)} (FORMAT parquet, COMPRESSION lz4)",
            [json.dumps(columns, default=str)],
        )
    except duckdb.IOException as error:
        raise OSError(str(error)) from error


def _nested(type_: str) -> list[Any]:
    """Return the type of a column of this type, as the JSON functions want it."""
    return [_nested(type_[:-2])] if type_.endswith("[]") else [type_]


def _columns(batch: Batch, name: str) -> _Columns:
    columns: _Columns = {"run_no": _repeat(*zip(*batch.runs[name], strict=True))}
    columns |= zip(COLUMNS[name], batch.rows[name], strict=True)
    if name in ("positions", "uses"):
        counted = batch.position_counts if name == "positions" else batch.use_counts
        ids, counts = ([*chain.from_iterable(part)] for part in zip(*counted, strict=True))
        columns["value_id"] = _repeat(ids, counts)
        columns["position"] = [number for count in counts for number in range(count)]
    if name == "values":
        columns |= derive(batch, columns["size_bytes"], _Lists())
    return columns


def _repeat(items: Sequence[int], counts: Sequence[int]) -> list[int]:
    return [item for item, count in zip(items, counts, strict=True) for _ in range(count)]


class _Lists:
    """Columns of Python lists; see `ingest.staging.derived.Columns`."""

    def numbers(self, numbers: Sequence[int | None]) -> Sequence[int | None]:
        return numbers

    def column(self, facts: Sequence[Any], _: str) -> Sequence[Any]:
        return facts

    def taken(self, distinct: Sequence[Any], _: str, numbers: Sequence[int | None]) -> Sequence[Any]:
        return [None if number is None else distinct[number] for number in numbers]

    def texts(self, distinct: Sequence[str], numbers: Sequence[int | None]) -> Sequence[Any]:
        return self.taken(distinct, "VARCHAR", numbers)

    def difference(self, one: Sequence[Any], other: Sequence[Any]) -> Sequence[Any]:
        return [None if b is None else a - b for a, b in zip(one, other, strict=True)]

    def chosen(self, where: Sequence[bool], one: Sequence[Any], other: Sequence[Any]) -> Sequence[Any]:
        return [a if here else b for here, a, b in zip(where, one, other, strict=True)]
