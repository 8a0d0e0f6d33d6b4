"""What damaged sets are thrown at: the parser, the two ways of staging, the readers of sidecar files."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.fuzz import both_ways, sidecars
from tests.fuzz.mutations import Texts, mutate
from tests.fuzz.oracle import judge
from tests.fuzz.outcome import Outcome, outcome_of
from tests.support.dump_sets import committed_sets


class Target(Protocol):
    """Something that takes damaged sets, and an oracle for what becomes of them."""

    stores: float
    """Share of what loads that is to be loaded into DuckDB too."""
    largest: int
    """Bytes of the largest set to start from, unless told otherwise."""

    def seeds(self, largest: int) -> list[Texts]:
        """Return whole sets of at most so many bytes, to be damaged."""

    def damage(self, chance: random.Random, texts: Texts, others: Sequence[Mapping[str, bytes]]) -> Texts:
        """Return a damaged copy."""

    def judge(self, files: Mapping[str, Path], texts: Texts) -> Outcome:
        """Return what a set came to; raise what is against the rules."""


class Parser:
    """The parser, with `tests.fuzz.oracle`."""

    stores = 1.0
    largest = 4000

    def seeds(self, largest: int) -> list[Texts]:
        return _dumps(largest)

    def damage(self, chance: random.Random, texts: Texts, others: Sequence[Mapping[str, bytes]]) -> Texts:
        return mutate(chance, texts, others)

    def judge(self, files: Mapping[str, Path], texts: Texts) -> Outcome:
        return outcome_of(judge(files, texts))


class Pieces:
    """Staging whole and in pieces, which must come to the same; see `tests.fuzz.both_ways`."""

    stores = 0.0
    largest = 4000

    def seeds(self, largest: int) -> list[Texts]:
        return _dumps(largest)

    def damage(self, chance: random.Random, texts: Texts, others: Sequence[Mapping[str, bytes]]) -> Texts:
        return mutate(chance, texts, others)

    def judge(self, files: Mapping[str, Path], texts: Texts) -> Outcome:
        # So that a set that is kept is cut at the same places again.
        block_bytes = (150, 400, 1100, 3000)[sum(map(len, texts.values())) % 4]
        return both_ways.compare(files, block_bytes)


class Sidecars:
    """HLO text and protobuf beside a dump; see `tests.fuzz.sidecars`."""

    stores = 0.1
    largest = 30_000

    def seeds(self, largest: int) -> list[Texts]:
        return [texts for texts in sidecars.seeds() if sum(map(len, texts.values())) <= largest]

    def damage(self, chance: random.Random, texts: Texts, others: Sequence[Mapping[str, bytes]]) -> Texts:
        return sidecars.damage(chance, texts, others)

    def judge(self, files: Mapping[str, Path], texts: Texts) -> Outcome:
        return sidecars.judge(files, texts)


TARGETS: Mapping[str, Target] = {"parser": Parser(), "pieces": Pieces(), "sidecars": Sidecars()}


def _dumps(largest: int) -> list[Texts]:
    sets = [one.texts() for one in committed_sets()]
    return [texts for texts in sets if sum(map(len, texts.values())) <= largest]
