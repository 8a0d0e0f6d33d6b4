"""What each column costs in a database file."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import duckdb


@dataclass(frozen=True)
class ColumnCost:
    """Bytes of a column in the file, and how it is stored."""

    table: str
    column: str
    bytes: int
    compression: str


def column_costs(database: Path) -> list[ColumnCost]:
    """Return the columns by bytes, largest first.

    DuckDB does not list the bytes of a segment. They are taken from where segments start in their block; the
    last one of a block is counted up to the block's end, so that columns of small tables look too large.
    """
    costs: defaultdict[tuple[str, str], int] = defaultdict(int)
    kinds: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    starts: defaultdict[int, list[tuple[int, tuple[str, str]]]] = defaultdict(list)
    with duckdb.connect(str(database), read_only=True) as connection:
        row = connection.execute("SELECT block_size FROM pragma_database_size()").fetchone()
        block_bytes = int(row[0]) if row else 0
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            for column, kind, compression, block, offset, more in connection.execute(
                "SELECT column_name, segment_type, compression, block_id, block_offset, additional_block_ids"
                f" FROM pragma_storage_info('{table}') WHERE persistent AND block_id >= 0"
            ).fetchall():
                key = (table, column)
                starts[block].append((offset, key))
                costs[key] += block_bytes * len(more or ())
                if kind != "VALIDITY":
                    kinds[key].add(compression)
    for segments in starts.values():
        segments.sort()
        ends = [offset for offset, _ in segments[1:]] + [block_bytes]
        for (offset, key), end in zip(segments, ends, strict=True):
            costs[key] += end - offset
    found = [
        ColumnCost(table, column, size, ", ".join(sorted(kinds[table, column])))
        for (table, column), size in costs.items()
    ]
    return sorted(found, key=lambda cost: -cost.bytes)
