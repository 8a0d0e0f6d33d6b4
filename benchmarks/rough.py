"""The yardstick: a rough pipeline from dumps to DuckDB, `python -m benchmarks.rough DIRECTORY DATABASE`.

Compiled expressions over whole sections, Arrow columns of text, one CREATE TABLE AS a table. One process, no
checks, no derived columns, texts of jaxlib 0.4.36 and later only: what it costs to get at the records at all.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from itertools import chain
from typing import Final

import duckdb
import pyarrow as pa

ENDINGS: Final = ("-buffer-assignment-values.txt", "-buffer-assignment.txt", "-live-range.txt")
KEY: Final = r"([0-9]+) ([\w.-]+)(\{[0-9,]*\})?( \(phi\))?(?: @(-?[0-9]+))?"
ALLOCATION: Final = re.compile(r"^allocation ([0-9]+): (?:0x[0-9a-f]+, )?size ([0-9]+)(.*):$", re.M)
VALUE: Final = re.compile(rf"^ value: <{KEY}> \(size=([0-9]+),offset=([0-9]+)\): (.*)$", re.M)
USED: Final = re.compile(
    rf"^<{KEY}>\n positions:\n((?:  .*\n)*) uses:\n((?:  .*\n)*) from instruction: ?(.*)$", re.M
)
SLOT: Final = re.compile(r"^    ([0-9]+):(.*)$", re.M)
RANGE: Final = re.compile(r"^    ([\w.-]+)(\{[0-9,]*\}):([0-9]+)-([0-9]+)$", re.M)

COLUMNS: Final = {
    "allocations": ("allocation", "size", "attributes"),
    "values": ("id", "name", "index", "phi", "color", "size", "offset", "shape"),
    "texts": ("id", "name", "index", "phi", "color", "text"),
    "positions": ("id", "name", "index"),
    "uses": ("id", "name", "operand", "index"),
    "schedule": ("slot", "name"),
    "ranges": ("name", "index", "start", "stop"),
}
NUMBERS: Final = {"allocation", "size", "id", "color", "offset", "operand", "slot", "start", "stop"}
Rows = dict[str, list[tuple[str, ...]]]


def find_sets(directory: str) -> list[list[str]]:
    """Return the files of each set."""
    sets: defaultdict[str, list[str]] = defaultdict(list)
    for folder, _, names in os.walk(directory):
        for name in names:
            for ending in ENDINGS:
                if name.endswith(ending):
                    sets[os.path.join(folder, name.removesuffix(ending))].append(os.path.join(folder, name))
    return [sorted(files) for files in sets.values()]


def read_set(files: list[str]) -> str:
    """Return the text of a set's files, one after the other."""
    texts = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            texts.append(file.read())
    return "".join(texts)


def scan(text: str) -> Rows:
    """Return the records of one dump."""
    live = text.find("HloLiveRange (max")
    sequence = text.find("  BufferLiveRange:", live) if live >= 0 else -1
    peak = text.find("  Live ranges at", sequence) if sequence >= 0 else -1
    positions: list[tuple[str, ...]] = []
    uses: list[tuple[str, ...]] = []
    texts: list[tuple[str, ...]] = []
    for *key, places, users, instruction in USED.findall(text, 0, live if live >= 0 else len(text)):
        texts.append((*key, instruction))
        for line in places.splitlines():
            name, _, index = line[2:].partition(" ")
            positions.append((key[0], name, index))
        for line in users.splitlines():
            name, found, rest = line[2:].partition(", operand ")
            if found:
                operand, _, index = rest.partition(" ")
                uses.append((key[0], name, operand, index))
    return {
        "allocations": ALLOCATION.findall(text),
        "values": VALUE.findall(text),
        "texts": texts,
        "positions": positions,
        "uses": uses,
        "schedule": SLOT.findall(text, live, sequence) if sequence >= 0 else [],
        "ranges": RANGE.findall(text, sequence, peak) if peak >= 0 else [],
    }


def load(dumps: list[Rows], database: str) -> int:
    """Write the records of all dumps to a new database; return the rows."""
    if os.path.exists(database):
        os.unlink(database)
    total = 0
    with duckdb.connect(database) as connection:
        for table, columns in COLUMNS.items():
            counts = [len(dump[table]) for dump in dumps]
            rows = list(chain.from_iterable(dump[table] for dump in dumps))
            total += len(rows)
            arrays: dict[str, pa.Array] = {
                "run": pa.array(
                    chain.from_iterable([run] * count for run, count in enumerate(counts)), pa.int32()
                )
            }
            by_column = zip(*rows, strict=True) if rows else ([] for _ in columns)
            arrays |= {
                name: pa.array(texts, pa.string()) for name, texts in zip(columns, by_column, strict=True)
            }
            connection.register("rows", pa.table(arrays))
            selected = ", ".join(
                f'TRY_CAST("{name}" AS BIGINT) AS "{name}"' if name in NUMBERS else f'"{name}"'
                for name in columns
            )
            connection.execute(f'CREATE TABLE "{table}" AS SELECT run, {selected} FROM rows')
            connection.unregister("rows")
    return total


def main() -> None:
    """Run the whole pipeline."""
    directory, database = sys.argv[1:]
    print(load([scan(read_set(files)) for files in find_sets(directory)], database))


if __name__ == "__main__":
    main()
