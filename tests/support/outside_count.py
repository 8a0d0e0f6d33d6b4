"""Count what a dump says, and find its peak, in the most naive way, as a check on the parser.

Nothing is shared with `ingest`: the text is walked line by line with plain string methods, and the peak is
the largest union of byte intervals over all slots, one slot after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass
class OutsideCount:
    """What a dump set holds; sizes in bytes, None where the set lacks the section."""

    allocations: int = 0
    values: int = 0
    phi_values: int = 0
    positions: int = 0
    uses: int = 0
    instruction_texts: int = 0
    color_reuse: int = 0
    schedule: int = 0
    ranges: int = 0
    peak_lines: int = 0
    tree_nodes: int = 0
    allocation_bytes: int = 0
    value_bytes: int = 0
    value_offsets: int = 0
    range_slots: int = 0
    """Sum of the lengths of the live ranges, in slots."""
    peak_line_bytes: int = 0
    tree_own_bytes: int = 0
    """Sum of what the tree's nodes hold themselves."""
    total_bytes: int | None = None
    peak_time: int | None = None
    peak_bytes: int | None = None
    _live: list[_Live] = field(default_factory=list, repr=False, compare=False)


@dataclass
class _Live:
    """A live range with the bytes that it keeps."""

    allocation: int
    low: int
    high: int
    start: int
    end: int


def outside_count(texts: dict[str, bytes]) -> OutsideCount:
    """Count the lines of a set given as bytes by role: primary, values, live_range."""
    count = OutsideCount()
    places: dict[str, tuple[int, int, int]] = {}
    allocation = -1
    section = "start"
    in_uses = False
    files = [texts[role] for role in ("primary", "values", "live_range") if role in texts]
    for line, following in _lines(files):
        if line == "BufferAssignment:":
            section = "allocations"
        elif line.startswith("Total bytes used: "):
            count.total_bytes = int(line.split()[3])
            section = "total"
        elif line == "Used values:":
            section = "values"
        elif line.startswith("HloLiveRange (max "):
            section = "head"
        elif line == "  InstructionSequence:":
            section = "sequence"
        elif line == "  BufferLiveRange:":
            section = "ranges"
        elif line.startswith("  Live ranges at "):
            section = "peak"
        elif line.startswith("  Stack trace breakdown for peak usage: "):
            section = "tree"
        elif section == "allocations":
            if line.startswith("allocation "):
                allocation += 1
                count.allocations += 1
                count.allocation_bytes += int(line.split("size ")[1].split(",")[0].rstrip(":"))
            elif line.startswith("  value: <") and "(color=" in line:
                count.color_reuse += 1
            elif line.startswith(" value: <"):
                inside, rest = line[len(" value: <") :].split("> (size=", 1)
                size, rest = rest.split(",offset=", 1)
                _add_value(count, places, _key(inside), allocation, int(rest.split(")")[0]), int(size))
                count.phi_values += " (phi)" in inside
            elif "](#" in line and line.startswith("  "):
                name, rest = line.strip().split("[", 1)
                index, rest = rest.split("]", 1)
                offset, size = rest.split(" [", 1)[1].split("]:")[0].split(",")
                _add_value(count, places, f"{name}{{{index}}}", allocation, int(offset), int(size))
            elif line.endswith(", positions:"):
                in_uses = False
                count.phi_values += line.split()[1] == "PHI"
            elif line.startswith(" [") and "]: " in line:
                offset, size = line[2:].split("]: ")[0].split(",")
                _add_value(count, places, None, allocation, int(offset), int(size))
            elif line == " uses:":
                in_uses = True
            elif line.startswith("  ") and in_uses:
                count.uses += 1
            elif line.startswith("  "):
                count.positions += 1
        elif section == "values":
            # A head may be glued to the text before it, so blocks are told by what follows the head.
            if following == " positions:":
                section = "positions"
                count.instruction_texts += line.startswith(" from instruction:")
            elif line.startswith(" from instruction:"):
                count.instruction_texts += 1
        elif section == "positions":
            if line.startswith("  "):
                count.positions += 1
            elif line == " uses:":
                section = "uses"
                if following is None or not following.startswith("  "):
                    section = "values"
        elif section == "uses":
            count.uses += line != "  (none)"
            if following is None or not following.startswith("  "):
                section = "values"
        elif section == "sequence":
            count.schedule += 1
        elif section == "ranges":
            if not line.startswith("    "):
                continue  # the line which says that there is no peak
            name, slots = line.strip().rsplit(":", 1)
            start, end = (int(slot) for slot in slots.split("-"))
            count.ranges += 1
            count.range_slots += end - start
            if name in places:
                owner, low, high = places[name]
                count._live.append(_Live(owner, low, high, start, end))
        elif section == "peak":
            count.peak_lines += 1
            count.peak_line_bytes += int(line.split(" bytes")[0].rsplit(": ", 1)[1])
        elif section == "tree" and line.endswith(" bytes)") and "%, total: " in line:
            count.tree_nodes += 1
            count.tree_own_bytes += int(line.rsplit(", current: ", 1)[1].split(" bytes")[0].replace(" ", ""))
    _find_peak(count)
    return count


def _lines(texts: Iterable[bytes]) -> Iterator[tuple[str, str | None]]:
    """Yield each line that is not empty, and the line after it."""
    for text in texts:
        lines = text.decode("utf-8", "replace").split("\n")
        for number, line in enumerate(lines):
            if line:
                yield line, lines[number + 1] if number + 1 < len(lines) else None


def _key(inside: str) -> str:
    """Turn what stands in `<41 fusion.7{1} (phi) @1>` into the name that live ranges use."""
    name = inside.split()[1]
    return name if name.endswith("}") else name + "{}"


def _add_value(
    count: OutsideCount,
    places: dict[str, tuple[int, int, int]],
    key: str | None,
    allocation: int,
    offset: int,
    size: int,
) -> None:
    count.values += 1
    count.value_bytes += size
    count.value_offsets += offset
    if key is not None:
        places[key] = (allocation, offset, offset + size)


def _find_peak(count: OutsideCount) -> None:
    """Add up, for each slot, the union of the bytes that are live in it; both ends of a range count."""
    by_start = sorted(count._live, key=lambda live: live.start)
    for time in sorted({live.start for live in by_start}):
        spans = sorted(
            (live.allocation, live.low, live.high)
            for live in by_start
            if live.start <= time <= live.end and live.low < live.high
        )
        held = 0
        allocation, reached = -1, 0
        for owner, low, high in spans:
            if owner != allocation:
                allocation, reached = owner, 0
            held += max(0, high - max(low, reached))
            reached = max(reached, high)
        if count.peak_bytes is None or held > count.peak_bytes:
            count.peak_time, count.peak_bytes = time, held
