"""Take the files of dump sets out of archives, into memory and never to a disk, a bounded part at a time.

An archive is read from its start to its end: what lies between two readings of a tar archive can only be
skipped by reading it. So the files that are wanted are kept, compressed, as they pass by; sets that are
complete are staged and given up before more is read. Where the files of sets lie far from each other and fill
the memory, the sets that would be complete last wait for another pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ingest.source.apart import apart
from ingest.source.archive import ArchiveFiles, Packed, PackedFiles, read_members
from ingest.source.source import Unreachable
from ingest.source.walk import DamagedArchive
from ingest.staging.task import Task

HELD_BYTES: Final = 192 << 20
"""Compressed content in memory at a time: some three gigabytes of text."""


@dataclass(slots=True)
class _Set:
    """A set on its way out of an archive."""

    task: Task
    missing: set[str]
    """Files that have not passed by yet."""
    held: dict[str, Packed | OSError] = field(default_factory=dict)
    """Content by path, or why it could not be read."""

    @property
    def held_bytes(self) -> int:
        """Memory for it."""
        return sum(len(one.data) for one in self.held.values() if isinstance(one, Packed))

    def with_content(self) -> Task:
        """Return the task with its files in memory."""
        return replace(self.task, dump_set=self.task.dump_set._replace(source=PackedFiles(self.held)))


def unpacked(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Yield all tasks in groups: first those that are in no archive, then those that are, with their content.

    What cannot be taken out of its archive comes as it is: its reader meets that again, and rejects it.

    Raises:
        SourceError: an archive at a URL cannot be read.
    """
    packed: dict[str, list[Task]] = {}
    plain = []
    for task in tasks:
        source = task.dump_set.source
        if isinstance(source, ArchiveFiles) and task.dump_set.in_profile is None:
            packed.setdefault(source.archive, []).append(task)
        else:
            plain.append(task)
    if plain:
        yield plain
    for some in packed.values():
        source = some[0].dump_set.source
        assert isinstance(source, ArchiveFiles)
        waiting = some
        while waiting:
            begun = len(waiting)
            put_off: list[Task] = []
            yield from _pass(source, waiting, put_off)
            waiting = put_off
            if len(waiting) == begun:  # one is larger than all the memory: it is read where it lies
                yield waiting[:1]
                waiting = waiting[1:]


def _pass(source: ArchiveFiles, tasks: Sequence[Task], put_off: list[Task]) -> Iterator[list[Task]]:
    """Go through an archive once; put off the sets for which there is no room."""
    sets = [
        _Set(task, {_name(source, task, one.file_name) for one in task.dump_set.members}) for task in tasks
    ]
    of_name = {name: one for one in sets for name in one.missing}
    done: list[_Set] = []
    held = 0
    failure: OSError | None = None
    try:
        for name, packed in _members(source, frozenset(of_name)):
            one = of_name.get(name)
            if one is None:
                continue
            one.held[f"{source.archive}/{name}"] = packed
            one.missing.discard(name)
            held += len(packed.data)
            if not one.missing:
                done.append(one)
            if held > HELD_BYTES and done:
                yield _in_order([one.with_content() for one in done])
                held -= sum(one.held_bytes for one in done)
                done = []
            while held > HELD_BYTES:
                last = max((one for one in sets if one.held and one.missing), key=_least_complete)
                held -= last.held_bytes
                for other in [*last.missing, *(path[len(source.archive) + 1 :] for path in last.held)]:
                    of_name.pop(other, None)
                last.held.clear()
                last.missing.clear()
                put_off.append(last.task)
    except (Unreachable, PermissionError) as error:
        failure = error
    except (DamagedArchive, OSError):
        pass  # it has changed since it was listed: what is not complete is found to be so by its reader
    rest = [one.with_content() for one in done]
    for one in sets:
        if one.missing and failure is not None:
            # Said of each: their readers would go through the archive up to there, one after the other.
            one.held |= dict.fromkeys((f"{source.archive}/{name}" for name in one.missing), failure)
            rest.append(one.with_content())
        elif one.missing:
            rest.append(one.task)
    if rest:
        yield _in_order(rest)


def _in_order(tasks: list[Task]) -> list[Task]:
    """Sort tasks as the search found them: runs are numbered so, wherever they come from."""
    return sorted(tasks, key=lambda task: task.run_no)


def _least_complete(one: _Set) -> tuple[int, int]:
    return len(one.missing), one.held_bytes


def _name(source: ArchiveFiles, task: Task, file_name: str) -> str:
    return source.name_of(os.path.join(task.dump_set.directory, file_name))


def _members(source: ArchiveFiles, wanted: frozenset[str]) -> Iterator[tuple[str, Packed]]:
    if not source.is_far:
        return read_members(source.archive, wanted)
    return apart(read_members, source.archive, wanted, what=source.archive, terms=source.terms)
