"""Stage a dump in plain lists and in Arrow columns, cut into large and into small pieces, and compare.

Both load the same rows, or both are rejected; of several things wrong with a dump, each may name another.
In pieces of a few hundred bytes a small dump has as many as a large one. Nothing is written:
what would become Parquet files is kept as Arrow tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa

from ingest.dump import driver
from ingest.dump.content import BlockReader
from ingest.dump.parse import parse_set
from ingest.errors import DumpError
from ingest.staging import arrow_columns, in_flight, pieces
from ingest.staging.arrow_rows import batch_tables
from ingest.staging.batch import Batch
from ingest.staging.dump_rows import add_dump
from ingest.staging.large import InThisProcess, parse_in_pieces
from ingest.staging.outcome import reject
from ingest.staging.pieces import HeldInAllocations, Where, completed
from ingest.staging.run_rows import run_row
from ingest.staging.task import Rejected, Task
from tests.fuzz.outcome import Outcome, Violation, rejected
from tests.fuzz.stored import as_task

Rows = dict[str, list[tuple[Any, ...]]]


class Result(NamedTuple):
    """What staging a set came to."""

    reject: Rejected | None
    run: tuple[Any, ...] | None
    rows: Rows


def compare(files: Mapping[str, Path], *block_sizes: int) -> Outcome:
    """Return what the set in `files` comes to, whole and in blocks of these sizes, both ways.

    Raises:
        Violation: some of the outcomes differ.
    """
    paths = {role: str(path) for role, path in files.items()}
    primary = files["primary"]
    stem = primary.name.removesuffix("-buffer-assignment.txt")
    task = as_task(0, primary.parent, stem, tuple(files))
    whole = _result(lambda tables: _stage_whole(task, paths, tables))
    for block_bytes in block_sizes:
        with _blocks_of(block_bytes):
            _require_same(whole, _result(lambda tables: _stage_whole(task, paths, tables)))
            _require_same(whole, _result(lambda tables: _stage_in_pieces(task, tables)))
    if whole.reject is not None:
        return rejected(whole.reject.kind, whole.reject.section, whole.reject.message)
    assert whole.run is not None
    found = next(cell for cell in whole.run if isinstance(cell, list))
    return ("load", *found, *sorted({str(row[3]) for row in whole.rows.get("notices", [])}))


def _require_same(whole: Result, in_pieces: Result) -> None:
    if (whole.reject is None) != (in_pieces.reject is None) or whole[1:] != in_pieces[1:]:
        raise Violation(_difference(whole, in_pieces))


def _result(stage: Callable[[list[dict[str, pa.Table]]], tuple[Any, ...]]) -> Result:
    tables: list[dict[str, pa.Table]] = []
    try:
        run = stage(tables)
    except DumpError as error:
        return Result(reject(error), None, {})
    rows: Rows = {}
    for several in tables:
        for name, table in several.items():
            columns = [table[column].to_pylist() for column in sorted(table.column_names)]
            rows.setdefault(name, []).extend(zip(*columns, strict=True))
    return Result(None, run, {name: sorted(found, key=repr) for name, found in rows.items()})


def _stage_whole(task: Task, paths: Mapping[str, str], tables: list[dict[str, pa.Table]]) -> tuple[Any, ...]:
    dump = parse_set(paths)
    batch = Batch()
    add_dump(batch, 0, dump)
    tables.append(dict(batch_tables(batch)))
    return run_row(task, dump)


def _stage_in_pieces(task: Task, tables: list[dict[str, pa.Table]]) -> tuple[Any, ...]:
    with _kept(tables):
        dump, _ = parse_in_pieces(task.dump_set, Where(0, os.devnull, ""), InThisProcess(), 2)
        return run_row(task, dump)


@contextmanager
def _blocks_of(block_bytes: int) -> Iterator[None]:
    with patch.object(driver, "BlockReader", lambda path, *_: BlockReader(path, block_bytes)):
        yield


@contextmanager
def _kept(tables: list[dict[str, pa.Table]]) -> Iterator[None]:
    def keep(written: Iterable[tuple[str, pa.Table]], directory: str, suffix: str = "") -> None:
        tables.append(dict(written))

    def complete(directory: str, held: HeldInAllocations) -> None:
        some = [written for written in tables if "allocations" in written]
        whole = completed(held, lambda: [written["allocations"] for written in some])
        for written, table in zip(some, list(whole), strict=True):
            written["allocations"] = table

    with (
        patch.object(pieces, "write_tables", keep),
        patch.object(arrow_columns, "complete_allocations", complete),
        # Giving memory back takes longer than all else.
        patch.object(in_flight, "rest", _nothing),
        patch.object(arrow_columns, "release_freed", _nothing),
    ):
        yield


def _nothing() -> None:
    pass


def _difference(whole: Result, in_pieces: Result) -> str:
    if (whole.reject is None) != (in_pieces.reject is None):
        return f"whole {whole.reject}, in pieces {in_pieces.reject}"
    if whole.run != in_pieces.run:
        return f"runs: whole {whole.run}, in pieces {in_pieces.run}"
    for table in sorted(whole.rows.keys() | in_pieces.rows.keys()):
        one, other = (result.rows.get(table, []) for result in (whole, in_pieces))
        if one != other:
            only = [[row for row in a if row not in b][:3] for a, b in ((one, other), (other, one))]
            return f"{table}: only whole {only[0]}, only in pieces {only[1]}"
    return "rows in another order"
