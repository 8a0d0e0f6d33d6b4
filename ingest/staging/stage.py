"""Stage dump sets: parse them and write their rows as Parquet, with no database open.

A *part* is a directory of Parquet files that holds whole runs, written under a temporary name and renamed
when complete; the loader only sees complete ones. Workers call `stage_sets`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from typing import Any, Final

from ingest.dump.content import FilePart, TooMuchText
from ingest.dump.driver import START
from ingest.dump.names import without_compression
from ingest.dump.parse import parse_set, text_files
from ingest.dump.parsed import ParsedDump
from ingest.dump.sets import DumpSet
from ingest.errors import DumpError, SourceError
from ingest.source.local import keeping_folder
from ingest.staging.at_hand import reading
from ingest.staging.batch import Batch
from ingest.staging.dump_rows import add_dump
from ingest.staging.fetch import fetched
from ingest.staging.implied import Implied, add_implied, implied_by_text
from ingest.staging.lone_text import add_lone_texts
from ingest.staging.memory import release_freed
from ingest.staging.outcome import described, internal, is_recorded, parse_unless_unfinished
from ingest.staging.parts import seal
from ingest.staging.run_rows import FILE_COLUMNS, RUN_COLUMNS, file_rows, run_row, write_run_tables
from ingest.staging.sidecars import (
    Sidecars,
    dump_of_proto,
    load_sidecars,
    note_differences,
    play_back,
    sidecars_of,
)
from ingest.staging.small_batch import write_small_batch
from ingest.staging.task import Staged, Task

LARGE_BYTES: Final = 8 << 20
"""Sets with more text than this are staged in pieces; parsed whole they would take ten times as much."""
_USUAL_COMPRESSION: Final = 8
"""Times that a compressed dump is larger than its file, at least; only a guess at how to stage it."""
SMALL_BATCH_ROWS: Final = 20_000
"""Up to so many rows are written without Arrow, whose import takes longer: 0.1 s with that of NumPy."""


def is_large(dump_set: DumpSet) -> bool:
    """Return whether a set is to be staged in pieces; where it is compressed, by a guess."""
    members = [member for member in dump_set.members if member.role in START]
    if sum([member.size for member in members]) * _USUAL_COMPRESSION < LARGE_BYTES:
        return False
    size = 0
    for member in members:
        is_compressed = without_compression(member.file_name) != member.file_name
        size += member.size * (_USUAL_COMPRESSION if is_compressed else 1)
    return size >= LARGE_BYTES and any(member.role == "primary" for member in members)


def stage_sets(tasks: Sequence[Task], part: str) -> Staged:
    """Parse the sets and write those that are new or changed to the part directory `part`.

    A set with more text than was to be expected of its size on disk gets a part of its own, and so does each
    set when they cannot be written together. What xbuf fails on is rejected as `internal`, by itself.

    Raises:
        OSError: the staging folder cannot be written.
    """
    result = Staged()
    try:
        with keeping_folder():
            large = _stage_together(tasks, part, result)
    except (OSError, BrokenExecutor, SourceError):
        raise
    except Exception as error:
        shutil.rmtree(f"{part}.tmp", ignore_errors=True)
        if len(tasks) == 1:
            return Staged(rejected=[internal(tasks[0].dump_set, error)])
        result = Staged(apart=[(len(tasks), described(error))])
        for task in tasks:
            result.add(stage_sets([task], f"{part}-{task.run_no:07d}"))
        return result
    for task in large:
        with reading(task.dump_set):
            result.add(_stage_in_pieces(task, f"{part}-{task.run_no:07d}"))
    return result


def _stage_together(tasks: Sequence[Task], part: str, result: Staged) -> list[Task]:
    """Stage sets as one part; return those that have too much text for that."""
    large: list[Task] = []
    batch = Batch()
    runs: list[tuple[Any, ...]] = []
    files: list[tuple[Any, ...]] = []
    for task in fetched(tasks, is_large):
        with reading(task.dump_set):
            if is_large(task.dump_set):
                large.append(task)
                continue
            try:
                parsed = parse_unless_unfinished(task, result, _parse_whole)
            except TooMuchText:
                large.append(task)
                continue
            if parsed is None:
                continue
            dump, sidecars = parsed
            if is_recorded(task, dump, result):
                continue
            add_dump(batch, task.run_no, dump, sidecars)
            runs.append(run_row(task, dump))
            files += file_rows(task, dump.sha256)
    if runs:
        unnamed = f"{part}.tmp"
        os.mkdir(unnamed, mode=0o700)
        _write(unnamed, batch, runs, files)
        seal(unnamed, part)
        result.add(Staged(loaded=len(runs), rows=batch.size + len(runs), part=part))
    return large


def _stage_in_pieces(task: Task, part: str) -> Staged:
    """Stage a set that turned out to be large: a compressed one, or one that has grown."""
    from ingest.staging.large import InThisProcess, stage_large  # 185 ms, with Arrow and NumPy

    return stage_large(task, part, InThisProcess(), 1)


def _write(
    directory: str, batch: Batch, runs: Sequence[tuple[Any, ...]], files: Sequence[tuple[Any, ...]]
) -> None:
    """Write all rows of a part; without Arrow where they are few and it is not imported yet."""
    if batch.size <= SMALL_BATCH_ROWS and "pyarrow" not in sys.modules:
        write_small_batch(directory, batch, {"runs": (RUN_COLUMNS, runs), "run_files": (FILE_COLUMNS, files)})
        return
    from ingest.staging.arrow_rows import batch_tables, write_tables  # 185 ms, with Arrow and NumPy

    write_tables(batch_tables(batch), directory)
    write_run_tables(directory, runs, files)
    release_freed()  # 45 of 210 MiB, which this worker does not need while it reads, and others may


def _parse_whole(dump_set: DumpSet) -> tuple[ParsedDump, Sidecars]:
    """Parse a set and its sidecar files; a protobuf alone is a dump too."""
    paths = dump_set.paths()
    if "primary" not in paths:
        return _parse_proto(dump_set)
    dump = parse_set(text_files(paths), LARGE_BYTES)
    is_lacking = not (dump.uses_from and dump.ranges_from)
    sidecars = load_sidecars(dump_set, paths, dump, derive_lifetimes=is_lacking)
    if sidecars.proto is not None:
        file = paths["proto"]
        differences = note_differences(sidecars.proto, dump, file)
        dump.notices += differences
        if not differences:
            add_implied(dump, Implied.by_proto(sidecars.proto), file)
    elif is_lacking and sidecars.text is not None:
        file = paths["hlo"]
        implied = implied_by_text(sidecars.text, dump.values, dump, file)
        if implied is not None:
            add_implied(dump, implied, file)
    play_back(dump, sidecars)
    return dump, sidecars


def _parse_proto(dump_set: DumpSet) -> tuple[ParsedDump, Sidecars]:
    from ingest.hlo.proto import read_proto  # 50 ms, with protobuf

    paths, place = dump_set.paths(), dump_set.in_profile
    part = None
    if place is not None:
        path, offset = place.copy or (None, place.offset)
        part = FilePart(offset, place.length, path)
    try:
        proto = read_proto(paths["proto"], derive_lifetimes=True, part=part)
        dump = dump_of_proto(proto, paths["proto"])
    except DumpError as error:
        if place is not None:
            error.message = f"{dump_set.stem}: {error.message}"
        raise
    add_lone_texts(dump, proto, paths)
    add_implied(dump, Implied.by_proto(proto), paths["proto"])
    sidecars = sidecars_of(None, proto)
    dump.notices += sidecars.notices
    dump.sha256 |= sidecars.sha256
    play_back(dump, sidecars)
    return dump, sidecars
