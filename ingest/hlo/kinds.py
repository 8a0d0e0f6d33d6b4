"""Which of the compiler's protobufs a file is: none says so of itself, but their first fields differ."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ingest.dump.content import FilePart
from ingest.errors import DumpError
from ingest.hlo.budget import Budget
from ingest.hlo.wire import BYTES, MAX_BYTES, VARINT, Wire

OTHER: Final = "other-protobuf"
"""Kind of the errors on files that are whole, and another protobuf of XLA's than an HloProto."""

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
    # Of the first field 1 and the first field 3, which fields it has if it is a message.
    inner: dict[int, set[tuple[int, int]]] = {}
    try:
        for field in wire.fields():
            if not inner and (field.number, field.wire_type) != (1, BYTES):
                return None
            if field.number in (1, 3) and field.wire_type == BYTES and field.number not in inner:
                inner[field.number] = set()
                with suppress(DumpError):  # a string
                    inner[field.number] = {(one.number, one.wire_type) for one in wire.fields(field.value)}
    except DumpError:
        return None  # it is damaged
    finally:
        wire.close()
    first, third = inner.get(1, set()), inner.get(3, set())
    if (1, BYTES) in first:
        return None  # an HloProto
    if (3, BYTES) in first and {(1, VARINT), (2, VARINT)} & first:
        return _ASSIGNMENT
    if (2, BYTES) in first:
        return _PROFILE
    # A module begins with its name, whose letters are never one of these; computations have names, too.
    return _MODULE if third >= {(1, BYTES), (2, BYTES)} else None
