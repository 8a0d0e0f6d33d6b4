"""Which of the compiler's protobufs a file is: none says so of itself, but their first fields differ."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ingest.dump.content import FilePart
from ingest.errors import DumpError
from ingest.hlo.budget import Budget
from ingest.hlo.wire import BYTES, MAX_BYTES, VARINT, Wire

__all__ = ["what_else"]

_REMEDY: Final = (
    "xbuf reads the HloProto, which holds both: XLA_FLAGS=--xla_dump_hlo_as_proto writes it, and"
    " xbuf.load(compiled) makes it of a compiled JAX function"
)
_MODULE: Final = f"the file is an HloModuleProto, without buffer assignment; {_REMEDY}"
_ASSIGNMENT: Final = f"the file is a BufferAssignmentProto, without its module; {_REMEDY}"
_PROFILE: Final = "the file is a profile; give it a name that ends in .xplane.pb"


def what_else(path: str, part: FilePart | None = None) -> str | None:
    """Say what a file is that cannot be read as an HloProto, and what to do; None if that is not known.

    Args:
        path: the file.
        part: where in the file it lies; None for the whole.
    """
    wire = Wire(path, Budget(), MAX_BYTES, part=part, skips_unread=True)
    try:
        numbers: set[int] = set()
        first: set[tuple[int, int]] = set()
        for field in wire.fields():
            if not numbers:
                if (field.number, field.wire_type) != (1, BYTES):
                    return None
                with suppress(DumpError):  # no message: a name
                    first = {(one.number, one.wire_type) for one in wire.fields(field.value)}
            numbers.add(field.number)
    except DumpError:
        return None  # it is damaged
    finally:
        wire.close()
    # A module begins with its name, whose letters are never the fields 1 to 3 of a message.
    if not numbers or (1, BYTES) in first:
        return None  # empty, or an HloProto
    if (3, BYTES) in first and {(1, VARINT), (2, VARINT)} & first:
        return _ASSIGNMENT
    if (2, BYTES) in first:
        return _PROFILE
    return _MODULE if {1, 2, 3} <= numbers else None
