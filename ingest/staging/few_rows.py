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

from ingest.database.connect import CONFIG
from ingest.database.tables import staged_types, types_of
from ingest.dump.instructions import parse_instruction
from ingest.dump.shapes import parse_shape
from ingest.staging.batch import COLUMNS, LOCATED_COLUMNS, Batch
from ingest.staging.siblings import Source

__all__ = ["write_few"]

_Columns = dict[str, Sequence[Any]]


def write_few(
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
    place = path.replace("'", "''")
    try:
        connection.execute(
            f"COPY (SELECT {selected} FROM (SELECT from_json_strict($1, '{structure}') AS c))"
            f" TO '{place}' (FORMAT parquet, COMPRESSION lz4)",
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
        columns |= _derived(batch, columns["size_bytes"])
    return columns


def _repeat(items: Sequence[int], counts: Sequence[int]) -> list[int]:
    return [item for item, count in zip(items, counts, strict=True) for _ in range(count)]


def _derived(batch: Batch, sizes: Sequence[int]) -> _Columns:
    """Return the columns of `values` that come from the shape and the instruction text."""
    texts = list(batch.shapes)
    derived: _Columns = {"shape": [texts[number] for number in batch.shape_numbers]}
    shapes = [parse_shape(text) for text in texts]
    for column in types_of("values", "shape"):
        distinct = [getattr(shape, column) for shape in shapes]
        derived[column] = [distinct[number] for number in batch.shape_numbers]
    derived["padding_bytes"] = [
        None if logical is None else size - logical
        for size, logical in zip(sizes, derived["logical_bytes"], strict=True)
    ]
    instructions = [parse_instruction(text) for text in batch.texts]
    for column in types_of("values", "instruction"):
        distinct = [getattr(instruction, column) for instruction in instructions]
        derived[column] = [None if number is None else distinct[number] for number in batch.text_numbers]
    texts = list(batch.texts)
    derived["instruction_text"] = [None if number is None else texts[number] for number in batch.text_numbers]
    return derived | _located(batch, derived)


def _located(batch: Batch, derived: _Columns) -> _Columns:
    """Return the columns of the source line, and those that fill in for missing instruction texts."""
    printed = dict(derived)
    printed["source_via"] = [None if file is None else "own" for file in derived["source_file"]]
    printed["source_frame_id"] = [None] * len(batch.sources)
    nothing = Source(None, None, None, None, None, None, None)
    told = [source or nothing for source in batch.sources]
    located = [source.source_file is not None for source in told]
    without_text = [number is None for number in batch.text_numbers]
    return {
        name: [
            mine if is_told else theirs
            for is_told, mine, theirs in zip(
                located if name in LOCATED_COLUMNS else without_text, column, printed[name], strict=True
            )
        ]
        for name, column in zip(Source._fields, zip(*told, strict=True), strict=True)
    }
