"""Print a parsed dump back to the exact bytes of its files.

The renderer follows FORMAT.md and nothing else: which of the layouts to print is decided by
`Dump.features`, what to print by the facts. Whatever XLA derives (the total for people, the glyphs of the
stack-trace tree, the slot numbers, blank lines) is derived here again, not stored. So parse and render
give the same bytes only if the parser lost nothing and invented nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ingest.dump import features
from ingest.dump.records import Allocation, ColorReuse, Dump, StackNode, Value

UNAVAILABLE = "HloLiveRange not available (finalized or constructed from proto)"
UNBOUNDED = "  Peak memory could not be determined due to unbounded dynamic shape.\n"
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def render(dump: Dump) -> dict[str, bytes]:
    """Return the bytes of every file of the set by its role: primary, values, live_range."""
    allocations = "BufferAssignment:\n" + "".join(_allocations(dump))
    values = "".join(_used_values(dump))
    ranges = "".join(_live_range(dump))
    if features.SPLIT_FILES in dump.features:
        texts = {"primary": allocations, "values": values, "live_range": ranges}
    else:
        texts = {"primary": allocations + values + ("\n\n" + ranges if ranges else "")}
    return {role: text.encode() for role, text in texts.items() if text}


def human_size(size: int) -> str:
    """Print a size as `Total bytes used` does: integer division, one or two decimals (FORMAT 3)."""
    if size < 1024:
        return f"{size}B"
    unit = 0
    while size >= 1 << 20:
        size //= 1024
        unit += 1
    return f"{size / 1024:.1f}KiB" if unit == 0 else f"{size / 1024:.2f}{_UNITS[unit]}"


def _allocations(dump: Dump) -> Iterator[str]:
    reuse = {index: list(lines) for index, lines in groupby(dump.color_reuse, lambda r: r.allocation_index)}
    members: dict[int, list[Value]] = {allocation.index: [] for allocation in dump.allocations}
    for value in sorted(dump.values, key=lambda value: value.id):
        members[value.allocation_index].append(value)
    for allocation in dump.allocations:
        yield _header(allocation)
        for value in members[allocation.index]:
            if features.LOGICAL_BUFFERS in dump.features:
                yield _logical_buffer(value)
            elif features.EMBEDDED_VALUES in dump.features:
                yield _embedded_value(value)
            else:
                yield f" value: {_key(value)} (size={value.size},offset={value.offset}): {value.shape}\n"
        if allocation.index in reuse:
            yield " reused by buffers of a different color:\n"
            for line in reuse[allocation.index]:
                yield f"  value: {_reuse_key(line)} (color={line.color})\n"


def _header(allocation: Allocation) -> str:
    parts = []
    if allocation.address is not None:
        parts.append(allocation.address)
    parts.append(f"size {allocation.size}")
    if allocation.color:
        parts.append(f"color {allocation.color}")
    if allocation.page is not None:
        parts.append(f"page {allocation.page}")
    if allocation.parameter_number is not None:
        parameter = f"parameter {allocation.parameter_number}"
        if allocation.parameter_shape is not None:
            parameter += f", shape |{allocation.parameter_shape}|"
        if allocation.parameter_shape_index is not None:
            parameter += f" at ShapeIndex {allocation.parameter_shape_index}"
        parts.append(parameter)
    if allocation.output_shape is not None:
        parts.append(f"output shape is |{allocation.output_shape}|")
    flags = (
        (allocation.is_constant, "constant"),
        (allocation.is_thread_local, "thread-local"),
        (allocation.maybe_live_out, "maybe-live-out"),
        (allocation.is_preallocated_temp, "preallocated-temp"),
    )
    parts += [text for is_set, text in flags if is_set]
    parts += allocation.unknown
    return f"allocation {allocation.index}: {', '.join(parts)}:\n"


def _key(value: Value) -> str:
    return _angle(value.id, value.instruction, value.shape_index, value.is_phi, value.color)


def _reuse_key(line: ColorReuse) -> str:
    return _angle(line.value_id, line.instruction, line.shape_index, line.is_phi, line.value_color)


def _angle(number: int, instruction: str, index: str | None, is_phi: bool | None, color: int | None) -> str:
    return f"<{number} {instruction}{index or ''}{' (phi)' if is_phi else ''}{_at(color)}>"


def _at(color: int | None) -> str:
    return "" if color is None else f" @{color}"


def _logical_buffer(value: Value) -> str:
    index = (value.shape_index or "{}").strip("{}")
    place = f"{value.instruction}[{index}](#{value.id}{_at(value.color)})"
    return f"  {place} [{value.offset},{value.size}]: {value.shape}\n"


def _embedded_value(value: Value) -> str:
    phi = "PHI " if value.is_phi else ""
    head = f"  {value.id} {phi}{value.instruction}{value.shape_index or ''}{_at(value.color)}, positions:\n"
    body = "".join(_positions(value)) + " uses:\n" + "".join(_uses(value))
    return f"{head}{body} [{value.offset},{value.size}]: {value.shape}\n"


def _used_values(dump: Dump) -> Iterator[str]:
    if dump.total_bytes is None:
        return
    human = f" ({human_size(dump.total_bytes)})" if features.HUMAN_TOTAL in dump.features else ""
    yield f"\nTotal bytes used: {dump.total_bytes}{human}\n"
    if features.USED_VALUES not in dump.features:
        return
    yield "\nUsed values:\n"
    blank = " " if features.FROM_INSTRUCTION_BLANK in dump.features else ""
    end = "" if features.GLUED_NEWLINE in dump.features else "\n"
    for value in sorted(dump.values, key=lambda value: value.id):
        yield f"{_key(value)}\n positions:\n"
        yield from _positions(value)
        yield " uses:\n"
        if not value.uses and features.USES_NONE in dump.features:
            yield "  (none)\n"
        yield from _uses(value)
        if value.instruction_text is not None:
            yield f" from instruction:{blank}{value.instruction_text}{end}"


def _positions(value: Value) -> Iterator[str]:
    for position in value.positions or ():
        index = "" if position.shape_index is None else f" {position.shape_index}"
        yield f"  {position.instruction}{index}\n"


def _uses(value: Value) -> Iterator[str]:
    for use in value.uses or ():
        index = "" if use.operand_index is None else f" {use.operand_index}"
        yield f"  {use.instruction}, operand {use.operand_number}{index}\n"


def _live_range(dump: Dump) -> Iterator[str]:
    if features.LIVE_RANGE_UNAVAILABLE in dump.features:
        yield UNAVAILABLE
        return
    if dump.schedule is None:
        return
    yield f"HloLiveRange (max {dump.schedule_length}):\n  InstructionSequence:\n"
    for time, instruction in enumerate(dump.schedule):
        yield f"    {time}:{instruction}\n"
    yield "  BufferLiveRange:\n"
    for live in dump.ranges or ():
        yield f"    {live.instruction}{live.shape_index}:{live.start}-{live.end}\n"
    if features.PEAK_UNBOUNDED in dump.features:
        yield UNBOUNDED
        return
    yield f"  Live ranges at {dump.peak_time} (peak):\n"
    for line in dump.peak_lines or ():
        cumulative = "" if line.cumulative is None else f" (cumulative: {line.cumulative} bytes)"
        yield f"    {line.instruction}{line.shape_index or ''}: {line.bytes} bytes{cumulative}\n"
    if dump.stack_nodes is not None and dump.stack_total is not None:
        yield f"  Stack trace breakdown for peak usage: {_grouped(dump.stack_total)} bytes\n"
        yield from _tree(dump.stack_nodes)


def _tree(nodes: tuple[StackNode, ...]) -> Iterator[str]:
    """Print the nodes, which stand in print order, with the glyphs that their places in the tree mean."""
    children: dict[int | None, list[int]] = {}
    for place, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(place)
    youngest = {family[-1] for family in children.values()}
    for place, node in enumerate(nodes):
        yield (
            f"{''.join(_glyphs(nodes, place, youngest))}{node.label} ({node.percent}%,"
            f" total: {_grouped(node.total)} bytes, current: {_grouped(node.current)} bytes,"
            f" remaining: {_grouped(node.remaining)} bytes)\n"
        )


def _glyphs(nodes: tuple[StackNode, ...], place: int, youngest: set[int]) -> Iterable[str]:
    """Return the connector of a node and the bars of its ancestors, from left to right."""
    if nodes[place].parent is None:
        return ("    ",)
    glyphs = ["└── " if place in youngest else "├── "]
    ancestor = nodes[place].parent
    while ancestor is not None and nodes[ancestor].parent is not None:
        glyphs.append("    " if ancestor in youngest else "│   ")
        ancestor = nodes[ancestor].parent
    return ("      ", *reversed(glyphs))


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")
