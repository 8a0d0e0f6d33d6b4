"""A parsed dump set column-wise, as cheap as it comes from the scanners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ingest.dump import features
from ingest.dump.allocations import ReuseLine
from ingest.dump.headers import Header
from ingest.dump.live_range import PeakScan, TreeScan
from ingest.dump.notices import Notices
from ingest.dump.resident import MainMemory
from ingest.dump.sections import Section
from ingest.dump.used_values import UsedScan
from ingest.liveness.measure import Intervals, Liveness

Origin = Literal["dump", "hlo", "approximate"]
"""The dump's own text, or derived from the HLO module; approximate where its text leaves something out."""


@dataclass(slots=True)
class ParsedDump:
    """A parsed and checked dump set, column-wise; rows of `values` ascend by id.

    `values`, `allocation_of`, `ids`, `offsets`, `sizes` and `used.blocks` run in parallel. `ranges` holds
    (instruction, index, start, end) and `range_values` the row of the value of each range, -1 for none.
    """

    features: set[str] = field(default_factory=set)
    sections: set[Section] = field(default_factory=set)
    tiled: bool = False
    """A shape has a tiled layout, which only TPU prints."""
    notices: Notices = field(default_factory=Notices)
    sha256: dict[str, str] = field(default_factory=dict)
    text_bytes: int = 0
    headers: list[Header] = field(default_factory=list)
    values: list[tuple[str, ...]] = field(default_factory=list)
    allocation_of: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    reuse: list[ReuseLine] = field(default_factory=list)
    other_color_values: Mapping[int, int] = field(default_factory=dict)
    """Values whose color is not that of their allocation, count by its number, where there are any."""
    used: UsedScan | None = None
    total: int | None = None
    schedule_length: int | None = None
    schedule: list[str] | None = None
    ranges: list[tuple[str, str, int, int]] | None = None
    range_values: list[int] = field(default_factory=list)
    intervals: Intervals | None = None
    """The values that have a range, in the order of the ranges."""
    liveness: Liveness | None = None
    parameters: list[tuple[int, str]] = field(default_factory=list)
    """See `ingest.dump.entry.entry_parameters`."""
    allocated: int = 0
    """Sum of the sizes of all allocations, bytes; equal to `total` where that is printed."""
    memory: MainMemory = field(default_factory=MainMemory)
    resident_peak: int | None = None
    """See `ingest.dump.resident`."""
    uses_from: Origin | None = None
    """Where positions and uses come from; None where they are not known."""
    ranges_from: Origin | None = None
    """Where schedule and live ranges come from; None where they are not known."""
    leaving: frozenset[int] = frozenset()
    """Ids of the values of the entry result, where only the module says so: without live ranges."""
    digest: int | None = None
    """See `ingest.staging.program_digest`; None where the fingerprint of the module says more."""
    peak: PeakScan | None = None
    tree: TreeScan | None = None

    @property
    def prints_phi(self) -> bool:
        """Whether values that merge several definitions are marked: logical buffers never are."""
        return features.LOGICAL_BUFFERS not in self.features
