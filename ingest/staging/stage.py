"""Stage dump sets: parse them and write their rows as Parquet, with no database open.

A *part* is a directory of Parquet files that holds whole runs, written under a temporary name and renamed
when complete; the loader only sees complete ones. Workers call `stage_sets`.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from ingest.database.identity import holds
from ingest.database.tables import staged_types, types_of
from ingest.display import display
from ingest.dump.content import FilePart, TooMuchText
from ingest.dump.entry import parameters_digest
from ingest.dump.names import DumpName, parse_stem, without_compression
from ingest.dump.parse import START, ParsedDump, parse_set
from ingest.dump.records import Notice
from ingest.dump.sets import DumpSet
from ingest.errors import DumpError, SourceError
from ingest.hlo.heap_trace import traced_resident_peak
from ingest.hlo.kinds import OTHER
from ingest.source.local import status_of
from ingest.staging.at_hand import reading
from ingest.staging.batch import Batch
from ingest.staging.fetch import fetched
from ingest.staging.implied import Implied, add_implied, implied_by_text
from ingest.staging.lone_text import add_lone_texts
from ingest.staging.memory import release_freed
from ingest.staging.parts import seal
from ingest.staging.sidecars import Sidecars, dump_of_proto, note_differences, read_sidecars, sidecars_of
from ingest.staging.task import Rejected, Staged, Task, Touched

_Parsed = TypeVar("_Parsed")

LARGE_BYTES: Final = 8 << 20
"""Sets with more text than this are staged in pieces; parsed whole they would take ten times as much."""
_USUAL_COMPRESSION: Final = 8
"""Times that a compressed dump is larger than its file, at least; only a guess at how to stage it."""
SMALL_BATCH_ROWS: Final = 20_000
"""Up to so many rows are written without Arrow, whose import takes longer: 0.1 s with that of NumPy."""
RECENT_SECONDS: Final = 10.0
"""A damaged set modified within this time is taken to be still being written."""

_RUN_COLUMNS: Final = {"run_no": "BIGINT", **types_of("runs", "row")}
_FILE_COLUMNS: Final = staged_types("run_files")


def is_large(dump_set: DumpSet) -> bool:
    """Return whether a set is to be staged in pieces; where it is compressed, by a guess."""
    size = 0
    roles = set()
    for member in dump_set.members:
        if member.role in START:
            roles.add(member.role)
            is_compressed = without_compression(member.file_name) != member.file_name
            size += member.size * (_USUAL_COMPRESSION if is_compressed else 1)
    return "primary" in roles and size >= LARGE_BYTES


def stage_sets(tasks: Sequence[Task], part: str) -> Staged:
    """Parse the sets and write those that are new or changed to the part directory `part`.

    A set with more text than was to be expected of its size on disk gets a part of its own, and so does each
    set when they cannot be written together. What xbuf fails on is rejected as `internal`, by itself.

    Raises:
        OSError: the staging folder cannot be written.
    """
    result = Staged()
    try:
        large = _stage_together(tasks, part, result)
    except (OSError, BrokenExecutor, SourceError):
        raise
    except Exception as error:
        shutil.rmtree(f"{part}.tmp", ignore_errors=True)
        if len(tasks) == 1:
            return Staged(rejected=[internal(tasks[0].dump_set, error)])
        result = Staged(apart=[(len(tasks), _described(error))])
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
            batch.add(task.run_no, dump, sidecars)
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


def internal(dump_set: DumpSet, error: Exception) -> Rejected:
    """Turn a failure of xbuf's own into a reject that asks to report it."""
    return Rejected(
        display(dump_set.path(dump_set.members[0])),
        None,
        None,
        None,
        "internal",
        display(f"xbuf failed on this dump ({_words(error)}); please report it, with the file"),
        _place(error),
    )


def _described(error: Exception) -> str:
    return display(f"{_words(error)} ({_place(error)})")


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"


def lost(dump_set: DumpSet) -> Rejected:
    """Return the reject of a set that its worker was lost with, also when it was alone."""
    return Rejected(
        display(os.path.join(dump_set.directory, dump_set.members[0].file_name)),
        None,
        None,
        None,
        "worker-lost",
        "two processes that read it were killed or took too long, the second with nothing else to do; it is"
        " left out until its files change: --rehash tries again, where there is more memory maybe",
        None,
    )


def write_run_tables(
    directory: str, runs: Sequence[tuple[Any, ...]], files: Sequence[tuple[Any, ...]]
) -> None:
    """Write the staged rows of `runs` and `run_files`."""
    from ingest.staging.arrow_rows import table_of, write_tables  # 185 ms, with Arrow and NumPy

    tables = ("runs", table_of(_RUN_COLUMNS, runs)), ("run_files", table_of(_FILE_COLUMNS, files))
    write_tables(tables, directory)


def _write(
    directory: str, batch: Batch, runs: Sequence[tuple[Any, ...]], files: Sequence[tuple[Any, ...]]
) -> None:
    """Write all rows of a part; without Arrow where they are few and it is not imported yet."""
    if batch.size <= SMALL_BATCH_ROWS and "pyarrow" not in sys.modules:
        from ingest.staging.small_batch import write_small_batch  # 7 ms

        write_small_batch(
            directory, batch, {"runs": (_RUN_COLUMNS, runs), "run_files": (_FILE_COLUMNS, files)}
        )
        return
    from ingest.staging.arrow_rows import batch_tables, write_tables  # 185 ms, with Arrow and NumPy

    write_tables(batch_tables(batch), directory)
    write_run_tables(directory, runs, files)
    release_freed()  # 45 of 210 MiB, which this worker does not need while it reads, and others may


def parse_unless_unfinished(
    task: Task, result: Staged, parse: Callable[[DumpSet], _Parsed]
) -> _Parsed | None:
    """Parse a set; put a damaged one to the rejects, one that is still being written to the unfinished.

    Raises:
        TooMuchText: from `parse`.
        OSError: the staging folder cannot be written.
    """
    try:
        parsed = parse(task.dump_set)
    except DumpError as error:
        if _is_refused(error) or _is_gone(task.dump_set):
            result.rejected.append(reject(error))
            return None
        newest = max(member.mtime_ns for member in task.dump_set.members) / 1e9
        if _has_changed(task.dump_set) or abs(time.time() - newest) < RECENT_SECONDS:
            result.unfinished.append(task)
        else:
            result.rejected.append(reject(error))
        return None
    except (OSError, BrokenExecutor, TooMuchText, SourceError):
        raise
    except Exception as error:
        result.rejected.append(internal(task.dump_set, error))
        return None
    if _has_changed(task.dump_set):
        result.unfinished.append(task)
        return None
    return parsed


def is_recorded(task: Task, dump: ParsedDump, result: Staged) -> bool:
    """Say whether the database holds every member with this content; note the files' new times."""
    members = task.dump_set.members
    roles = {member.role for member in members}
    for recorded in reversed(task.recorded):
        if holds(recorded.sha256, roles, dump.sha256):
            result.unchanged += 1
            result.touched.append(Touched(recorded.run_id, tuple(member.as_stored() for member in members)))
            return True
    return False


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


def play_back(dump: ParsedDump, sidecars: Sidecars) -> None:
    """Work the resident peak out from the heap simulator's steps, as XProf does, where it has them."""
    if sidecars.proto is not None:
        traced = traced_resident_peak(dump.memory, sidecars.proto)
        dump.resident_peak = dump.resident_peak if traced is None else traced


def text_files(paths: Mapping[str, str]) -> dict[str, str]:
    """Return, of the paths of a set's members by role, those that hold the dump's own text."""
    return {role: path for role, path in paths.items() if role in START}


def load_sidecars(
    dump_set: DumpSet, paths: Mapping[str, str], dump: ParsedDump, *, derive_lifetimes: bool = False
) -> Sidecars:
    """Read the sidecar files of a dump; their notices and hashes go to the dump's.

    Where xbuf fails on them, the dump still loads.

    Args:
        dump_set: the set, for messages.
        paths: where its members lie, by role.
        dump: the dump.
        derive_lifetimes: see `read_sidecars`.

    Raises:
        DumpError: as `read_sidecars`.
    """
    try:
        sidecars = read_sidecars(paths, derive_lifetimes=derive_lifetimes)
    except (SourceError, DumpError):
        raise
    except Exception as error:
        failure = internal(dump_set, error)
        message = f"sidecar files are left out: {failure.message}"
        sidecars = Sidecars(notices=[Notice(failure.file, None, failure.kind, message, failure.text)])
    dump.notices += sidecars.notices
    dump.sha256 |= sidecars.sha256
    return sidecars


def _has_changed(dump_set: DumpSet) -> bool:
    """Return whether a member is another version than when it was found."""
    try:
        return any(status_of(dump_set.path(member)) != member.status for member in dump_set.members)
    except OSError:
        return True


def _is_gone(dump_set: DumpSet) -> bool:
    """Return whether a member is no file any more: it was removed, or a link or a FIFO took its place."""
    for member in dump_set.members:
        with suppress(OSError):
            if status_of(dump_set.path(member)) is None:
                return True
    return False


def _is_refused(error: DumpError) -> bool:
    """Say whether waiting does not help: the system refuses to read the file, or it is another one."""
    if error.kind == OTHER:
        return True
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno not in (None, errno.ENOENT, errno.ESTALE)


def reject(error: DumpError) -> Rejected:
    """Turn an error into the columns of `rejects`, with names and text fit to show."""
    text = None if error.text is None else display(error.text[:2000])
    return Rejected(
        display(error.file),
        error.line,
        error.byte_offset,
        error.section,
        error.kind,
        display(error.message),
        text,
    )


def run_row(task: Task, dump: ParsedDump) -> tuple[Any, ...]:
    """Return the staged row of `runs`, in the order of its columns."""
    name, place = parse_stem(task.dump_set.stem), task.dump_set.in_profile
    if place is not None:
        name = DumpName(module_name=place.module_name, backend=place.backend, dump_time=place.started)
    return (
        task.run_no,
        display(task.dump_set.directory),
        display(task.dump_set.stem),
        name.module_id,
        name.module_name and display(name.module_name),
        name.target and display(name.target),
        name.backend or ("tpu" if dump.tiled else None),
        name.stage,
        name.dump_time,
        dump.sha256.get("primary") or dump.sha256["proto"],
        dump.text_bytes,
        sorted(dump.features),
        dump.total,
        dump.schedule_length,
        dump.peak.time if dump.peak else None,
        dump.peak.total if dump.peak and dump.peak.time is not None else None,
        dump.liveness.peak_time if dump.liveness else None,
        dump.liveness.peak_bytes if dump.liveness else None,
        dump.uses_from is not None,
        dump.ranges_from is not None,
        dump.resident_peak,
        dump.uses_from,
        dump.ranges_from,
        place and place.host and display(place.host),
        place and place.device_type and display(place.device_type),
        parameters_digest(dump.parameters),
        dump.digest,
    )


def file_rows(task: Task, sha256: dict[str, str]) -> list[tuple[Any, ...]]:
    """Return the staged rows of `run_files`."""
    return [(task.run_no, *member.as_stored(), sha256.get(member.role)) for member in task.dump_set.members]
