"""What a dump does not print of when its values are live, filled in from its module.

Releases before TF 2.6 print no live ranges, a set may have lost its files, and of a protobuf alone nothing
is printed. Positions and uses of each value follow from the module (`ingest.hlo.derivation`), be it read from
the protobuf or from the HLO text, and where that has a schedule, slots and live ranges too. What the dump
does print is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingest.dump import features
from ingest.dump.driver import measure_ranges
from ingest.dump.lists import Lists
from ingest.dump.notices import Notices, note
from ingest.dump.parsed import Origin, ParsedDump
from ingest.dump.records import Notice
from ingest.dump.used_values import UsedScan
from ingest.errors import DumpError
from ingest.hlo.budget import Budget

if TYPE_CHECKING:
    from ingest.hlo.assignment import DerivedLifetimes, HloProto, ProtoPosition
    from ingest.hlo.compare import Comparison
    from ingest.hlo.records import HloText
    from ingest.staging.sidecars import Sidecars

_NO_TEXT = ("",) * 8
"""The block of a value of which nothing is printed."""


class Implied:
    """What a module implies of values.

    Attributes:
        origin: `hlo`, or `approximate` where the module was read from a text that leaves instructions out.
        schedule: instruction of each slot; None where the module has no schedule.
        ranges: by value, first and last slot, closed.
        leaving: ids of the values of the entry result, where the module has no schedule.
    """

    def __init__(
        self, positions: Iterable[ProtoPosition], found: DerivedLifetimes | None, origin: Origin = "hlo"
    ) -> None:
        """Take what was derived; no lifetimes where that was too much."""
        self._positions: dict[int, list[tuple[str, str]]] = {}
        for place in positions:
            self._positions.setdefault(place.value_id, []).append((place.instruction, place.shape_index))
        self._uses: Mapping[int, tuple[tuple[str, int, str], ...]] = {} if found is None else found.uses
        self.origin = origin
        self.schedule = None if found is None else found.schedule
        self.ranges: Mapping[int, tuple[int, int]] = {} if found is None else found.ranges
        self.leaving: frozenset[int] = frozenset() if found is None else found.leaving

    @classmethod
    def by_proto(cls, proto: HloProto) -> Implied:
        """Return what a protobuf implies that was read with places and lifetimes."""
        return cls(proto.positions, proto.lifetimes)

    def __bool__(self) -> bool:
        """Say whether positions are known; uses always come with them."""
        return bool(self._positions)

    def used(self, ids: Sequence[int]) -> UsedScan:
        """Return positions and uses of some values as if a text listed them."""
        positions = [self._positions.get(id_, []) for id_ in ids]
        uses = [self._uses.get(id_, ()) for id_ in ids]
        return UsedScan(
            [_NO_TEXT] * len(ids),
            [place for found in positions for place in found],
            [len(found) for found in positions],
            [(instruction, str(operand), index) for found in uses for instruction, operand, index in found],
            [len(found) for found in uses],
            set(),
            Notices(),
        )


def implied_by_text(
    text: HloText, lines: Iterable[tuple[Any, ...]], dump: ParsedDump, file: str
) -> Implied | None:
    """Return what an HLO text implies of the values of its dump; None where they do not fit together.

    Either is noted, as is a text that leaves out instructions.

    Args:
        text: read with links.
        lines: the values, as `ValueLine`.
        dump: takes the notices.
        file: the HLO text, for messages.
    """
    from ingest.hlo.text_module import PlacedValue, derive_of_text  # 65 ms, with the readers of HLO text

    values = (PlacedValue(int(line[0]), line[1], line[2], line[7]) for line in lines)
    try:
        found = derive_of_text(text, values, Budget(), file)
    except DumpError as error:
        message = f"uses and live ranges are not derived: {error.message}"
        note(dump.notices, [Notice(file, None, error.kind, message)])
        return None
    if isinstance(found, str):
        message = f"uses and live ranges are not derived, as the text is of another compilation: {found}"
        note(dump.notices, [Notice(file, None, "hlo-differs", message)])
        return None
    is_exact = not found.left_out
    if not is_exact:
        message = (
            f"uses and live ranges are approximate: the text leaves out the get-tuple-elements of"
            f" {found.left_out} operands (`%x#1`), which take slots too; the protobuf has them"
            " (XLA_FLAGS=--xla_dump_hlo_as_proto)"
        )
        note(dump.notices, [Notice(file, None, "approximate", message)])
    elif features.PAGE in dump.features and "async-start" in text.instructions.opcode:
        is_exact = False
        message = (
            "live ranges are approximate: from jaxlib 0.11.1 on the result of an asynchronous computation"
            " may start at its async-start, some slots later than derived"
        )
        note(dump.notices, [Notice(file, None, "approximate", message)])
    return Implied(found.positions, found.lifetimes, "hlo" if is_exact else "approximate")


def implied_again(
    dump: ParsedDump,
    sidecars: Sidecars,
    comparison: Comparison | None,
    lines: Iterable[tuple[Any, ...]],
    paths: Mapping[str, str],
) -> Implied | None:
    """Return what the module of a large dump implies; None where it is of another one, or cannot be derived.

    It is read again: only few large dumps need it, and which is known when their text was read.

    Args:
        dump: takes the notices.
        sidecars: as they were read, without links and lifetimes.
        comparison: of the protobuf, if any, with all values.
        lines: the values, as `ValueLine`.
        paths: where the members lie, by role.
    """
    if comparison is None:
        if sidecars.text is None:
            return None
        from ingest.hlo.text import read_hlo_text  # 15 ms

        file = paths["hlo"]
        return implied_by_text(read_hlo_text(file, with_links=True), lines, dump, file)
    comparison.finish()
    if comparison.count:
        return None
    from ingest.hlo.proto import read_proto  # 50 ms, with protobuf

    proto = read_proto(paths["proto"], derive_lifetimes=True)
    if proto.lifetimes is None:
        note(dump.notices, proto.problems[-1:])
    return Implied.by_proto(proto)


def add_implied(dump: ParsedDump, implied: Implied, file: str) -> None:
    """Add to a dump what it does not print and its module implies.

    Args:
        dump: whole but for that.
        implied: of the same values as the dump.
        file: what the module was read from, for messages.
    """
    if not dump.ranges_from and features.PROTOBUF_ALONE in dump.features and not implied.schedule:
        message = (
            "the module has no schedule, so live ranges and the peak are not known; its texts print them"
            " (XLA_FLAGS=--xla_dump_to), and protobufs of CPU modules have it since jaxlib 0.4.36"
        )
        note(dump.notices, [Notice(file, None, "no-schedule", message)])
    if not dump.ranges_from:
        dump.leaving = implied.leaving
    if not dump.uses_from and implied:
        dump.used = implied.used(dump.ids)
        dump.uses_from = implied.origin
    if not dump.ranges_from and implied.schedule is not None:
        dump.schedule = list(implied.schedule)
        dump.schedule_length = len(implied.schedule)
        dump.ranges = [
            (value[1], value[2] or "{}", *implied.ranges[id_])
            for id_, value in zip(dump.ids, dump.values, strict=True)
            if id_ in implied.ranges
        ]
        dump.ranges_from = implied.origin
        measure_ranges(dump, Lists(dump).join(), file)
