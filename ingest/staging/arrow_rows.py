"""Turn batches into Arrow tables and write them as Parquet: the staged form of an import.

Columns derived from shapes and instruction texts are taken by index from the distinct ones, and Parquet
stores each of these once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.database.tables import staged_types, types_of
from ingest.dump.instructions import parse_instruction
from ingest.dump.shapes import parse_shape
from ingest.staging.batch import COLUMNS, LOCATED_COLUMNS, Batch
from ingest.staging.siblings import Source

TYPES: Final[dict[str, pa.DataType]] = {
    "BIGINT": pa.int64(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us"),
    "BIGINT[]": pa.list_(pa.int64()),
    "VARCHAR[]": pa.list_(pa.string()),
}
"""Arrow's names of DuckDB's types."""


def batch_tables(batch: Batch) -> dict[str, pa.Table]:
    """Return the collected rows by table; tables without rows are left out."""
    return {name: _table(batch, name) for name in COLUMNS if batch.runs[name]}


def table_of(columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return rows as a table of `columns`: DuckDB's types by name."""
    arrays = zip(*rows, strict=True)
    return pa.table(
        {
            name: pa.array(array, TYPES[type_])
            for (name, type_), array in zip(columns.items(), arrays, strict=True)
        }
    )


def write_tables(tables: dict[str, pa.Table], directory: str, suffix: str = "") -> None:
    """Write each table to `directory/NAME{suffix}.parquet`."""
    for name, table in tables.items():
        texts = [field.name for field in table.schema if field.type not in (pa.int64(), pa.bool_())]
        pq.write_table(
            table,
            f"{directory}/{name}{suffix}.parquet",
            compression="lz4",
            use_dictionary=[
                text for text in texts if text not in ("percent", "dimensions", "minor_to_major")
            ],
            # A text of a dictionary beyond this is written again for each row.
            dictionary_pagesize_limit=64 << 20,
            write_statistics=False,
        )


def _table(batch: Batch, name: str) -> pa.Table:
    run_nos, counts = zip(*batch.runs[name], strict=True)
    arrays: dict[str, Any] = {"run_no": pa.array(np.repeat(run_nos, counts))}
    columns = batch.rows[name]
    if name in ("positions", "uses"):
        counted = batch.position_counts if name == "positions" else batch.use_counts
        ids = np.fromiter(chain.from_iterable(ids for ids, _ in counted), np.int64)
        per_value = np.fromiter(chain.from_iterable(counts for _, counts in counted), np.int64)
        arrays["value_id"] = pa.array(np.repeat(ids, per_value))
        starts = np.repeat(np.cumsum(per_value) - per_value, per_value)
        arrays["position"] = pa.array(np.arange(len(starts)) - starts)
    for (column, type_), rows in zip(COLUMNS[name].items(), columns, strict=True):
        if column not in arrays:
            arrays[column] = pa.array(rows, TYPES[type_])
    if name == "values":
        arrays |= _derived(batch, arrays["size_bytes"])
    return pa.table({column: arrays[column] for column in staged_types(name)})


def _derived(batch: Batch, sizes: pa.Array) -> dict[str, Any]:
    """Return the columns of `values` that come from the shape and the instruction text."""
    numbers = pa.array(batch.shape_numbers, pa.int32())
    derived: dict[str, Any] = {"shape": pa.DictionaryArray.from_arrays(numbers, list(batch.shapes))}
    shapes = [parse_shape(text) for text in batch.shapes]
    for column, type_ in types_of("values", "shape").items():
        derived[column] = pa.array([getattr(shape, column) for shape in shapes], TYPES[type_]).take(numbers)
    derived["padding_bytes"] = pc.subtract(sizes, derived["logical_bytes"])
    numbers = pa.array(batch.text_numbers, pa.int32())
    texts = [parse_instruction(text) for text in batch.texts]
    for column, type_ in types_of("values", "instruction").items():
        derived[column] = pa.array([getattr(text, column) for text in texts], TYPES[type_]).take(numbers)
    derived |= _located(batch, derived)
    derived["instruction_text"] = pa.DictionaryArray.from_arrays(
        numbers, pa.array(list(batch.texts), pa.string())
    )
    return derived


def _located(batch: Batch, derived: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the source line, and those that fill in for missing instruction texts."""
    own = pc.if_else(pc.is_valid(derived["source_file"]), "own", pa.scalar(None, pa.string()))
    nowhere = pa.nulls(len(batch.sources), pa.int64())
    printed = {**derived, "source_via": own, "source_frame_id": nowhere}
    if not any(batch.sources):
        return {name: printed[name] for name in LOCATED_COLUMNS}
    nothing = Source(None, None, None, None, None, None, None)
    told = zip(*(source or nothing for source in batch.sources), strict=True)
    types = types_of("values")
    columns = {
        name: pa.array(column, TYPES[types[name]]) for name, column in zip(Source._fields, told, strict=True)
    }
    located = pc.is_valid(columns["source_file"])
    without_text = pa.array([number is None for number in batch.text_numbers])
    return {
        name: pc.if_else(located if name in LOCATED_COLUMNS else without_text, column, printed[name])
        for name, column in columns.items()
    }
