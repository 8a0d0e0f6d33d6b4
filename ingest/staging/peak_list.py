"""What the printed peak list says of each live range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ingest.dump.live_range import PeakScan


class PeakMatch(NamedTuple):
    """What the printed peak list says of consecutive ranges, column-wise; None without a list."""

    at_peak: list[bool | None]
    printed_bytes: list[int | None]


class PeakMatcher:
    """Find for ranges, in print order, whether the printed peak list names them, and with which bytes.

    Up to jaxlib 0.5 the list names instructions without index, in the order of the ranges live at the
    slot; a name then stands for its ranges one by one.
    """

    def __init__(self, peak: PeakScan | None) -> None:
        self._time = peak.time if peak is not None else None
        self._sizes: dict[tuple[str, str], list[int]] = {}
        for name, index, size, _ in reversed(peak.rows) if peak is not None else ():
            self._sizes.setdefault((name, index), []).append(int(size))

    def match(
        self, names: Sequence[str], indices: Sequence[str], starts: Sequence[int], ends: Sequence[int]
    ) -> PeakMatch:
        """Match the next ranges."""
        time = self._time
        if time is None:
            return PeakMatch([None] * len(names), [None] * len(names))
        at_peak: list[bool | None] = []
        printed: list[int | None] = []
        for name, index, start, end in zip(names, indices, starts, ends, strict=True):
            sizes = None
            if start <= time <= end:
                sizes = self._sizes.get((name, index)) or self._sizes.get((name, ""))
            at_peak.append(bool(sizes))
            printed.append(sizes.pop() if sizes else None)
        return PeakMatch(at_peak, printed)
