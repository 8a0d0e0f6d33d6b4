"""xbuf: load XLA buffer-assignment dumps into DuckDB and ask questions with SQL.

The Python API is the command line without the terminal::

    from ingest import import_dumps, open_database, parse_dump

    dump = parse_dump("module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt")
    summary = import_dumps(["/tmp/xla_dump"], "xbuf.duckdb", labels={"jax": "0.10.2"})
    with open_database("xbuf.duckdb", read_only=True) as connection:
        connection.sql("FROM runs").show()

Names are imported when they are first used: the command line must start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingest.database.connect import open_database
    from ingest.dump.find import discover
    from ingest.dump.parse import parse_dump
    from ingest.dump.records import (
        Allocation,
        ColorReuse,
        Dump,
        LiveRange,
        Notice,
        PeakLine,
        Position,
        StackNode,
        Use,
        Value,
    )
    from ingest.dump.sets import Discovery, DumpSet, InProfile, Link, Member, Problem
    from ingest.dump.shapes import Shape, parse_shape
    from ingest.errors import (
        DatabaseError,
        DatabaseLocked,
        DatabaseTooNew,
        DumpError,
        ExitCode,
        NotADatabase,
        SchedulerError,
        SourceError,
        UsageError,
        XbufError,
    )
    from ingest.pipeline.importer import import_dumps
    from ingest.pipeline.summary import ImportSummary, Progress

__all__ = [
    "Allocation",
    "ColorReuse",
    "DatabaseError",
    "DatabaseLocked",
    "DatabaseTooNew",
    "Discovery",
    "Dump",
    "DumpError",
    "DumpSet",
    "ExitCode",
    "ImportSummary",
    "InProfile",
    "Link",
    "LiveRange",
    "Member",
    "NotADatabase",
    "Notice",
    "PeakLine",
    "Position",
    "Problem",
    "Progress",
    "SchedulerError",
    "Shape",
    "SourceError",
    "StackNode",
    "UsageError",
    "Use",
    "Value",
    "XbufError",
    "discover",
    "import_dumps",
    "open_database",
    "parse_dump",
    "parse_shape",
]

_MODULES = {
    "ingest.dump.find": ("discover",),
    "ingest.dump.parse": ("parse_dump",),
    "ingest.dump.records": (
        "Allocation",
        "ColorReuse",
        "Dump",
        "LiveRange",
        "Notice",
        "PeakLine",
        "Position",
        "StackNode",
        "Use",
        "Value",
    ),
    "ingest.dump.sets": ("Discovery", "DumpSet", "InProfile", "Link", "Member", "Problem"),
    "ingest.dump.shapes": ("Shape", "parse_shape"),
    "ingest.errors": (
        "DatabaseError",
        "DatabaseLocked",
        "DatabaseTooNew",
        "DumpError",
        "ExitCode",
        "NotADatabase",
        "SchedulerError",
        "SourceError",
        "UsageError",
        "XbufError",
    ),
    "ingest.pipeline.importer": ("import_dumps",),
    "ingest.pipeline.summary": ("ImportSummary", "Progress"),
    "ingest.database.connect": ("open_database",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'ingest' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
