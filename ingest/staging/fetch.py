"""Fetch the files of small dump sets from URLs ahead of their parsing, many at the same time.

A store answers in tens of milliseconds: one after the other, the files of 10,000 dumps take a quarter of an
hour. What is fetched is in memory until it is parsed: one chunk of `ingest.staging.workers` at most.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Final

from ingest.dump.sets import DumpSet
from ingest.source.local import open_found
from ingest.source.source import Unreachable
from ingest.staging.at_hand import reading, still_reading
from ingest.staging.task import Task

AHEAD: Final = 64
"""Sets that are fetched before they are wanted."""
REQUESTS: Final = 16
"""At the same time."""


def is_far(dump_set: DumpSet) -> bool:
    """Say whether a set must be read by a process of its own, and not by that of the import."""
    return dump_set.source is not None and dump_set.source.is_far


def is_remote(dump_set: DumpSet) -> bool:
    """Say whether each reading of a set's files is a request."""
    return dump_set.source is not None and dump_set.source.is_remote


def fetched(tasks: Iterable[Task], is_large: Callable[[DumpSet], bool]) -> Iterator[Task]:
    """Yield the tasks in their order, those at URLs with their files in memory.

    Large ones are read where they lie. So are those with files that have changed.

    Raises:
        SourceError: the store is away, or the time is up.
    """
    todo = iter(tasks)
    first = next(todo, None)
    if first is None:
        return
    if not is_remote(first.dump_set):  # all of a chunk lie in one place, or none is remote
        yield first
        for task in todo:
            yield from [task] if not is_remote(task.dump_set) else fetched([task], is_large)
        return
    with ThreadPoolExecutor(REQUESTS) as threads:

        def begin(task: Task) -> tuple[Task, list[Future[bytes]]]:
            dump_set = task.dump_set
            if not is_remote(dump_set) or dump_set.in_profile is not None:  # the latter are parts of files
                return task, []
            if is_large(dump_set):
                return _heard(task), []
            dump_set = _heard(task).dump_set
            return task, [threads.submit(_content, dump_set.path(one)) for one in dump_set.members]

        begun = deque(map(begin, [first, *islice(todo, AHEAD)]))
        while begun:
            task, futures = begun.popleft()
            if futures:
                with reading(task.dump_set):
                    task = _with_content(task, futures)
            yield task
            begun.extend(map(begin, islice(todo, 1)))


def _content(path: str) -> bytes:
    with open_found(path).stream as stream:
        return stream.read()


def _heard(task: Task) -> Task:
    """Let each answer count as progress: a worker is ended that is at one set for too long without any."""
    from ingest.source.objects import AtUrl

    source = task.dump_set.source
    if not isinstance(source, AtUrl):
        return task
    return replace(task, dump_set=task.dump_set._replace(source=replace(source, heard=still_reading)))


def _with_content(task: Task, futures: list[Future[bytes]]) -> Task:
    from ingest.source.archive import Packed, PackedFiles

    files: dict[str, Packed | OSError] = {}
    dump_set = task.dump_set
    for member, future in zip(dump_set.members, futures, strict=True):
        path = os.path.join(dump_set.directory, member.file_name)
        try:
            data = future.result()
        except (Unreachable, PermissionError) as error:
            files[path] = error
        except OSError:
            return task
        else:
            files[path] = Packed(data, len(data))
    return replace(task, dump_set=dump_set._replace(source=PackedFiles(files)))
