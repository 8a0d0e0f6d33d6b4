"""Read the compiler's protobuf of a module: `STEM.hlo.pb`, plain or compressed.

It is walked as a stream; see `ingest.hlo.wire` for what bounds memory and time. Fields that this version
does not know are stepped over.

Import this module late: it imports the protobuf runtime (25 ms).
"""

from __future__ import annotations

import os
from typing import Final

from ingest.dump.content import FilePart
from ingest.dump.records import Notice
from ingest.errors import DumpError
from ingest.hlo.assignment import DerivedLifetimes, HloProto, ProtoPosition
from ingest.hlo.assignment_proto import AssignmentReader
from ingest.hlo.budget import Budget
from ingest.hlo.kinds import OTHER, what_else
from ingest.hlo.module import Module
from ingest.hlo.module_proto import ModuleReader
from ingest.hlo.placement import Placement
from ingest.hlo.wire import KIND, MAX_BYTES, Wire

_HLO_MODULE: Final = 1
_BUFFER_ASSIGNMENT: Final = 3


def read_proto(
    path: str | os.PathLike[str],
    *,
    budget: Budget | None = None,
    derive_lifetimes: bool = False,
    max_bytes: int = MAX_BYTES,
    with_places: bool = True,
    part: FilePart | None = None,
) -> HloProto:
    """Read an HloProto.

    Args:
        path: the file, plain, gzip or zstd.
        budget: what it may cost; one of its own if none is given.
        derive_lifetimes: also derive uses, the flattened schedule and live ranges; needs places.
        max_bytes: most bytes, uncompressed.
        with_places: work out where values appear and which share a buffer. With lifetimes that takes half as
            long as the rest.
        part: where in the file it lies, in a profile; None for a file of its own.

    Raises:
        DumpError: the file cannot be read, is no HloProto, is cut off, or is beyond a limit.
    """
    name = os.fspath(path)
    wire = Wire(name, budget or Budget(), max_bytes, part=part)
    try:
        reader, assignment = ModuleReader(wire), AssignmentReader(wire)
        for field in wire.fields():
            if field.number == _HLO_MODULE:
                reader.read(field)
            elif field.number == _BUFFER_ASSIGNMENT:
                assignment.read(field)
        if not reader.name or not reader.ids:
            raise wire.error("the file holds no HLO module: it is no HloProto")
        sha256, size = wire.finish()
    except DumpError as error:
        other = what_else(name, part) if error.kind == KIND else None
        if other is None:
            raise
        raise DumpError(OTHER, other, file=name) from error
    finally:
        wire.close()
    module = Module(reader)
    instructions = module.in_order()
    program = module.program_sha256(instructions)
    placement = Placement(assignment, module)
    # Before `problems` is read, to which they add.
    values = tuple(placement.values())
    aliases = tuple(placement.buffer_aliases()) if with_places else ()
    allocations = tuple(placement.allocations())
    positions: tuple[ProtoPosition, ...] = ()
    lifetimes: DerivedLifetimes | None = None
    try:
        if with_places:
            positions = tuple(placement.positions())
        if derive_lifetimes:
            lifetimes = placement.lifetimes(aliases, reader.header().aliases)
    except DumpError as error:
        if not derive_lifetimes:
            raise
        positions = ()
        module.problem(f"uses and live ranges are not derived: {error.message}")
    return HloProto(
        header=reader.header(),
        frames=reader.frames.frames(),
        instructions=instructions,
        entry_computation=module.entry_computation,
        program_sha256=program,
        schedule=tuple(module.schedule()),
        has_assignment=assignment.found,
        allocations=allocations,
        values=values,
        positions=positions,
        lifetimes=lifetimes,
        buffer_aliases=aliases,
        heap_traces=tuple(placement.heap_traces()),
        peak_buffers=tuple(assignment.peak_buffers),
        problems=tuple(Notice(name, None, KIND, problem) for problem in module.problems),
        content_sha256=sha256,
        proto_bytes=size,
    )
