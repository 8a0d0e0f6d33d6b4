"""The modules of profiles: where each lies, kept from one import to the next.

    xbuf.duckdb.staging/
        profiles.json       modules of each profile that was read, by path, with its size and time
        profiles.copies     modules of new profiles that are compressed, or in no folder, while an import
                            reads them

A profile that has not changed is not read at all. A compressed one is decompressed once, and one in an
archive or at a URL is read once: its modules are copied as they pass by, since each would else be read up to
by whoever wants it. Both files may be deleted between imports.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from ingest.database.private import is_own_folder, make_private_folder
from ingest.database.refusals import explain
from ingest.dump.sets import DumpSet, Member, ModuleCopy
from ingest.errors import DumpError
from ingest.pipeline.kept import KeptFacts
from ingest.source.local import source_of
from ingest.staging.task import Task

if TYPE_CHECKING:
    from ingest.hlo.profile import Profile

_COPIES: Final = "profiles.copies"
_MOST: Final = 1000
"""Profiles that are kept and are in no folder: the latest."""


class Profiles:
    """Reads profiles; to be closed at the end of an import."""

    def __init__(self, staging: Path, *, may_write: bool = True) -> None:
        """Name the place.

        Args:
            staging: folder of the database.
            may_write: keep what is found out, and copies of modules.
        """
        self._staging = staging
        self._may_write = may_write
        self._kept = KeptFacts(staging, "profiles", may_write=may_write)
        self._has_copies = False
        self._copied: dict[str, dict[int, int]] = {}
        """Of profiles that were read now: where the module at each place was copied to."""

    def read(self, path: str, member: Member) -> Profile:
        """Return the modules of a profile.

        Raises:
            DumpError: as `ingest.hlo.profile.read_profile`.
            DatabaseError: the staging folder cannot be written.
        """
        entry = self._kept.entries.get(path)
        if entry is not None:
            with suppress(ValueError, TypeError):  # damaged: it is read again
                *version, facts = entry
                if version == [*member.status]:
                    return _profile(facts)
        found = self._read(path)
        self._kept.put(path, [*member.status, _facts(found)])
        return found

    def with_copies(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the tasks, those whose modules were copied with the place of their copies.

        A profile that was not read now, as it has not changed, is read again for them.

        Raises:
            DatabaseError: the staging folder cannot be written.
        """
        return [replace(task, dump_set=self._with_copy(task.dump_set)) for task in tasks]

    def _with_copy(self, dump_set: DumpSet) -> DumpSet:
        place = dump_set.in_profile
        if place is None:
            return dump_set
        path = dump_set.path(dump_set.members[0])
        if path not in self._copied:
            with suppress(DumpError):  # whoever reads the module meets it too, and reports it
                self._read(path)
        start = self._copied.setdefault(path, {}).get(place.offset)
        if start is None:
            return dump_set
        copied = place._replace(copy=ModuleCopy(str(self._staging / _COPIES), start))
        if dump_set.source is None:
            return dump_set._replace(in_profile=copied)
        from ingest.source.archive import PackedFiles  # as what lies elsewhere: of most imports nothing does

        # The version that was copied is the one that was found; nobody asks for another.
        return dump_set._replace(in_profile=copied, source=PackedFiles({}))

    def keep(self) -> None:
        """Write what was found out, for the next import.

        Raises:
            DatabaseError: the staging folder cannot be written.
        """
        if self._kept.has_news:
            known = self._kept.entries
            latest = set(list(known)[-_MOST:])
            self._kept.write(
                {path: entry for path, entry in known.items() if path in latest or os.path.exists(path)}
            )

    def close(self) -> None:
        """Remove the copies, also those of an import that was killed."""
        if is_own_folder(self._staging):
            (self._staging / _COPIES).unlink(missing_ok=True)

    def _read(self, path: str) -> Profile:
        copies = self._begin_copies() if self._may_write else None
        try:
            if source_of(path).is_far:
                from ingest.source.apart import apart

                [found] = apart(_read, path, copies, what=path, terms=source_of(path).terms)
            else:
                [found] = _read(path, copies)
        except OSError as error:
            raise explain(str(self._staging), error) from error
        self._copied[path] = {one.offset: one.copied_to for one in found.modules if one.copied_to is not None}
        return found

    def _begin_copies(self) -> Path:
        """Make room for copies; those of an import that was killed go."""
        copies = self._staging / _COPIES
        if not self._has_copies:
            make_private_folder(self._staging)
            try:
                copies.unlink(missing_ok=True)
            except OSError as error:
                raise explain(str(self._staging), error) from error
            self._has_copies = True
        return copies


def _read(path: str, copies: Path | None) -> Iterator[Profile]:
    """Yield what a profile says; copies of its modules go to the end of a file."""
    from ingest.hlo.profile import read_profile  # 50 ms, with protobuf

    with ExitStack() as stack:

        def open_copies() -> IO[bytes]:
            assert copies is not None
            copies.touch(0o600)
            opened = stack.enter_context(copies.open("r+b"))
            opened.seek(0, os.SEEK_END)
            return opened

        yield read_profile(path, None if copies is None else open_copies)


def _facts(found: Profile) -> list[Any]:
    started = None if found.started is None else found.started.isoformat()
    modules = [[one.title, one.module_name, one.offset, one.length] for one in found.modules]
    return [modules, found.host, started, found.device_type, found.backend]


def _profile(facts: Sequence[Any]) -> Profile:
    from ingest.hlo.profile import Profile, ProfiledModule  # 50 ms, with protobuf

    modules, host, started, device_type, backend = facts
    return Profile(
        tuple(ProfiledModule(*_module(one)) for one in modules),
        host,
        None if started is None else datetime.fromisoformat(started),
        device_type,
        backend,
    )


def _module(entry: Sequence[Any]) -> tuple[str, str, int, int]:
    """Return the fields of a module; ValueError where they are no such fields."""
    title, name, offset, length = entry
    if not (isinstance(title, str) and isinstance(name, str)):
        raise ValueError(entry)
    return title, name, int(offset), int(length)
