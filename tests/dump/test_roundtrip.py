"""A parsed dump prints back to the bytes that were parsed: nothing is lost, nothing is invented."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingest.dump.parse import parse_dump
from tests.support.dump_sets import DumpSet, committed_sets, dump_sets
from tests.support.render import human_size, render


def assert_round_trip(dump_set: DumpSet) -> None:
    """Parse a set and compare what is printed back with its files, byte by byte."""
    dump = parse_dump(os.fspath(dump_set.primary))
    unknown = [notice for notice in dump.notices if notice.kind.startswith("unknown")]
    assert unknown == [], dump_set.name
    printed = render(dump)
    expected = dump_set.texts()
    assert sorted(expected) == sorted(printed), dump_set.name
    for role, text in expected.items():
        if text != printed[role]:
            pytest.fail(f"{dump_set.files[role]}: {_first_difference(text, printed[role])}")


def _first_difference(expected: bytes, printed: bytes) -> str:
    """Show where two texts part; pytest's own comparison of megabytes takes minutes."""
    pairs = zip(expected, printed, strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(expected), len(printed)))
    line = expected.count(b"\n", 0, at) + 1
    shown = slice(max(0, at - 40), at + 60)
    return f"line {line}: the file has {expected[shown]!r}, printed {printed[shown]!r}"


@pytest.mark.parametrize("dump_set", committed_sets(), ids=lambda dump_set: dump_set.name)
def test_a_dump_prints_back_to_its_bytes(dump_set: DumpSet) -> None:
    """Every committed dump, real or hand-made, survives parse and render byte by byte."""
    assert_round_trip(dump_set)


def test_the_corpus_prints_back_to_its_bytes(shared_corpus: Path) -> None:
    """All 337 sets of the corpus survive parse and render byte by byte."""
    sets = dump_sets(shared_corpus)
    assert len(sets) == 337
    for dump_set in sets:
        assert_round_trip(dump_set)


def test_the_seeds_print_back_to_their_bytes(shared_seeds: Path) -> None:
    """The five seed dumps survive parse and render byte by byte."""
    sets = dump_sets(shared_seeds)
    assert len(sets) == 5
    for dump_set in sets:
        assert_round_trip(dump_set)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0KiB"),
        (16_448, "16.1KiB"),
        (1_048_575, "1024.0KiB"),
        (1_048_576, "1.00MiB"),
        (299_944_008, "286.05MiB"),
        (5 << 50, "5.00PiB"),
        (1 << 62, "4.00EiB"),
    ],
)
def test_sizes_for_people_follow_xla(size: int, text: str) -> None:
    """The renderer derives the human total as XLA does: whole divisions, then one."""
    assert text == human_size(size)
