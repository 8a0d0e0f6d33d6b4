"""Plan an import: which dump sets are there, and which of them must be read."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ingest.display import display
from ingest.dump.find import discover
from ingest.dump.grouping import PROFILE
from ingest.dump.names import CACHED_PROTO, PROFILES, ROLES, TEXT_COMPRESSIONS, TEXT_ROLES, parse_stem
from ingest.dump.sets import Discovery, DumpSet, InProfile, Problem
from ingest.errors import DumpError
from ingest.events import Event, LeftOut, NothingFound, Planned
from ingest.pipeline.journal import staging_folder
from ingest.pipeline.profiles import Profiles
from ingest.pipeline.reading import set_rejected
from ingest.pipeline.recorded import Recorded
from ingest.pipeline.summary import ImportSummary
from ingest.pipeline.target import Records, Target
from ingest.source.address import place_of
from ingest.source.kinds import is_elsewhere, shown
from ingest.source.source import APART, Terms
from ingest.staging.task import Rejected, Task

if TYPE_CHECKING:
    from ingest.dump.elsewhere import Listings

Select = Callable[[Discovery], Discovery]
"""Takes from what a search has found that which is to be imported."""


class Search(NamedTuple):
    """What is searched for dumps, and how.

    Attributes:
        names: directories, files, archives and URLs.
        read_hlo: with the sidecar files of the dumps.
        follow_symlinks: follow links also where they lead out of the directories given.
        terms: on which URLs are read.
        select: what of all that is found is wanted; None for all.
        archives: what is known of what lies in archives: such a version is not listed again.
    """

    names: Sequence[str]
    read_hlo: bool
    follow_symlinks: bool
    terms: Terms = APART
    select: Select | None = None
    archives: Listings | None = None


def search(what: Search, known: Container[tuple[str, str]] = frozenset()) -> Discovery:
    """Find the dump sets; a protobuf alone is one unless its name is of an earlier stage, a profile is one.

    Args:
        what: where and how; nothing is selected.
        known: files that were primary files before; see `discover`.
    """
    found = discover(
        what.names,
        known=known,
        proto_alone=what.read_hlo,
        follow_symlinks=what.follow_symlinks,
        listings=what.archives,
        terms=what.terms,
    )
    sets = [
        one if what.read_hlo else _without_sidecars(one)
        for one in found.sets
        if one.members[0].role != "proto" or parse_stem(one.stem).stage in (None, "after_optimizations")
    ]
    return replace(found, sets=tuple(sets))


def find_sets(
    what: Search, records: Records, profiles: Profiles, staging: Path, *, may_write: bool = True
) -> Discovery:
    """Find the dump sets that are wanted, with the modules of profiles in the place of these.

    Args:
        what: where and how, and what is wanted.
        records: where runs are recorded.
        profiles: reads profiles, or knows what they hold.
        staging: the folder that keeps what lies in archives.
        may_write: what is found out may be kept there.
    """
    renamed = records.renamed(list(map(_root, what.names)))
    if any(map(is_elsewhere, what.names)):
        # Imported here: what reads archives takes longer to import than most searches take.
        from ingest.pipeline.listings import KeptListings

        listings = KeptListings(staging, may_write=may_write, others=what.archives)
        found = search(what._replace(archives=listings), renamed)
        listings.keep()
    else:
        found = search(what, renamed)
    if what.select is not None:
        found = what.select(found)
    sets = [one for one in found.sets if one.members[0].role == PROFILE]
    return _with_modules(found, sets, profiles) if sets else found


def _root(name: str) -> str:
    """Return the folder, archive or URL in which a name finds dumps."""
    if is_elsewhere(name) or os.path.isdir(name):
        return place_of(name)
    return os.path.realpath(os.path.dirname(name) or os.curdir)


def _with_modules(found: Discovery, sets_of_profiles: Sequence[DumpSet], profiles: Profiles) -> Discovery:
    """Put the modules of profiles in their place; those that cannot be read are problems.

    XProf keeps modules that it has shown as files beside the profile, which say no more than it does.
    """
    modules: list[DumpSet] = []
    problems: list[Problem] = []
    shown: set[tuple[str, str]] = set()
    for one in sets_of_profiles:
        [member] = one.members
        try:
            profile = profiles.read(one.path(member), member)
        except DumpError as error:
            problems.append(Problem(display(os.path.join(one.directory, member.file_name)), error.message))
            continue
        host = next(one.stem.removesuffix(ending) for ending in PROFILES if one.stem.endswith(ending))
        facts = (profile.host or host, profile.started, profile.device_type, profile.backend)
        for module in profile.modules:
            place = InProfile(module.offset, module.length, module.module_name, *facts)
            members = (member._replace(role="proto"),)
            modules.append(one._replace(stem=f"{host}.{module.title}", members=members, in_profile=place))
            shown.add((one.directory, f"{module.title}{CACHED_PROTO}"))
    sets = [
        one
        for one in found.sets
        if one.members[0].role != PROFILE and (one.directory, one.members[0].file_name) not in shown
    ]
    by_place = sorted([*sets, *modules], key=lambda one: (one.directory, one.stem))
    return replace(
        found,
        sets=tuple(by_place),
        problems=tuple(sorted([*found.problems, *problems], key=lambda problem: problem.path)),
    )


def shown_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return paths and URLs as they may be shown and stored."""
    return tuple(map(shown, names))


def plan_tasks(sets: Sequence[DumpSet], recorded: Recorded) -> tuple[list[Task], int]:
    """Return a task for each set that must be read, and how many need not be."""
    changed = [number for number in range(len(sets)) if number not in recorded.unchanged]
    if not changed:
        return [], len(sets)
    tasks = [Task(number, sets[number], recorded.runs.get(number, ())) for number in changed]
    return tasks, len(sets) - len(tasks)


def _nothing_found(names: Sequence[str]) -> NothingFound:
    """Return the event of a search that has found nothing, with what it looked for."""
    texts = ", ".join(f"*{ending}" for role in TEXT_ROLES for ending in ROLES[role])
    protos = ", ".join(f"*{ending}" for ending in (*ROLES["proto"], *PROFILES))
    return NothingFound(
        shown_names(names),
        f"no dump found; looked for {texts} (plain or {', '.join(TEXT_COMPRESSIONS)}), {protos},"
        " and files whose first line is 'BufferAssignment:'. XLA writes the texts with"
        " XLA_FLAGS=--xla_dump_to=DIR, and --xla_dump_hlo_as_text where another format is asked for;"
        " the protobuf with --xla_dump_hlo_as_proto",
    )


def search_events(found: Discovery, what: Search) -> Iterator[Event]:
    """Yield what a log should hold of a search, besides its problems; none left of a selection is no news."""
    for one in found.left_out:
        yield LeftOut(one.path, one.message)
    if not found.found and what.select is None:
        yield _nothing_found(what.names)


def _without_sidecars(dump_set: DumpSet) -> DumpSet:
    return dump_set._replace(members=tuple(one for one in dump_set.members if one.role in TEXT_ROLES))


def as_reject(problem: Problem) -> Rejected:
    """Return what keeps a file or directory from being searched, as a reject."""
    return Rejected(display(problem.path), kind="unreadable", message=display(problem.message))


def plan_only(
    what: Search, target: Target, rehash: bool, started: float, emit: Callable[[Event], None]
) -> ImportSummary:
    """Report what an import would read; nothing is locked or written."""
    records = target.records(may_change=False)
    staging = staging_folder(target.place)
    found = find_sets(what, records, Profiles(staging, may_write=False), staging, may_write=False)
    tasks, unchanged = plan_tasks(found.sets, records.recorded(found.sets, rehash=rehash))
    problems = tuple(map(as_reject, found.problems))
    emit(Planned(found.found, len(tasks), 0, "staging" if records.locked else "database"))
    for event in search_events(found, what):
        emit(event)
    for problem in problems:
        emit(set_rejected(problem))
    return ImportSummary(
        target.name,
        None,
        "ok",
        found.found,
        len(tasks),
        unchanged,
        len(problems),
        0,
        0,
        time.monotonic() - started,
        problems,
        dry_run=True,
    )
