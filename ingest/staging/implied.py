"""What a dump does not print of when its values are live, filled in from the protobuf of its module.

Releases before TF 2.6 print no live ranges, a set may have lost its files, and of a protobuf alone nothing
is printed. Positions and uses of each value follow from the module, and where that has a schedule, slots and
live ranges too (`ingest.hlo.live_ranges`). What the dump does print is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingest.dump import features
from ingest.dump.driver import measure_ranges
from ingest.dump.lists import Lists
from ingest.dump.notices import Notices, note
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Notice
from ingest.dump.used_values import UsedScan
from ingest.hlo.assignment import HloProto

__all__ = ["Implied", "add_implied"]

_NO_TEXT = ("",) * 8
"""The block of a value of which nothing is printed."""


class Implied:
    """What a protobuf implies of values.

    Attributes:
        schedule: instruction of each slot; None where the module has no schedule.
        ranges: by value, first and last slot, closed.
    """

    def __init__(self, proto: HloProto) -> None:
        """Take a protobuf that was read with places and lifetimes."""
        self._positions: dict[int, list[tuple[str, str]]] = {}
        for place in proto.positions:
            self._positions.setdefault(place.value_id, []).append((place.instruction, place.shape_index))
        found = proto.lifetimes
        self._uses: Mapping[int, tuple[tuple[str, int, str], ...]] = {} if found is None else found.uses
        self.schedule = None if found is None else found.schedule
        self.ranges: Mapping[int, tuple[int, int]] = {} if found is None else found.ranges

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


def add_implied(dump: ParsedDump, proto: HloProto, file: str) -> None:
    """Add to a dump what it does not print and its protobuf implies.

    Args:
        dump: whole but for that.
        proto: read with places and lifetimes, and with the same values as the dump.
        file: the protobuf, for messages.
    """
    implied = Implied(proto)
    if not dump.ranges_from and features.PROTOBUF_ALONE in dump.features and not proto.schedule:
        message = (
            "the module has no schedule, so live ranges and the peak are not known; its texts print them"
            " (XLA_FLAGS=--xla_dump_to), and protobufs of CPU modules have it since jaxlib 0.4.36"
        )
        note(dump.notices, [Notice(file, None, "no-schedule", message)])
    if not dump.uses_from and implied:
        dump.used = implied.used(dump.ids)
        dump.uses_from = "hlo"
    if not dump.ranges_from and implied.schedule is not None:
        dump.schedule = list(implied.schedule)
        dump.schedule_length = len(implied.schedule)
        dump.ranges = [
            (value[1], value[2] or "{}", *implied.ranges[id_])
            for id_, value in zip(dump.ids, dump.values, strict=True)
            if id_ in implied.ranges
        ]
        dump.ranges_from = "hlo"
        measure_ranges(dump, Lists(dump).join(), file)
