"""Stage one large dump set on all workers: its pieces are scanned and written by whoever is free."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, Final, TypeVar

from ingest.dump.content import BLOCK_BYTES
from ingest.dump.driver import Driver
from ingest.dump.parse import text_files
from ingest.dump.parsed import ParsedDump
from ingest.dump.sets import DumpSet
from ingest.errors import SourceError
from ingest.staging.arrow_columns import ArrowColumns
from ingest.staging.at_hand import still_reading
from ingest.staging.outcome import internal, is_recorded, parse_unless_unfinished
from ingest.staging.parts import seal
from ingest.staging.pieces import Where
from ingest.staging.run_rows import file_rows, run_row, write_run_tables
from ingest.staging.sidecars import load_sidecars, play_back
from ingest.staging.task import Staged, Task

_T = TypeVar("_T")
_HUGE_BYTES: Final = 512 << 20
"""Sets from here on are cut into smaller pieces: a gigabyte takes 570 MB instead of 645. Smaller sets have
memory to spare, and would take 5 % longer."""


class InThisProcess(Executor):
    """Run calls at once, for a set that turns out to be large where there are no workers."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Return what the call came to; each counts as progress with the set at hand."""
        still_reading()
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def stage_large(task: Task, part: str, pool: Executor, in_flight: int) -> Staged:
    """Stage one large set as a part of its own; the same result as `ingest.staging.stage.stage_sets`."""
    unnamed = f"{part}.tmp"
    os.mkdir(unnamed, mode=0o700)
    result = Staged()
    rows = 1

    def parse(dump_set: DumpSet) -> ParsedDump:
        nonlocal rows
        dump, written = parse_in_pieces(dump_set, Where(task.run_no, unnamed, ""), pool, in_flight)
        rows += written
        return dump

    try:
        dump = parse_unless_unfinished(task, result, parse)
        if dump is not None and not is_recorded(task, dump, result):
            write_run_tables(unnamed, [run_row(task, dump)], file_rows(task, dump.sha256))
            seal(unnamed, part)
            result.add(Staged(loaded=1, rows=rows, part=part))
    except (OSError, BrokenExecutor, SourceError):
        raise
    except Exception as error:
        return Staged(rejected=[internal(task.dump_set, error)])
    finally:
        shutil.rmtree(unnamed, ignore_errors=True)
    return result


def parse_in_pieces(
    dump_set: DumpSet, where: Where, pool: Executor, in_flight: int
) -> tuple[ParsedDump, int]:
    """Write the rows of one dump set; return its figures (its columns stay empty), and how many rows.

    Args:
        dump_set: the set, with a primary file.
        where: where to.
        pool: scans the pieces.
        in_flight: pieces that are with the pool at once.

    Raises:
        DumpError: as `ingest.dump.parse.parse_set`.
    """
    dump, paths = ParsedDump(), dump_set.paths()
    sidecars = load_sidecars(dump_set, paths, dump)
    columns = ArrowColumns(dump, sidecars, paths, where, pool, in_flight)
    size = sum(member.size for member in dump_set.members)
    block_bytes = BLOCK_BYTES // 2 if size >= _HUGE_BYTES else BLOCK_BYTES
    Driver(text_files(paths), columns, dump, block_bytes).read()
    columns.add_implied()
    play_back(dump, sidecars)
    columns.write_rest()
    return dump, columns.rows
