"""Derive from a module and the places of its values what the compiler prints of them in texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from ingest.hlo.assignment import DerivedLifetimes, ProtoPosition
from ingest.hlo.fields import as_index
from ingest.hlo.graph import Graph, Place
from ingest.hlo.live_ranges import derive_lifetimes, flatten_schedule
from ingest.hlo.positions import Places
from ingest.hlo.records import Alias


class Derivation:
    """Positions, uses, schedule and live ranges, each worked out when it is asked for.

    Attributes:
        places: where which value appears.
    """

    def __init__(self, module: Graph, definitions: Mapping[Place, int]) -> None:
        """Take a module and the value that is defined at each defining place."""
        self._module = module
        self._definitions = definitions
        self.places = Places(module, definitions)

    def positions(self) -> Iterator[ProtoPosition]:
        """Yield where values appear, ordered by value, each value's defining place first."""
        names = self._module.columns.instruction
        for value, places in sorted(self._places_of.items()):
            yield ProtoPosition(value, names[places[0].row], as_index(places[0].part))
            for place in sorted(places[1:]):
                yield ProtoPosition(value, names[place.row], as_index(place.part))

    def lifetimes(self, shared: Iterable[tuple[int, int]], aliases: Iterable[Alias]) -> DerivedLifetimes:
        """Derive uses, schedule and live ranges.

        Args:
            shared: pairs of values that lie in one buffer.
            aliases: donated parameters, from the module's header.
        """
        positions = self._places_of
        schedule = flatten_schedule(self._module)
        pairs = [pair for pair in shared if pair[0] in positions]
        found = derive_lifetimes(self._module, schedule, positions, pairs, aliases)
        names = self._module.columns.instruction
        return DerivedLifetimes(
            {
                value: tuple([(names[row], operand, as_index(part)) for row, operand, part in uses])
                for value, uses in found.uses.items()
            },
            None if schedule is None else tuple([names[row] for row in schedule.rows]),
            found.ranges,
            self._of_the_result() if schedule is None else frozenset(),
        )

    def _of_the_result(self) -> frozenset[int]:
        """Return the values that the root of the entry computation hands out."""
        root = self._module.root_rows.get(self._module.entry_computation or "")
        return frozenset(
            value for value, places in self._places_of.items() if any(place.row == root for place in places)
        )

    @cached_property
    def _places_of(self) -> dict[int, list[Place]]:
        """Where each value appears, the defining place first."""
        found = {value: [place] for place, value in self._definitions.items()}
        for place, value in self.places.all():
            if place != found[value][0]:
                found[value].append(place)
        return found
