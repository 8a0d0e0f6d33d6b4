"""Turn batches into Arrow tables and write them as Parquet: the staged form of an import.

Columns derived from shapes and instruction texts are taken by index from the distinct ones, and Parquet
stores each of these once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.database.tables import staged_types
from ingest.staging.batch import COLUMNS, Batch
from ingest.staging.derived import derive

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


def batch_tables(batch: Batch) -> Iterator[tuple[str, pa.Table]]:
    """Yield name and rows of each table that has some; the batch gives them up: nothing is held twice."""
    for name in COLUMNS:
        if batch.runs[name]:
            table = _table(batch, name)
            batch.rows[name].clear()
            yield name, table


def table_of(columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return rows as a table of `columns`: DuckDB's types by name."""
    arrays = zip(*rows, strict=True)
    return pa.table(
        {
            name: pa.array(array, TYPES[type_])
            for (name, type_), array in zip(columns.items(), arrays, strict=True)
        }
    )


def write_tables(tables: Iterable[tuple[str, pa.Table]], directory: str, suffix: str = "") -> None:
    """Write each table to `directory/NAME{suffix}.parquet`."""
    for name, table in tables:
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
        arrays |= derive(batch, arrays["size_bytes"], _Arrow())
    return pa.table({column: arrays[column] for column in staged_types(name)})


class _Arrow:
    """Columns of Arrow; see `ingest.staging.derived.Columns`."""

    def numbers(self, numbers: Sequence[int | None]) -> pa.Array:
        return pa.array(numbers, pa.int32())

    def column(self, facts: Sequence[Any], type_: str) -> pa.Array:
        return pa.array(facts, TYPES[type_])

    def taken(self, distinct: Sequence[Any], type_: str, numbers: pa.Array) -> pa.Array:
        return pa.array(distinct, TYPES[type_]).take(numbers)

    def texts(self, distinct: Sequence[str], numbers: pa.Array) -> pa.Array:
        return pa.DictionaryArray.from_arrays(numbers, pa.array(distinct, pa.string()))

    def difference(self, one: pa.Array, other: pa.Array) -> pa.Array:
        return pc.subtract(one, other)

    def chosen(self, where: Sequence[bool], one: pa.Array, other: pa.Array) -> pa.Array:
        return pc.if_else(pa.array(where), one, other)
