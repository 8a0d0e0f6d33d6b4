"""Analyse dumps one by one in memory, for comparison: `python -m benchmarks.analyzer DIRECTORY`.

The idea of xla_memory_analyzer, written anew: no database; every run reads the text, makes an object of each
value, adds up what is live at every slot and shows the largest values at the local maxima. Its cost is
slots x values, so it gives up on a dump for which that would take minutes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from benchmarks.by_line import parse
from benchmarks.rough import find_sets, read_set

LIMIT: Final = 200_000_000
"""Slots x ranges that are still worked through: about 20 s."""


@dataclass(frozen=True)
class LiveValue:
    """A value with its live range."""

    name: str
    index: str
    size: int
    start: int
    stop: int
    source: str


def analyze(text: str) -> list[tuple[int, int, list[LiveValue]]] | None:
    """Return (slot, bytes, largest values) of each local maximum; None if it would take too long."""
    rows = parse(text)
    sizes = {(name, index or "{}"): int(size) for _, name, index, _, _, size, _, _ in rows["values"]}
    sources = {(name, index or "{}"): text for _, name, index, _, _, text in rows["texts"]}
    values = [
        LiveValue(
            name,
            index,
            sizes.get((name, index), 0),
            int(start),
            int(stop),
            sources.get((name, index), ""),
        )
        for name, index, start, stop in rows["ranges"]
    ]
    slots = len(rows["schedule"])
    if slots * len(values) > LIMIT:
        return None
    curve = [
        sum(value.size for value in values if value.start <= slot <= value.stop) for slot in range(slots)
    ]
    peaks = []
    for slot, size in enumerate(curve):
        before, after = curve[max(slot - 1, 0)], curve[min(slot + 1, slots - 1)]
        if before < size >= after:
            live = [value for value in values if value.start <= slot <= value.stop]
            peaks.append((slot, size, sorted(live, key=lambda value: -value.size)[:20]))
    return peaks


def main() -> None:
    """Analyse every dump; print how many were too large."""
    results = [analyze(read_set(files)) for files in find_sets(sys.argv[1])]
    print(sum(result is None for result in results))


if __name__ == "__main__":
    main()
