"""The sidecar files of a dump, as far as they were read: HLO text and protobuf.

A sidecar file never costs the dump: what cannot be read of it becomes a notice. But where its store may give
it to another import, the dump waits for that: loaded without it, it would not be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from ingest.dump import features
from ingest.dump.check import check_bounds, check_headers, check_numbers, check_unique
from ingest.dump.content import is_unreachable
from ingest.dump.entry import entry_parameters
from ingest.dump.headers import Attributes, Header
from ingest.dump.notices import MAX_TEXT
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Notice
from ingest.dump.resident import main_memory, resident_peak
from ingest.dump.sets import DumpSet
from ingest.errors import DumpError, SourceError
from ingest.hlo.budget import Budget
from ingest.hlo.compare import Comparison
from ingest.hlo.frames import FrameworkRule, Stacks
from ingest.hlo.heap_trace import traced_resident_peak
from ingest.hlo.printed_opcodes import printed_opcodes
from ingest.hlo.provenance import Sources, locate
from ingest.staging.outcome import internal

if TYPE_CHECKING:
    from ingest.hlo.assignment import HloProto
    from ingest.hlo.records import HloText

ROLES: Final = ("hlo", "proto")


class Source(NamedTuple):
    """What the HLO module says of an instruction, named as the columns of `values`.

    Of the source line see `ingest.hlo.provenance`.
    """

    source_file: str | None
    source_line: int | None
    source_via: str | None
    source_frame_id: int | None
    opcode: str | None
    op_name: str | None
    stack_frame_id: int | None


def _all_framework(_: str | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Sidecars:
    """What was read of one dump's sidecar files.

    Attributes:
        module: the HLO module, from the protobuf where that is there, else from its text.
        located: source line of each instruction of the module.
        opcodes: of each instruction of the module, as a text prints it.
        rows: place of each instruction in these, by its name.
        is_framework: separates a framework's files from the user's.
        proto: the protobuf.
        sha256: SHA-256 of each member read, by role.
        notices: what could not be read.
    """

    module: HloText | HloProto | None = None
    located: Sources | None = None
    opcodes: Sequence[str] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    is_framework: Callable[[str | None], bool] = _all_framework
    proto: HloProto | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[Notice] = ()

    @property
    def text(self) -> HloText | None:
        """The HLO text, where that is what was read of the module."""
        return None if self.proto is not None or self.module is None else cast("HloText", self.module)

    @property
    def has_fingerprint(self) -> bool:
        """Whether `hlo_modules.program_sha256` is known."""
        return self.module is not None and self.module.program_sha256 is not None

    def sources(self, names: Iterable[str]) -> dict[str, Source]:
        """Return what the module states of some of its instructions, by name; others are left out."""
        module, located = self.module, self.located
        if module is None or located is None:
            return {}
        stated = module.instructions
        columns: tuple[Sequence[Any], ...] = (
            *(located.file, located.line, located.via, located.frame_id),
            *(self.opcodes, stated.op_name, stated.stack_frame_id),
        )
        return {
            name: Source(*[column[self.rows[name]] for column in columns])
            for name in {*names} & self.rows.keys()
        }

    def heap_events(self) -> list[tuple[Any, ...]]:
        """Return the rows of `heap_events`."""
        if self.proto is None:
            return []
        events = [
            (trace.allocation_index, event) for trace in self.proto.heap_traces for event in trace.events
        ]
        return [
            (
                allocation,
                position,
                event.kind,
                event.value_id,
                event.shares_with,
                event.computation,
                event.instruction,
            )
            for position, (allocation, event) in enumerate(events)
        ]

    def peak_buffers(self) -> list[tuple[int, int]]:
        """Return the rows of `peak_buffers`."""
        if self.proto is None:
            return []
        return [(peak.allocation_index, id_) for peak in self.proto.peak_buffers for id_ in peak.value_ids]

    def allocation_facts(self) -> dict[int, tuple[bool, bool | None]]:
        """Return is_tuple and is_aliased_with_output of each allocation by its index."""
        if self.proto is None:
            return {}
        return {
            one.index: (one.is_tuple, one.is_parameter_aliased_with_output) for one in self.proto.allocations
        }

    def declared_donations(self) -> dict[tuple[int, str], str]:
        """Return may, must or donor of each part of a parameter whose donation the module declares."""
        if self.module is None:
            return {}
        header = self.module.header
        found = {(donor.parameter_number, donor.parameter_index): "donor" for donor in header.donors}
        # Of several entries for one part the first in the alphabet counts: may.
        aliases = sorted(header.aliases, key=lambda alias: alias.kind, reverse=True)
        return found | {(alias.parameter_number, alias.parameter_index): alias.kind for alias in aliases}


NO_SIDECARS: Final = Sidecars()


def read_sidecars(paths: Mapping[str, str], *, derive_lifetimes: bool = False) -> Sidecars:
    """Read the sidecar files of a dump.

    Where a protobuf can be read, the HLO text is not: it is hashed, and its start and end are looked at.

    Args:
        paths: where each member lies, by role; those of other roles are passed over.
        derive_lifetimes: also what `ingest.staging.implied` takes.

    Raises:
        DumpError: a file cannot be read now, and maybe by the next import.
    """
    if paths.keys().isdisjoint(ROLES):
        return NO_SIDECARS
    notices: list[Notice] = []
    sha256: dict[str, str] = {}
    budget = Budget()
    text: HloText | None = None
    proto: HloProto | None = None
    if "proto" in paths:
        from ingest.hlo.proto import read_proto  # 50 ms, with protobuf

        path = paths["proto"]
        try:
            proto = read_proto(
                path, budget=budget, with_places=derive_lifetimes, derive_lifetimes=derive_lifetimes
            )
        except DumpError as error:
            if is_unreachable(error):
                raise
            notices.append(_unread(path, error))
    if "hlo" in paths:
        from ingest.hlo.text import hash_hlo_text, read_hlo_text  # 15 ms

        path = paths["hlo"]
        try:
            if proto is None:
                text = read_hlo_text(path, budget=budget, with_links=derive_lifetimes)
            else:
                sha256["hlo"] = hash_hlo_text(path)
        except DumpError as error:
            if is_unreachable(error):
                raise
            notices.append(_unread(path, error))
    return sidecars_of(text, proto, notices, sha256)


def sidecars_of(
    text: HloText | None,
    proto: HloProto | None,
    notices: Sequence[Notice] = (),
    sha256: Mapping[str, str] = MappingProxyType({}),
) -> Sidecars:
    """Put together what was read: the protobuf, or else the HLO text.

    Args:
        text: the HLO text, where there is no protobuf.
        proto: the protobuf, which says all that the text does and more: since jaxlib 0.11 the text leaves out
            get-tuple-elements.
        notices: what could not be read.
        sha256: SHA-256 of members that were not read further, by role.
    """
    module = proto or text
    if module is None:
        return Sidecars(sha256=sha256, notices=notices)
    rule = FrameworkRule.from_environment()
    instructions = module.instructions
    read = {"hlo": text, "proto": proto}
    return Sidecars(
        module,
        locate(instructions, Stacks(module.frames, rule)),
        printed_opcodes(instructions),
        {name: row for row, name in enumerate(instructions.instruction)},
        rule,
        proto,
        {**sha256, **{role: one.content_sha256 for role, one in read.items() if one is not None}},
        [*notices, *(problem for one in read.values() if one is not None for problem in one.problems)],
    )


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


def play_back(dump: ParsedDump, sidecars: Sidecars) -> None:
    """Work the resident peak out from the heap simulator's steps, as XProf does, where it has them."""
    if sidecars.proto is not None:
        traced = traced_resident_peak(dump.memory, sidecars.proto)
        dump.resident_peak = dump.resident_peak if traced is None else traced


def note_differences(proto: HloProto, dump: ParsedDump, file: str) -> list[Notice]:
    """Note what the protobuf says otherwise than the dump's text."""
    comparison = Comparison(proto)
    comparison.take_allocations(dump.headers)
    comparison.take_values(dump.values, dump.ids, dump.allocation_of, dump.offsets, dump.sizes)
    return notices_of(comparison, file)


def notices_of(comparison: Comparison, file: str) -> list[Notice]:
    """Return the notices on a protobuf that was compared with all of a dump."""
    comparison.finish()
    found = [Notice(file, None, "proto-differs", one.message[:MAX_TEXT]) for one in comparison.first]
    if comparison.count > len(found):
        found.append(Notice(file, None, "proto-differs", f"{comparison.count} differences in all"))
    return found


def dump_of_proto(proto: HloProto, file: str) -> ParsedDump:
    """Make a dump of a protobuf that lies alone: its allocations and values.

    Raises:
        DumpError: it holds no buffer assignment.
    """
    if not proto.has_assignment:
        raise DumpError(
            "no-buffer-assignment",
            "the protobuf holds no buffer assignment; one of a later stage does",
            file=file,
        )
    values: dict[int, list[tuple[str, ...]]] = {}
    dump = ParsedDump(features={features.PROTOBUF_ALONE}, text_bytes=proto.proto_bytes)
    for value in proto.values:
        row = (
            str(value.value_id),
            value.instruction,
            "" if value.is_array else value.shape_index,
            " (phi)" if value.is_phi else "",
            str(value.color),
            str(value.size),
            str(value.offset),
            value.shape or "",
        )
        values.setdefault(value.allocation_index, []).append(row)
        dump.values.append(row)
        dump.ids.append(value.value_id)
        dump.allocation_of.append(value.allocation_index)
        dump.offsets.append(value.offset)
        dump.sizes.append(value.size)
    for one in proto.allocations:
        attributes = Attributes(
            one.color,
            None,
            one.parameter_number,
            one.parameter_shape_index,
            one.parameter_shape,
            one.output_shape,
            one.is_constant,
            one.is_thread_local,
            one.maybe_live_out,
            one.is_preallocated_temp,
            (),
            one.kind,
        )
        dump.headers.append(Header(one.index, None, one.size, attributes, len(values.get(one.index, ()))))
    dump.allocated = sum(header.size for header in dump.headers)
    check_headers(dump.headers, 0)
    check_bounds(
        dump.ids, dump.offsets, dump.sizes, dump.allocation_of, [header.size for header in dump.headers]
    )
    check_unique(dump.ids)
    check_numbers(dump)
    dump.tiled = any("T(" in row[7] for row in dump.values)
    dump.memory = main_memory(dump.headers)
    dump.parameters = entry_parameters(dump.headers)
    dump.resident_peak = resident_peak(dump.memory)
    return dump


def _unread(path: str, error: DumpError) -> Notice:
    return Notice(path, error.line, error.kind, error.message, error.text)
